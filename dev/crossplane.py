"""Crossplane core and its rbac manager as host processes, and functions it calls.

Installing core as its chart would, under its own service accounts, and making it call a
function that runs on this host. Everything in `dev` and the end-to-end tests may import it.
"""

import base64
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from dev import accounts, binaries, chart, handmade, pki
from dev.kube import Cluster
from dev.process import Child, ProcessError, Program, answers, free_port
from dev.supervisor import Supervisor
from dev.toolchain import Report

ACCOUNT = "crossplane"
RBAC_ACCOUNT = "rbac-manager"
"""Names that the chart fixes."""

ROOT_SECRET = "crossplane-root-ca"
SERVER_SECRET = "crossplane-tls-server"
CLIENT_SECRET = "crossplane-tls-client"
"""Names that the chart gives the Secrets which `core init` fills."""

INIT_TIMEOUT_S = 60.0
"""`core init` fails until its CRDs are established and its rights are aggregated; both
take some seconds. A kubelet would repeat it too."""

INIT_RUN_TIMEOUT_S = 30.0
"""One run of it takes a second."""

INIT_PAUSE_S = 0.2

START_TIMEOUT_S = 60.0
"""Core is ready some two seconds after it starts."""


class Crossplane:
    """Crossplane on one API server.

    Args:
        cluster: an administrator's client.
        run_dir: gets certificates, kubeconfigs and caches.
    """

    def __init__(self, cluster: Cluster, run_dir: Path) -> None:
        self._cluster = cluster
        self._folder = run_dir / "crossplane"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._metrics_port = free_port()
        self._probe_url = f"http://127.0.0.1:{free_port()}/readyz"
        self._supervisor: Supervisor | None = None
        self._core: Child | None = None

    @property
    def metrics_url(self) -> str:
        """Where core, once started, answers with its metrics."""
        return f"http://127.0.0.1:{self._metrics_port}/metrics"

    @property
    def kubeconfig(self) -> Path:
        """What core uses, once started: a token of its own service account."""
        return self._folder / f"{ACCOUNT}.kubeconfig"

    @property
    def rbac_kubeconfig(self) -> Path:
        """What the rbac manager uses, once started: a token of its own."""
        return self._folder / f"{RBAC_ACCOUNT}.kubeconfig"

    def start(self, supervisor: Supervisor, *, report: Report) -> None:
        """Install Crossplane and start its two programs, as its chart's pods would.

        Args:
            supervisor: owns them.
            report: gets a line per step.

        Raises:
            ProcessError: a part failed or was not ready in time.

        Idempotency: what is installed already stays; run it once per supervisor.
        """
        binary = binaries.ensure(["crossplane"], report=report)["crossplane"]
        manifests = binaries.core_manifests(report=report)
        report("installing crossplane")
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": chart.NAMESPACE},
        }
        self._cluster.apply(namespace, *chart.rbac_objects(manifests.chart_templates))
        for account, path in ((ACCOUNT, self.kubeconfig), (RBAC_ACCOUNT, self.rbac_kubeconfig)):
            accounts.service_account_kubeconfig(self._cluster, chart.NAMESPACE, account, path)
        self._initialise(supervisor, binary, manifests)
        webhook_port = free_port()
        self._point_webhooks_here(manifests, webhook_port)
        report("starting crossplane")
        self._start_core(supervisor, binary, webhook_port)
        self._start_rbac_manager(supervisor, binary)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Kill core for the block; then another one begins, which remembers nothing.

        Raises:
            RuntimeError: it is not ours, or not started.
            ProcessError: the other one was not ready in time.
        """
        if self._supervisor is None or self._core is None:
            message = "cannot end crossplane: it is not ours, or not started"
            raise RuntimeError(message)
        self._core.kill()
        try:
            yield
        finally:
            self._run_core(self._supervisor, self._core.program)

    def function_certificates(self, name: str, *host_names: str) -> Path:
        """Answer a folder with which a function on this host can serve core.

        Args:
            name: the function's name.
            host_names: names and addresses beside `localhost` under which core reaches it.

        Returns:
            A folder with `ca.crt`, `tls.crt` and `tls.key`, for `--tls-certs-dir`.

        Raises:
            ProcessError: core has not been initialised.

        Idempotency: a second call issues a new certificate.
        """
        return self._authority().server_folder(self._folder / "functions" / name, name, *host_names)

    def register_function(self, name: str, port: int, *, host: str = "localhost") -> None:
        """Make core call `host:port` for every Composition step that names `name`.

        There is no package: the Function and its only revision are made by hand and
        paused, which keeps the package manager off them. Composing needs no more than
        the revision's label, state, endpoint and capability.

        Args:
            name: as Compositions say in `functionRef`.
            port: where the function serves mutual TLS.
            host: must be a name in the function's certificate.

        Idempotency: a second call moves the function to another endpoint.
        """
        (function,) = self._cluster.apply(handmade.function(name))
        self._cluster.apply(handmade.revision(name, owner_uid=function["metadata"]["uid"]))
        now = datetime.now(UTC)
        self._cluster.apply_status(handmade.revision_status(name, f"{host}:{port}", now))
        self._cluster.apply_status(handmade.function_status(name, now))

    def _initialise(
        self, supervisor: Supervisor, binary: Path, manifests: binaries.CoreManifests
    ) -> None:
        flags = {
            "namespace": chart.NAMESPACE,
            "service-account": ACCOUNT,
            "cr-ds-path": manifests.crds,
            "webhook-configurations-path": manifests.webhook_configurations,
            "webhook-service-name": "crossplane-webhooks",
            "webhook-service-namespace": chart.NAMESPACE,
            "webhook-service-port": 9443,
            "tlsca-secret-name": ROOT_SECRET,
            "tls-server-secret-name": SERVER_SECRET,
            "tls-client-secret-name": CLIENT_SECRET,
        }
        program = self._program("crossplane-init", binary, "core", "init", flags)
        deadline = time.monotonic() + INIT_TIMEOUT_S
        while not supervisor.run(program, timeout_s=INIT_RUN_TIMEOUT_S):
            if time.monotonic() > deadline:
                supervisor.check(program, timeout_s=INIT_RUN_TIMEOUT_S)
            time.sleep(INIT_PAUSE_S)

    def _point_webhooks_here(self, manifests: binaries.CoreManifests, port: int) -> None:
        """Core's webhooks name a Service, and nothing routes to Services here."""
        bundle = base64.b64encode(self._authority().certificate).decode()
        for file in sorted(manifests.webhook_configurations.glob("*.yaml")):
            for item in filter(None, yaml.safe_load_all(file.read_text(encoding="utf-8"))):
                found = self._cluster.get(
                    item["apiVersion"], item["kind"], item["metadata"]["name"]
                )
                if found is not None:
                    self._cluster.replace(local_webhooks(found, port=port, ca_bundle=bundle))

    def _start_core(self, supervisor: Supervisor, binary: Path, webhook_port: int) -> None:
        server = self._authority().server_folder(self._folder / "tls-server", "crossplane-webhooks")
        flags = {
            "namespace": chart.NAMESPACE,
            "service-account": ACCOUNT,
            "package-runtime": "External",
            "xpkg-cache-dir": self._folder / "packages",
            "webhook-port": webhook_port,
            "metrics-port": self._metrics_port,
            "health-probe-port": urlsplit(self._probe_url).port,
            "tls-server-secret-name": SERVER_SECRET,
            "tls-client-secret-name": CLIENT_SECRET,
            "tls-server-certs-dir": server,
            "tls-client-certs-dir": self._mounted(CLIENT_SECRET),
        }
        (self._folder / "packages").mkdir(exist_ok=True)
        self._supervisor = supervisor
        self._run_core(supervisor, self._program("crossplane", binary, "core", "start", flags))

    def _run_core(self, supervisor: Supervisor, program: Program) -> None:
        self._core = supervisor.start(program)
        self._core.await_ready(lambda: answers(self._probe_url), timeout_s=START_TIMEOUT_S)

    def _start_rbac_manager(self, supervisor: Supervisor, binary: Path) -> None:
        env = {"KUBECONFIG": str(self.rbac_kubeconfig)}
        init = Program(name="crossplane-rbac-init", argv=[str(binary), "rbac", "init"], env=env)
        supervisor.check(init, timeout_s=INIT_TIMEOUT_S)
        role = "--provider-clusterrole=crossplane:allowed-provider-permissions"
        supervisor.start(
            Program(name="crossplane-rbac", argv=[str(binary), "rbac", "start", role], env=env)
        )

    def _program(
        self, name: str, binary: Path, part: str, verb: str, flags: Mapping[str, object]
    ) -> Program:
        return Program(
            name=name,
            argv=[str(binary), part, verb, *(f"--{flag}={value}" for flag, value in flags.items())],
            env={"KUBECONFIG": str(self.kubeconfig)},
        )

    def _secret(self, name: str) -> dict[str, bytes]:
        secret = self._cluster.get("v1", "Secret", name, chart.NAMESPACE)
        if secret is None or not secret.get("data"):
            message = f"cannot read secret {name!r}: core has not been initialised"
            raise ProcessError(message)
        return {key: base64.b64decode(value) for key, value in secret["data"].items()}

    def _authority(self) -> pki.Authority:
        data = self._secret(ROOT_SECRET)
        try:
            pair = pki.Pair(certificate=data["tls.crt"], key=data["tls.key"])
        except KeyError as error:
            message = f"cannot issue certificates: Secret {ROOT_SECRET} has no {error}"
            raise ProcessError(message) from None
        return pki.Authority.load(pair)

    def _mounted(self, name: str) -> Path:
        """Lay a TLS Secret out in a folder, as a kubelet mounts it."""
        data = self._secret(name)
        pair = pki.Pair(certificate=data["tls.crt"], key=data["tls.key"])
        return pki.write_folder(self._folder / name, data["ca.crt"], pair)


def local_webhooks(item: dict[str, Any], *, port: int, ca_bundle: str) -> dict[str, Any]:
    """Make a webhook configuration call this host instead of a Service.

    Args:
        item: the configuration as the API server holds it; not changed.
        port: where the webhooks listen on loopback.
        ca_bundle: base64 of the PEM that their certificate is checked against.
    """
    webhooks = []
    for webhook in item["webhooks"]:
        service = webhook["clientConfig"].get("service") or {}
        url = f"https://127.0.0.1:{port}{service.get('path', '')}"
        webhooks.append({**webhook, "clientConfig": {"url": url, "caBundle": ca_bundle}})
    return {**item, "webhooks": webhooks}
