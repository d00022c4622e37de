"""How etcd, kube-apiserver and kube-controller-manager are started on a host.

Their flags and certificates. Only `dev.controlplane` and tests import it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dev import kubeconfig, pki
from dev.process import Program, free_port

ADMIN_GROUP = "system:masters"
"""Only the admin client here is in it; everything else has rights of its own."""

MANAGER_USER = "system:kube-controller-manager"
"""The user that the API server's built-in roles expect the controller manager to be."""

SERVICE_RANGE = "10.0.0.0/24"
"""Services get addresses that lead nowhere: there is no network of pods here."""

ISSUER = "https://kubernetes.default.svc"

CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "validatingadmissionpolicy-status-controller",
)
"""What Crossplane and our policies rely on; without kubelets the others have no work."""

AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    resources: [{group: coordination.k8s.io}, {resources: [events]}, {group: events.k8s.io}]
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
"""
"""Who wrote what, and when: the order of deletions is proved from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Everything the API server's parts read, in one folder.

    Args:
        folder: private to this user.
        audit_log: gets a JSON line per write.
        server: URL of the API server.
        etcd: client URL of etcd.
        peer: URL that etcd keeps for members it never gets.
    """

    folder: Path
    audit_log: Path
    server: str
    etcd: str
    peer: str

    @property
    def authority(self) -> Path:
        return self.folder / "apiserver" / "ca.crt"

    @property
    def data(self) -> Path:
        """Where etcd keeps everything."""
        return self.folder / "etcd"


def prepare(folder: Path, *, admin: Path, audit_log: Path) -> Files:
    """Choose ports and write certificates, keys, kubeconfigs and the audit policy.

    Args:
        folder: gets them all.
        admin: gets the admin's kubeconfig.
        audit_log: an earlier one is removed.
    """
    audit_log.unlink(missing_ok=True)
    files = Files(
        folder=folder,
        audit_log=audit_log,
        server=f"https://127.0.0.1:{free_port()}",
        etcd=f"http://127.0.0.1:{free_port()}",
        peer=f"http://127.0.0.1:{free_port()}",
    )
    authority = pki.Authority.create("broker-dev")
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")
    authority.server_folder(folder / "apiserver", "kube-apiserver", *names)
    authority.server_folder(folder / "manager", MANAGER_USER)
    key = pki.new_key()
    (folder / "accounts.key").touch(mode=0o600)
    (folder / "accounts.key").write_bytes(pki.private_key_pem(key))
    (folder / "accounts.pub").write_bytes(pki.public_key_pem(key))
    (folder / "audit-policy.yaml").write_text(AUDIT_POLICY, encoding="utf-8")
    users = {
        admin: pki.Subject(name="broker-dev-admin", groups=(ADMIN_GROUP,)),
        folder / "manager.kubeconfig": pki.Subject(name=MANAGER_USER),
    }
    for path, subject in users.items():
        user = kubeconfig.certificate_user(authority.issue(subject))
        server = kubeconfig.server(files.server, authority.certificate)
        kubeconfig.write(path, kubeconfig.document(server, user))
    return files


def etcd(program: Path, files: Files) -> Program:
    """Describe etcd without fsync: what it holds is thrown away anyhow."""
    flags = {
        "name": "broker-dev",
        "data-dir": files.data,
        "listen-client-urls": files.etcd,
        "advertise-client-urls": files.etcd,
        "listen-peer-urls": files.peer,
        "initial-advertise-peer-urls": files.peer,
        "initial-cluster": f"broker-dev={files.peer}",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }
    return Program(name="etcd", argv=_argv(program, flags))


def kube_apiserver(program: Path, files: Files) -> Program:
    """Describe the API server: RBAC, tokens of service accounts, an audit log."""
    flags = {
        "etcd-servers": files.etcd,
        "bind-address": "127.0.0.1",
        "advertise-address": "127.0.0.1",
        "secure-port": files.server.rpartition(":")[2],
        "endpoint-reconciler-type": "none",
        "cert-dir": files.folder / "apiserver",
        "tls-cert-file": files.folder / "apiserver" / "tls.crt",
        "tls-private-key-file": files.folder / "apiserver" / "tls.key",
        "client-ca-file": files.authority,
        "service-account-issuer": ISSUER,
        "service-account-signing-key-file": files.folder / "accounts.key",
        "service-account-key-file": files.folder / "accounts.pub",
        "authorization-mode": "RBAC",
        "service-cluster-ip-range": SERVICE_RANGE,
        # Without it no pod is admitted before its token Secret; here are no pods.
        "disable-admission-plugins": "ServiceAccount",
        "allow-privileged": "true",
        "profiling": "false",
        "audit-policy-file": files.folder / "audit-policy.yaml",
        "audit-log-path": files.audit_log,
    }
    return Program(name="kube-apiserver", argv=_argv(program, flags))


def kube_controller_manager(program: Path, files: Files, port: int) -> Program:
    """Describe the controllers that matter here, each under its own service account."""
    flags = {
        "kubeconfig": files.folder / "manager.kubeconfig",
        "controllers": ",".join(CONTROLLERS),
        "leader-elect": "false",
        # The policies tell the garbage collector from the namespace controller by name.
        "use-service-account-credentials": "true",
        "service-account-private-key-file": files.folder / "accounts.key",
        "root-ca-file": files.authority,
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "tls-cert-file": files.folder / "manager" / "tls.crt",
        "tls-private-key-file": files.folder / "manager" / "tls.key",
        "profiling": "false",
    }
    return Program(name="kube-controller-manager", argv=_argv(program, flags))


def _argv(program: Path, flags: Mapping[str, object]) -> Sequence[str]:
    return [str(program), *(f"--{name}={value}" for name, value in flags.items())]
