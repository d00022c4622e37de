"""``python -m dev.cloud``: the demo cloud as a process.

Checks that private roots are allowed here, serves the agent, runs the provider until SIGTERM or
Ctrl-C and then powers every machine off. Killed, it leaves the machines running, as a cloud does:
the next start finds them by ``--root``; they end with the process that ``--lifetime-pid`` names.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from dev.cloud import boot, downloads, kube
from dev.cloud.boot import Hypervisor
from dev.cloud.lifecycle import Lifecycle, Timing
from dev.cloud.provider import Provider
from dev.cloud.store import Store

EXIT_NOT_ALLOWED = 3
EXIT_ROOT_IN_USE = 4


def options(argv: Sequence[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m dev.cloud", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="absent: serve the agent only")
    parser.add_argument("--root", type=Path, required=True, help="machines, facts, download URL")
    parser.add_argument("--create-seconds", type=float, default=2.0)
    parser.add_argument("--delete-seconds", type=float, default=2.0)
    parser.add_argument(
        "--download-port", type=int, default=0, help="0: as last time, or a free one"
    )
    parser.add_argument(
        "--lifetime-pid",
        type=int,
        default=os.getppid(),
        help="machines end with this process (default: the parent)",
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Runs the cloud and answers its exit status."""
    given = options(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    allowed = boot.preflight()
    if not allowed.allowed:
        print(
            f"cannot start the demo cloud: machines need namespaces of their own, which are not "
            f"allowed here: {allowed.detail}",
            file=sys.stderr,
        )
        return EXIT_NOT_ALLOWED
    given.root = given.root.resolve()
    given.root.mkdir(parents=True, exist_ok=True)
    lock = os.open(given.root / "provider.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"cannot start the demo cloud: another one uses {given.root}", file=sys.stderr)
        return EXIT_ROOT_IN_USE
    asyncio.run(serve(given))
    return 0


async def serve(given: argparse.Namespace) -> None:
    """Serves downloads and Machines until the process is asked to end."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    remembered = given.root / "downloads.url"
    port = given.download_port or await asyncio.to_thread(downloads.port_of, remembered)
    async with downloads.serving(port) as url:
        await asyncio.to_thread(remembered.write_text, f"{url}\n")
        print(f"downloads: {url} sha256={downloads.sha256_hex()}", flush=True)
        if given.kubeconfig is None:
            await stop.wait()
            return
        hypervisor = Hypervisor()
        try:
            await _provide(given, hypervisor, stop)
        finally:
            await asyncio.to_thread(power_everything_off, given.root, hypervisor)


async def _provide(given: argparse.Namespace, hypervisor: Hypervisor, stop: asyncio.Event) -> None:
    timing = Timing(create_s=given.create_seconds, delete_s=given.delete_seconds)
    store = await asyncio.to_thread(Store, given.root)
    async with kube.connect(given.kubeconfig) as api:
        lifecycle = Lifecycle(
            api, store, hypervisor, timing=timing, lifetime_pid=given.lifetime_pid
        )
        print("demo cloud ready", flush=True)
        await Provider(api, lifecycle).run(stop)


def power_everything_off(root: Path, hypervisor: Hypervisor) -> None:
    """Ends every machine below ``root``, also those whose objects are gone."""
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        try:
            hypervisor.power_off(folder)
        except boot.BootError as error:
            print(error, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
