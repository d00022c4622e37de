"""What the control plane's parts are told."""

import base64
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from dev import apiserver
from dev.process import Program


@pytest.fixture
def files(tmp_path: Path) -> apiserver.Files:
    return apiserver.prepare(
        tmp_path / "parts", admin=tmp_path / "kubeconfig", audit_log=tmp_path / "audit.jsonl"
    )


def subject(kubeconfig: Path) -> str:
    user = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["users"][0]["user"]
    certificate = x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))
    return certificate.subject.rfc4514_string()


def flags(program: Program) -> Mapping[str, str]:
    pairs = (word.removeprefix("--").split("=", 1) for word in program.argv[1:])
    return dict(pairs)


def test_only_the_admin_is_in_the_masters_group(files: apiserver.Files, tmp_path: Path) -> None:
    assert subject(tmp_path / "kubeconfig") == "CN=broker-dev-admin,O=system:masters"
    assert subject(files.folder / "manager.kubeconfig") == "CN=system:kube-controller-manager"


def test_everything_listens_on_loopback_and_on_ports_of_its_own(files: apiserver.Files) -> None:
    ports = {url.rpartition(":")[2] for url in (files.server, files.etcd, files.peer)}

    assert len(ports) == 3
    assert all("//127.0.0.1:" in url for url in (files.server, files.etcd, files.peer))
    server = flags(apiserver.kube_apiserver(Path("server"), files))
    manager = flags(apiserver.kube_controller_manager(Path("manager"), files, 1))
    assert server["bind-address"] == manager["bind-address"] == "127.0.0.1"


def test_rights_are_checked_and_tokens_can_be_signed(files: apiserver.Files) -> None:
    server = flags(apiserver.kube_apiserver(Path("server"), files))

    assert server["authorization-mode"] == "RBAC"
    assert Path(server["service-account-signing-key-file"]).exists()
    assert Path(server["service-account-key-file"]).exists()


def test_controllers_act_under_their_own_names(files: apiserver.Files) -> None:
    manager = flags(apiserver.kube_controller_manager(Path("manager"), files, 1))

    assert manager["use-service-account-credentials"] == "true"
    assert "validatingadmissionpolicy-status-controller" in manager["controllers"].split(",")


def test_private_keys_are_private(files: apiserver.Files) -> None:
    keys = list(files.folder.rglob("*.key"))

    assert len(keys) == 3
    assert all(key.stat().st_mode & 0o077 == 0 for key in keys)


def test_an_earlier_audit_log_is_removed(tmp_path: Path) -> None:
    audit_log = tmp_path / "audit.jsonl"
    audit_log.touch()

    apiserver.prepare(tmp_path / "parts", admin=tmp_path / "admin", audit_log=audit_log)

    assert not audit_log.exists()
