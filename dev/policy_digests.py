"""What our admission policies say, as the digests that the reconciler compares them with.

Writing `reconciler/adapters/kubernetes/access/policy_digests.py` from `deploy/policies`. A
test fails when the file drifted; `make generate` writes it.
"""

from pathlib import Path

from dev import arguments
from dev.objects import documents
from reconciler.adapters.kubernetes.access import policies

ROOT = Path(__file__).parents[1]
FILE = ROOT / "reconciler" / "adapters" / "kubernetes" / "access" / "policy_digests.py"
HEADER = '''"""The rules of `deploy/policies` by digest; `make generate` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DIGESTS: Final[Mapping[str, str]] = {
'''


def render() -> str:
    """Answer the module's text, equal for policies that decide the same."""
    found = {
        item["metadata"]["name"]: policies.digest(item["spec"])
        for item in documents([ROOT / "deploy" / "policies"])
        if item["kind"] == "ValidatingAdmissionPolicy"
        # Nodes keep their order without the others, which limit our own account.
        and item["metadata"]["name"].startswith("plexsphere-hold")
    }
    lines = [f'    "{name}": "{found[name]}",\n' for name in sorted(found)]
    return "".join((HEADER, *lines, "}\n"))


if __name__ == "__main__":
    arguments.none("dev.policy_digests", __doc__)
    FILE.write_text(render(), encoding="utf-8")
