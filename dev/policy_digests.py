"""What our admission policies say, as the digests that the reconciler compares them with.

Belongs here: writing `reconciler/adapters/kubernetes/policy_digests.py` from `deploy/policies`. Not
here: what counts as saying the same. A test fails when the file drifted; `make generate` writes it.
"""

from pathlib import Path

from dev.objects import documents
from reconciler.adapters.kubernetes import policies

ROOT = Path(__file__).parents[1]
FILE = ROOT / "reconciler" / "adapters" / "kubernetes" / "policy_digests.py"
HEADER = '''"""The rules of `deploy/policies` by digest; written by `make generate`, never by hand.

Belongs here: that. Not here: how a digest is made and compared (`policies`).
"""

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
    FILE.write_text(render(), encoding="utf-8")
