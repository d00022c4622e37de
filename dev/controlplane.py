"""The control plane as host processes: start order, readiness, access, end.

Etcd, API server and controller manager as one thing with a life, and an existing cluster in
their place. Everything in `dev` and the end-to-end tests may import it.

`python -m dev.controlplane --run-dir DIR` starts it with Crossplane until Ctrl-C.
"""

import argparse
import fcntl
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, TextIO

from dev import accounts, apiserver, binaries, crossplane, existing
from dev.kube import Cluster, KubeError
from dev.objects import Source
from dev.process import Child, ProcessError, answers, free_port, reach_loopback_directly
from dev.supervisor import Supervisor
from dev.toolchain import Report

READY_TIMEOUT_S = 60.0
"""Each part; the slowest needs 3 s on two idle cores."""

EXISTING_CLUSTER = "BROKER_KUBECONFIG"
"""Names a kubeconfig whose cluster is used instead of starting one."""


class ControlPlane:
    """An API server with its controllers: our own processes, or a cluster that exists.

    Args:
        run_dir: certificates, data, logs and kubeconfigs; made when missing. Data of an
            earlier run in it is not reused: every start gives an empty cluster.
        report: gets a line per step; `None` keeps silent.
    """

    def __init__(self, run_dir: Path, *, report: Report | None = None) -> None:
        self.run_dir = run_dir.absolute()
        self.report: Report = report or (lambda _line: None)
        self.kubeconfig = self.run_dir / "kubeconfig"
        self.is_ours = True
        self._supervisor: Supervisor | None = None
        self._cluster: Cluster | None = None
        self._files: apiserver.Files | None = None
        self._lock: TextIO | None = None
        self._etcd: Child | None = None
        self._server: Child | None = None
        self._manager: Child | None = None

    @classmethod
    def existing(
        cls, kubeconfig: Path, run_dir: Path, *, report: Report | None = None
    ) -> "ControlPlane":
        """Use a cluster that runs already; `start` and `stop` touch none of it.

        Args:
            kubeconfig: one file, whose current context is used; its user must be allowed
                what an administrator is.
            run_dir: gets token kubeconfigs and caches.
            report: as for the class.
        """
        plane = cls(run_dir, report=report)
        plane.kubeconfig = kubeconfig.absolute()
        plane.is_ours = False
        return plane

    @classmethod
    def from_environment(cls, run_dir: Path, *, report: Report | None = None) -> "ControlPlane":
        """Use the cluster that `$BROKER_KUBECONFIG` names, or a new one when unset."""
        given = os.environ.get(EXISTING_CLUSTER)
        if given:
            return cls.existing(Path(given), run_dir, report=report)
        return cls(run_dir, report=report)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def cluster(self) -> Cluster:
        """The admin's client.

        Raises:
            RuntimeError: not started.
        """
        if self._cluster is None:
            message = "cannot use control plane: it is not started"
            raise RuntimeError(message)
        return self._cluster

    @property
    def supervisor(self) -> Supervisor:
        """Owner of the processes; Crossplane joins it, so that it ends before them.

        Raises:
            RuntimeError: not started.
        """
        if self._supervisor is None:
            message = "cannot use control plane: it is not started"
            raise RuntimeError(message)
        return self._supervisor

    @property
    def audit_log(self) -> Path | None:
        """JSON lines, one per write to the API server; `None` for an existing cluster."""
        return self._files.audit_log if self._files else None

    def start(self) -> None:
        """Start everything and return once it is ready.

        Raises:
            ProcessError: a part did not become ready; what had started is stopped.
            KubeError: an existing cluster cannot be used; says what is missing.
        """
        self.run_dir.mkdir(parents=True, exist_ok=True)
        reach_loopback_directly()
        self._supervisor = Supervisor(self.run_dir)
        try:
            if self.is_ours:
                self._claim()
                self._start_parts(self._supervisor)
            else:
                existing.check_kubeconfig(self.kubeconfig)
            self._cluster = Cluster(self.kubeconfig, self.run_dir)
            if not self.is_ours:
                existing.check_access(self._cluster)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End what was started, the youngest first.

        Idempotency: a second call finds nothing to end.
        """
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None
        if self._supervisor is not None:
            self._supervisor.stop()
            self._supervisor = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def etcd(self) -> str | None:
        """URL of etcd, where objects can be written in bulk; `None` for an existing cluster."""
        return self._files.etcd if self._files else None

    def stop_controllers(self) -> None:
        """End our controller manager: nobody collects, fills or empties anything any more.

        Idempotency: a second call finds nothing to end; nor does one on an existing cluster.
        """
        if self._manager is not None:
            self._manager.stop()

    def back_up(self, copy: Path) -> None:
        """Copy all that our etcd holds, as of one moment; it stands still meanwhile.

        Args:
            copy: Made; must not exist.

        Raises:
            RuntimeError: there is no etcd of ours.
        """
        files, etcd, _ = self._own_parts()
        etcd.pause()
        try:
            shutil.copytree(files.data, copy)
        finally:
            etcd.resume()

    def restore(self, copy: Path) -> None:
        """Go back to a copy of `back_up`: all three end at once and begin anew on it.

        Certificates, tokens and URLs stay as they are.

        Raises:
            ProcessError: a part did not become ready.
            RuntimeError: there is no etcd of ours.
        """
        files, etcd, server = self._own_parts()
        self.stop_controllers()
        server.kill()
        etcd.kill()
        shutil.rmtree(files.data)
        shutil.copytree(copy, files.data)
        self._run_parts(self.supervisor, files)

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Answer a kubeconfig with a fresh token of that service account.

        Raises:
            RefusedError: 404 when the account does not exist.
        """
        path = self.run_dir / "accounts" / f"{namespace}.{name}.kubeconfig"
        return accounts.service_account_kubeconfig(self.cluster, namespace, name, path)

    def apply(self, *sources: Source, **options: float) -> list[dict[str, Any]]:
        """Server-side apply; as `Cluster.apply`."""
        return self.cluster.apply(*sources, **options)

    def _claim(self) -> None:
        """Keep a second control plane out of this folder while this one runs."""
        self._lock = (self.run_dir / ".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = f"cannot start control plane: another one runs in {self.run_dir}"
            raise ProcessError(message) from error

    def _start_parts(self, supervisor: Supervisor) -> None:
        folder = self.run_dir / "parts"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        files = self._files = apiserver.prepare(
            folder, admin=self.kubeconfig, audit_log=supervisor.logs / "audit.jsonl"
        )
        self._run_parts(supervisor, files)

    def _own_parts(self) -> tuple[apiserver.Files, Child, Child]:
        """Return what our etcd and API server read, and both."""
        if self._files is None or self._etcd is None or self._server is None:
            message = "cannot use etcd: there is none of ours"
            raise RuntimeError(message)
        return self._files, self._etcd, self._server

    def _run_parts(self, supervisor: Supervisor, files: apiserver.Files) -> None:
        """Start the three on whatever etcd's folder holds."""
        programs = binaries.ensure(binaries.CONTROL_PLANE, report=self.report)
        self.report("starting etcd")
        etcd = self._etcd = supervisor.start(apiserver.etcd(programs["etcd"], files))
        etcd.await_ready(lambda: answers(f"{files.etcd}/readyz"), timeout_s=READY_TIMEOUT_S)
        self.report("starting kube-apiserver")
        server = self._server = supervisor.start(
            apiserver.kube_apiserver(programs["kube-apiserver"], files)
        )
        server.await_ready(
            lambda: answers(f"{files.server}/readyz", authority=files.authority),
            timeout_s=READY_TIMEOUT_S,
        )
        self.report("starting kube-controller-manager")
        port = free_port()
        manager = self._manager = supervisor.start(
            apiserver.kube_controller_manager(programs["kube-controller-manager"], files, port)
        )
        manager.await_ready(
            lambda: answers(f"https://127.0.0.1:{port}/healthz", authority=files.authority),
            timeout_s=READY_TIMEOUT_S,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Start a control plane with Crossplane and wait for Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m dev.controlplane", description=main.__doc__)
    parser.add_argument("--run-dir", type=Path, default=Path(".run"), help="default: .run")
    run_dir: Path = parser.parse_args(arguments).run_dir
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    report = binaries.console()
    try:
        _serve(run_dir, report)
    except KeyboardInterrupt:
        report("stopped")
    except (KubeError, ProcessError) as error:
        sys.exit(str(error))


def _serve(run_dir: Path, report: Report) -> NoReturn:
    started = time.monotonic()
    with ControlPlane.from_environment(run_dir, report=report) as plane:
        core = crossplane.Crossplane(plane.cluster, plane.run_dir)
        if plane.is_ours:
            core.start(plane.supervisor, report=report)
        report(f"ready after {time.monotonic() - started:.1f} s; Ctrl-C ends it")
        print(f"export KUBECONFIG={plane.kubeconfig}", flush=True)
        while True:
            signal.pause()


if __name__ == "__main__":
    main()
