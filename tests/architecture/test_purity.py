"""What the import linter cannot see: rules about the text of the code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*ROOT.glob("function/**/*.py"), *ROOT.glob("reconciler/**/*.py")])
PURE = sorted(
    [
        path
        for room in ("compose", "contract", "inputs", "model", "render")
        for path in ROOT.glob(f"function/{room}/**/*.py")
    ]
    + [
        *ROOT.glob("reconciler/catalog/**/*.py"),
        *ROOT.glob("reconciler/domain/**/*.py"),
    ]
)
REVEALS = {
    "function/render/documents/cloudinit.py",
    "reconciler/adapters/kubernetes/namespaces/token_secrets.py",
    "reconciler/domain/identity/token.py",
}
"""Where a token's plaintext may be unwrapped: where it is delivered, and where it is hashed."""

IMPURE_CALLS = {"now", "utcnow", "today", "uuid1", "uuid4", "uuid7", "monotonic", "token_hex"}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_every_module_has_a_charter(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_no_file_outgrows_its_cap(path: Path) -> None:
    domain = "contract" in path.parts or "domain" in path.parts
    lines = len(path.read_text(encoding="utf-8").splitlines())

    assert lines <= (200 if domain else 300)


@pytest.mark.parametrize("path", PURE, ids=_name)
def test_pure_code_awaits_nothing_and_asks_no_clock_or_dice(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in IMPURE_CALLS


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_a_token_is_unwrapped_only_where_it_is_delivered_or_hashed(path: Path) -> None:
    reveals = "reveal()" in path.read_text(encoding="utf-8")

    assert reveals == (_name(path) in REVEALS)
