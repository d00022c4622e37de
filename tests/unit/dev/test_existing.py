"""What is said of a cluster that cannot be used."""

from pathlib import Path

import pytest

from dev import existing, kubeconfig
from dev.controlplane import ControlPlane
from dev.kube import KubeError
from dev.process import free_port


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    path = kubeconfig.write(tmp_path / "config", kubeconfig.document({"server": url}, {}))

    with pytest.raises(KubeError, match=f"{url}: the API server is not reached"):
        ControlPlane.existing(path, tmp_path / "run").start()


def test_a_kubeconfig_that_names_no_cluster_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("{}", encoding="utf-8")

    with pytest.raises(KubeError, match="names no cluster"):
        existing.check_kubeconfig(tmp_path / "config")
