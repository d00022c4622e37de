"""The commands that `make up` prints when the stack is there: from nothing to a node, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Final

NAMESPACE: Final = "plexsphere-project-0197b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b"
"""Of the Project in `example/platform`."""

_COMMANDS: Final = """export KUBECONFIG={kubeconfig}
export PATH={programs}:$PATH
kubectl apply --server-side -f example/platform
kubectl wait --for=create namespace/{namespace}
kubectl apply --server-side -f example/shop/web-1.yaml
.venv/bin/broker why web-1 -n {namespace}"""


def after_up(kubeconfig: Path, *, kubectl: Path) -> str:
    """Return the commands, to be typed at the project's root in another terminal.

    Args:
        kubeconfig: The stack's.
        kubectl: The program, as built here.
    """
    return _COMMANDS.format(kubeconfig=kubeconfig, programs=kubectl.parent, namespace=NAMESPACE)
