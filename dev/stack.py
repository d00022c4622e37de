"""The whole product on this host: control plane, Postgres, functions, cloud, reconciler.

What is started with which settings, in which order. The end-to-end tests and `make up` use
it.

`python -m dev.stack --run-dir DIR` runs it, empty and installed, until Ctrl-C.
"""

import argparse
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from dev import binaries, existing, next_steps, pythonic
from dev.controlplane import ControlPlane
from dev.crossplane import Crossplane
from dev.kube import KubeError
from dev.postgres import Postgres
from dev.process import Child, ProcessError, Program, answers, free_port
from dev.toolchain import Report

ROOT = Path(__file__).parents[1]
FUNCTION_NAME = "plexsphere-function-provisioning-broker"
"""What dependency resolution calls our function; Compositions use this name."""

PROVISIONING_API = "provisioning.plexsphere.com/v1alpha1"
RECONCILER_ACCOUNT = ("plexsphere-system", "provisioning-broker")
CLOUD_ACCOUNT = ("crossplane-system", "demo-cloud")
READY_TIMEOUT_S = 60.0
"""Each part is ready within seconds; a loaded machine needs more."""

PID_FILE = "pid"
"""In the run directory while a stack of `make up` runs; `make down` reads it."""

THIS_HOST = "BROKER_HOST"
"""Names the variable with the name or address under which an existing cluster's Crossplane
reaches this host; not set, it runs on this host."""

LOCALHOST = "localhost"

DEPLOY = ("deploy/namespace.yaml", "deploy/crds", "deploy/rbac", "deploy/policies")
CLOUD = ("dev/cloud/crd.yaml", "dev/cloud/providerconfig-crd.yaml", "dev/cloud/rbac.yaml")
PRODUCT = ("xrds/provisionedresource.yaml", "compositions/provisionedresource.yaml")
BLUEPRINTS = ("example/blueprints/generic-vm",)


class Stack:
    """Everything, started and stopped together.

    Args:
        run_dir: logs, kubeconfigs, data; made when missing.
        report: gets a line per step.
        env: overrides the reconciler's settings.
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        report: Report,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.run_dir = run_dir.absolute()
        self.report = report
        self.plane = ControlPlane.from_environment(self.run_dir, report=report)
        self.postgres = Postgres(self.run_dir / "postgres")
        self.cloud_root = self.run_dir / "cloud"
        self.node_url = f"http://127.0.0.1:{free_port()}"
        self.operator_url = f"http://127.0.0.1:{free_port()}"
        self.function_port = free_port()
        self.host = LOCALHOST if self.plane.is_ours else os.environ.get(THIS_HOST) or LOCALHOST
        self.crossplane: Crossplane | None = None
        self._env = dict(env or {})
        self._reconciler: Child | None = None
        self._starts = 0

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything and return once the reconciler is ready."""
        self.plane.start()
        self._start_crossplane()
        self.postgres.start()
        self.report("installing kinds, rights and policies")
        self.plane.apply(*(ROOT / part for part in (*DEPLOY, *CLOUD)))
        self._start_other_functions()
        self.install_product()
        self.install_blueprints()
        self._start_cloud()
        self.start_reconciler()
        self._write_env()

    def stop(self) -> None:
        """End everything, the youngest first. Idempotency: a second call ends nothing."""
        self.plane.stop()
        self.postgres.stop()

    def start_reconciler(self, env: Mapping[str, str] | None = None) -> Child:
        """Start `broker serve` and return once it is ready.

        Args:
            env: overrides its settings for this start.
        """
        self._starts += 1
        kubeconfig = self.plane.service_account_kubeconfig(*RECONCILER_ACCOUNT)
        program = Program(
            name=f"reconciler-{self._starts}",
            argv=[script("broker"), "serve"],
            env={**self.settings(), **(env or {}), "KUBECONFIG": str(kubeconfig)},
            cwd=ROOT,
        )
        self.report("starting the reconciler")
        child = self.plane.supervisor.start(program)
        child.await_ready(lambda: answers(f"{self.operator_url}/readyz"), timeout_s=READY_TIMEOUT_S)
        self._reconciler = child
        return child

    def kill_reconciler(self) -> None:
        """Kill the reconciler as a crash would."""
        if self._reconciler is not None:
            self._reconciler.kill()
            self._reconciler = None

    def settings(self) -> dict[str, str]:
        """Return the reconciler's environment."""
        prefix = "PLEXSPHERE_PROVISIONING_BROKER"
        return {
            "PLEXSPHERE_DSN": self.postgres.dsn,
            f"{prefix}_ENROL_BASE_URL": self.node_url,
            f"{prefix}_PLEXD_DOWNLOAD_URL": f"{self._downloads()}/plexd-linux-{{arch}}",
            f"{prefix}_PLEXD_SHA256": self._sums(),
            f"{prefix}_PLEXD_IMAGE": "registry.example.org/plexd:v0.8.0",
            "PLEXSPHERE_NODE_LISTEN": self.node_url.removeprefix("http://"),
            "PLEXSPHERE_OPERATOR_LISTEN": self.operator_url.removeprefix("http://"),
            **self._env,
        }

    def start_function(self, name: str, argv: Sequence[str]) -> None:
        """Start a function and make core call it under its name.

        Args:
            name: As Compositions say in `functionRef`.
            argv: The program; gets `--address` and `--tls-certs-dir`.
        """
        port = self.function_port if name == FUNCTION_NAME else free_port()
        self.run_function(name, argv, port)
        self.core.register_function(name, port, host=self.host)

    def run_function(self, name: str, argv: Sequence[str], port: int) -> Child:
        """Start a function's process and return once it listens; core is not told of it.

        Args:
            name: Of its log and its certificates; unique among the processes.
            argv: As for `start_function`.
            port: Where it serves mutual TLS; on loopback, unless core is elsewhere.
        """
        certificates = self.core.function_certificates(name, self.host)
        address = f"{'127.0.0.1' if self.host == LOCALHOST else '0.0.0.0'}:{port}"  # noqa: S104 - mutual TLS, and only when asked for
        program = Program(
            name=name,
            argv=[*argv, "--address", address, "--tls-certs-dir", str(certificates)],
            # Several functions run here, and they would all want its default port.
            env={"METRICS_ADDRESS": ""},
            cwd=ROOT,
        )
        child = self.plane.supervisor.start(program)
        child.await_ready(lambda: listens(port), timeout_s=READY_TIMEOUT_S)
        return child

    @property
    def core(self) -> Crossplane:
        """Crossplane on this stack's control plane.

        Raises:
            RuntimeError: It is not started.
        """
        if self.crossplane is None:
            message = "cannot use crossplane: it is not started"
            raise RuntimeError(message)
        return self.crossplane

    def install_product(self) -> None:
        """Install our function, XRD and Composition; a subclass may bring them as packages."""
        self.start_function(FUNCTION_NAME, function_command())
        self.plane.apply(*(ROOT / part for part in PRODUCT))

    def install_blueprints(self) -> None:
        """Install the demo cloud's blueprint; a subclass may bring others."""
        self.plane.apply(*(ROOT / part for part in BLUEPRINTS))

    def _start_crossplane(self) -> None:
        self.crossplane = Crossplane(self.plane.cluster, self.plane.run_dir)
        if self.plane.is_ours:
            self.crossplane.start(self.plane.supervisor, report=self.report)
            return
        self.report("looking at the cluster")
        existing.check_crossplane(self.plane.cluster, FUNCTION_NAME, pythonic.FUNCTION_NAME)
        if self.postgres.is_ours:
            existing.check_no_nodes(self.plane.cluster)

    def _start_other_functions(self) -> None:
        program = pythonic.ensure(report=self.report)
        self.report("starting the functions")
        self.start_function(pythonic.FUNCTION_NAME, [str(program)])

    def _start_cloud(self) -> None:
        self.report("starting the demo cloud")
        kubeconfig = self.plane.service_account_kubeconfig(*CLOUD_ACCOUNT)
        self.cloud_root.mkdir(parents=True, exist_ok=True)
        program = Program(
            name="demo-cloud",
            argv=[sys.executable, "-m", "dev.cloud", "--kubeconfig", str(kubeconfig),
                  "--root", str(self.cloud_root)],
            cwd=ROOT,
        )  # fmt: skip
        child = self.plane.supervisor.start(program)
        child.await_ready((self.cloud_root / "downloads.url").exists, timeout_s=READY_TIMEOUT_S)

    def _downloads(self) -> str:
        return (self.cloud_root / "downloads.url").read_text(encoding="utf-8").strip()

    def _sums(self) -> str:
        from dev.cloud.downloads import sha256_hex  # noqa: PLC0415 - aiohttp, only when needed

        digest = sha256_hex()
        return f"amd64={digest},arm64={digest}"

    def _write_env(self) -> None:
        lines = {
            "PLEXSPHERE_DSN": self.postgres.dsn,
            "BROKER_NODE_URL": self.node_url,
            "BROKER_OPERATOR_URL": self.operator_url,
            "FUNCTION_ADDRESS": f"127.0.0.1:{self.function_port}",
        }
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        (self.run_dir / "env").write_text(text, encoding="utf-8")


def script(name: str) -> str:
    """Return the path of one of our commands, in the environment that runs this."""
    return str(Path(sys.executable).parent / name)


def function_command() -> list[str]:
    """Return how our function is started here, but for its address and certificates."""
    return [script("function")]


def listens(port: int) -> bool:
    """Tell whether something accepts connections on a loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the stack until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m dev.stack", description=main.__doc__)
    parser.add_argument("--run-dir", type=Path, default=Path(".run"), help="default: .run")
    run_dir: Path = parser.parse_args(arguments).run_dir
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    report = binaries.console()
    started = time.monotonic()
    try:
        with Stack(run_dir, report=report) as stack:
            pid_file = stack.run_dir / PID_FILE
            pid_file.write_text(str(os.getpid()), encoding="utf-8")
            report(f"ready after {time.monotonic() - started:.1f} s; Ctrl-C ends it")
            kubectl = binaries.ensure(["kubectl"], report=report)["kubectl"]
            print(next_steps.after_up(stack.plane.kubeconfig, kubectl=kubectl), flush=True)
            over.wait()
            pid_file.unlink(missing_ok=True)
    except (ProcessError, KubeError) as error:
        sys.exit(f"up: {error}")


if __name__ == "__main__":
    main()
