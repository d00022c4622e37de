"""Launches one machine: detaches from the host, becomes its keeper, ends with it.

``python -m dev.cloud.guest`` is started once per power-on by ``dev.cloud.boot``. It holds the lock
of the machine's folder as long as any process of the machine lives, and ends the machine when it
is told to (SIGTERM) or when the process that the whole cloud belongs to is gone.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from dev.cloud.guest import linux, root
from dev.cloud.guest.supervisor import Boot, Supervisor

EXIT_REFUSED = 3
EXIT_ALREADY_RUNNING = 4
_NAMESPACES = linux.Clone.PID | linux.Clone.UTS | linux.Clone.IPC


def main(argv: Sequence[str]) -> int:
    """Runs one machine to its end and answers the exit status."""
    options = _options(argv)
    try:
        return check() if options.check else _launch(options)
    except OSError as error:
        print(error.strerror or error, file=sys.stderr)
        return EXIT_REFUSED


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m dev.cloud.guest")
    parser.add_argument("--check", action="store_true", help="try everything in an empty root")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--hostname", default="machine")
    parser.add_argument("--instance-id", default="i-0")
    parser.add_argument("--lifetime-pid", type=int, default=0)
    parser.add_argument("--no-document", action="store_true")
    return parser.parse_args(argv)


def check() -> int:
    """Tries the namespaces, every mount and a program, in a folder that is removed again.

    Raises:
        OSError: naming the step that is not allowed here.
    """
    with tempfile.TemporaryDirectory(prefix="demo-cloud-") as folder:
        spec = root.RootSpec(folder=Path(folder), hostname="check")
        root.prepare(spec)
        detach(spec.hostname)

        def inside() -> None:
            root.enter(spec)
            linux.drop_privileges_of_children()
            command = ["/usr/bin/env", "python3", "-c", "pass"]
            done = subprocess.run(command, env={"PATH": root.SEARCH_PATH}, check=False)
            os._exit(done.returncode)

        return _wait(_become_process_1(inside))


def detach(hostname: str) -> None:
    """Moves this process into namespaces of its own, and its children into a new pid namespace.

    The network stays the host's, because nodes reach the API over loopback. Without the right to do
    it directly a user namespace is made first, in which this user is root.

    Raises:
        OSError: neither way is allowed.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        linux.unshare(_NAMESPACES)
    except PermissionError:
        linux.unshare(linux.Clone.USER | _NAMESPACES)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    socket.sethostname(hostname)


def _launch(options: argparse.Namespace) -> int:
    spec = root.RootSpec(folder=options.folder, hostname=options.hostname)
    # Inherited by process 1, never by the programs it starts: free means that process 1 ended, and
    # the kernel kills the rest with it.
    lock = os.open(spec.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return EXIT_ALREADY_RUNNING
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    owner = os.pidfd_open(options.lifetime_pid) if options.lifetime_pid else None
    events = os.open(spec.folder / "events.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    document = spec.folder / "user-data"
    boot = Boot(
        instance_id=options.instance_id,
        user_data=None if options.no_document else document.read_bytes(),
        events_fd=events,
    )
    root.prepare(spec)
    detach(spec.hostname)

    def inside() -> None:
        root.enter(spec)
        linux.drop_privileges_of_children()
        Supervisor(boot).run()

    return _keep(_become_process_1(inside), owner)


def _become_process_1(inside: Callable[[], None]) -> int:
    """Forks process 1, which runs ``inside`` and dies with this process; answers its pid."""
    alive_read, alive_write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(alive_read)
        return pid
    status = EXIT_REFUSED
    try:
        os.close(alive_write)
        linux.die_with_parent()
        if select.select([alive_read], [], [], 0)[0]:
            # The keeper died before it could be followed.
            os._exit(EXIT_REFUSED)
        os.setsid()
        inside()
    except OSError as error:
        print(error.strerror or error, file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def _keep(pid: int, owner: int | None) -> int:
    """Waits for the machine's end, or brings it about; answers process 1's exit status."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    machine = os.pidfd_open(pid)
    watched = [machine, wake_read, *([] if owner is None else [owner])]
    ready, _, _ = select.select(watched, [], [])
    if machine not in ready:
        signal.pidfd_send_signal(machine, signal.SIGKILL)
    return _wait(pid)


def _wait(pid: int) -> int:
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
