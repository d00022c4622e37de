"""Kubeconfig files."""

import base64
import stat
from pathlib import Path

import pytest
import yaml

from dev import kubeconfig, pki


def test_a_written_file_gives_back_its_cluster(tmp_path: Path) -> None:
    server = kubeconfig.server("https://127.0.0.1:1", b"authority")
    config = kubeconfig.document(server, {"token": "sample"})

    path = kubeconfig.write(tmp_path / "a" / "config", config)

    cluster = kubeconfig.current_cluster(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert cluster["server"] == "https://127.0.0.1:1"
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"authority"


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = kubeconfig.write(tmp_path / "config", kubeconfig.document({}, {}))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_writing_leaves_nothing_beside_it(tmp_path: Path) -> None:
    kubeconfig.write(tmp_path / "config", kubeconfig.document({}, {}))
    kubeconfig.write(tmp_path / "config", kubeconfig.document({}, {}))

    assert [path.name for path in tmp_path.iterdir()] == ["config"]


def test_a_certificate_user_carries_both_parts() -> None:
    user = kubeconfig.certificate_user(pki.Pair(certificate=b"c", key=b"k"))

    assert user == {"client-certificate-data": "Yw==", "client-key-data": "aw=="}


@pytest.mark.parametrize(
    "config",
    [
        pytest.param({}, id="empty"),
        pytest.param({"current-context": "a"}, id="no such context"),
        pytest.param(
            {"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "b"}}]},
            id="no such cluster",
        ),
    ],
)
def test_a_kubeconfig_without_current_cluster_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="names no cluster"):
        kubeconfig.current_cluster(config)
