"""The function starts with its own requirements alone: no Kubernetes client, no driver."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
INSTALL_TIMEOUT_S = 240
RUN_TIMEOUT_S = 30

RECONCILERS = ("aiohttp", "alembic", "asyncpg", "cryptography", "kubernetes", "sqlalchemy")

PROBE = f"""
import importlib.util, sys
import function.main
present = [name for name in {RECONCILERS!r} if importlib.util.find_spec(name)]
modules = {{name.partition(".")[0] for name in sys.modules}}
loaded = sorted(modules & {{*{RECONCILERS!r}, "reconciler"}})
print(present, loaded)
"""

pytestmark = [pytest.mark.integration, pytest.mark.timeout(INSTALL_TIMEOUT_S + 60)]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with the hash-pinned requirements and a copy of the package."""
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=60)
    interpreter = folder / "venv" / "bin" / "python"
    requirements = ROOT / "requirements" / "function.txt"
    command = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*command, "--require-hashes", "--requirement", str(requirements)],
        check=True,
        timeout=INSTALL_TIMEOUT_S,
    )
    shutil.copytree(ROOT / "function", folder / "source" / "function")
    return interpreter


def run(python: Path, *arguments: str) -> str:
    done = subprocess.run(
        [python, *arguments],
        cwd=python.parents[2] / "source",
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_imports_nothing_of_the_reconciler(python: Path) -> None:
    assert run(python, "-c", PROBE) == "[] []\n"


def test_its_command_runs(python: Path) -> None:
    told = run(python, "-c", "from function.main import cli; cli(['--version'])")

    assert told.startswith("function, version ")


def test_it_answers_a_request(python: Path) -> None:
    program = (
        "from crossplane.function.proto.v1 import run_function_pb2 as v1;"
        "from function.fn import FunctionRunner; import asyncio;"
        "print(asyncio.run(FunctionRunner().RunFunction(v1.RunFunctionRequest(), None))"
        ".results[0].message)"
    )

    assert run(python, "-c", program).startswith("cannot run step: input.kind: ")
