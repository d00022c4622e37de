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


def _written(path: Path, cluster: dict[str, str]) -> Path:
    return kubeconfig.write(path, kubeconfig.document(cluster, {}))


def test_an_authority_in_a_file_beside_it_comes_along(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"authority")
    given = {"server": "https://127.0.0.1:1", "certificate-authority": "ca.crt"}

    cluster = kubeconfig.portable_cluster(_written(tmp_path / "config", given))

    assert base64.b64decode(cluster.pop("certificate-authority-data")) == b"authority"
    assert cluster == {"server": "https://127.0.0.1:1"}


def test_what_else_a_cluster_says_comes_along(tmp_path: Path) -> None:
    given = {"server": "https://127.0.0.1:1", "tls-server-name": "kubernetes"}

    assert kubeconfig.portable_cluster(_written(tmp_path / "config", given)) == given


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        pytest.param("token: [secret", "it is not YAML", id="no YAML"),
        pytest.param("[secret]", "names no cluster", id="no mapping"),
        pytest.param(None, "No such file", id="absent"),
    ],
)
def test_a_kubeconfig_that_cannot_be_read_is_named_and_not_quoted(
    tmp_path: Path, text: str | None, detail: str
) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    with pytest.raises(ValueError, match=detail) as caught:
        kubeconfig.portable_cluster(path)

    assert "secret" not in str(caught.value)


def test_an_authority_that_is_gone_is_named(tmp_path: Path) -> None:
    path = _written(tmp_path / "config", {"certificate-authority": "gone.crt"})

    with pytest.raises(ValueError, match=r"gone\.crt: No such file"):
        kubeconfig.portable_cluster(path)
