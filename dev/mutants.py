"""Changes one thing in the code at a time, and looks whether any fast test notices.

`make mutants` draws a sample by seed over what decides, runs the tests that run the changed line
until one fails, and prints the share that was noticed and every one that was not. A change that
nothing notices is either a test that is missing or a line that is not needed. It works on a copy
of the tree, goes on where it was interrupted, and stops when its time is up. Not part of any
other check.

Drawing, running and telling.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final

from dev import covering
from dev.covering import Covered
from dev.mutations import Mutation, imported, is_in_function, is_program, mutate, mutations

ROOT: Final = Path(__file__).parents[1]
CODE: Final = ("reconciler/domain", "reconciler/app", "function/compose")
PACKAGES: Final = ("function", "reconciler")
NOT_COPIED: Final = (".git", ".venv", ".run", "__pycache__", ".*_cache", "*.egg-info", "results")
TESTS: Final = (
    *("tests/unit", "tests/golden", "tests/simulation", "tests/contract", "tests/architecture"),
    *("tests/faults", "tests/render", "tests/integration"),
)
"""Where fast tests are."""

FAST: Final = "not integration and not render and not e2e"
LEFT_OUT: Final = "not simulated_lives and not digests and not hash_seed"
"""Those that take longest and notice least that others do not."""

TEST_S: Final = 60
"""What one test may take; one that a change makes go on for ever has noticed it."""

TOLD_MAX: Final = 2000
"""Characters of what pytest said that are shown."""

QUICK: Final = 30
"""Tests that are tried first: of most changes one of these tells."""

READERS: Final = ("tests/architecture",)
"""Those that run no code but read it."""

RUN_S: Final = 900.0
"""What all tests of one change may take; of one that takes longer nothing is known."""

UNKNOWN: Final = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one file.

    Attributes:
        path: Below the tree.
        mutation: What is changed there.
    """

    path: str
    mutation: Mutation

    def __str__(self) -> str:
        return f"{self.path}:{self.mutation.line}: {self.mutation}"


def drawn(count: int, seed: int) -> list[Mutant]:
    """Draw some of all changes there are; one seed gives the same of one tree."""
    texts, every = _all()
    chosen = random.Random(seed).sample(every, len(every))  # noqa: S311 - a sample
    whole = (each for each in chosen if is_program(mutate(texts[each.path], each.mutation)))
    return list(islice(whole, count))


@cache
def _all() -> tuple[dict[str, str], list[Mutant]]:
    """Return the text of each file, and every change of it."""
    paths = sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py"))
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}
    every = [
        Mutant(path=path, mutation=mutation)
        for path, text in texts.items()
        for mutation in mutations(text)
    ]
    return texts, every


def stages(tree: Path, mutant: Mutant, covered: Covered) -> list[list[str]]:
    """Return which tests to run on a change: those that run its line, the quickest first.

    Then come the others of its module. What runs at import may be noticed by any test of its
    module or of one that imports it, and by those that read code: it runs but once, in whichever
    test comes first.
    """
    first = mutant.mutation.line
    lines = range(first, first + mutant.mutation.was.count("\n") + 1)
    if is_in_function((tree / mutant.path).read_text(encoding="utf-8"), first):
        tests = covered.of(mutant.path, lines)
        # What is kept of a call, as `functools.cache` does, runs in the first of its tests alone.
        others = [each for each in covered.of_modules([mutant.path]) if each not in set(tests)]
    else:
        tests = covered.of_modules([mutant.path, *importers(tree, mutant.path)])
        # What a data class is given runs no line of its module.
        others = [*importers(tree, mutant.path, within=["tests"]), *READERS]
    return [part for part in (tests[:QUICK], tests[QUICK:], others) if part]


def importers(tree: Path, path: str, within: Sequence[str] = PACKAGES) -> list[str]:
    """Return the modules of some folders that import a module, or something of it."""
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    code = sorted(each for folder in within for each in (tree / folder).rglob("*.py"))
    return [
        str(each.relative_to(tree))
        for each in code
        if module in imported(each.read_text(encoding="utf-8"))
    ]


def noticed(tree: Path, mutant: Mutant, covered: Covered) -> str:
    """Make a change in a tree, run its tests, undo it; return what `_run` does."""
    target = tree / mutant.path
    source = target.read_text(encoding="utf-8")
    chosen = stages(tree, mutant, covered)
    target.write_text(mutate(source, mutant.mutation), encoding="utf-8")
    until = time.monotonic() + RUN_S
    try:
        for tests in chosen:
            if failed := _run(tree, tests, until - time.monotonic()):
                return failed
    finally:
        target.write_text(source, encoding="utf-8")
    return ""


def _run(tree: Path, tests: Sequence[str], timeout_s: float) -> str:
    """Run tests until one fails; return its name, `UNKNOWN`, or nothing if none does."""
    listed = tree / "chosen.txt"
    listed.write_text("\n".join(tests), encoding="utf-8")
    try:
        # By a thread, because what never awaits cannot be stopped in its own.
        limits = (f"--timeout={TEST_S}", "--timeout-method=thread")
        done = _pytest(tree, "-x", *limits, f"@{listed}", timeout_s=timeout_s)
    except subprocess.TimeoutExpired:
        return UNKNOWN
    if done.returncode in {0, 5}:  # 5: nothing was selected
        return ""
    lines = done.stdout.splitlines()
    named = (line for line in lines if line.startswith(("FAILED ", "ERROR ")))
    return next(named, "a run that ended without a word").partition(" - ")[0]


def _pytest(
    tree: Path, *options: str, timeout_s: float | None = None, covering_in: str = ""
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "--no-header"]
    command += ["-p", "no:randomly", "-p", "no:cacheprovider", "-m", FAST, "-k", LEFT_OUT]
    given = {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    given |= {covering.FOLDER: covering_in}
    return subprocess.run(
        [*command, *options], cwd=tree, env={**os.environ, **given}, timeout=timeout_s,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def traced(tree: Path, folder: Path) -> Covered:
    """Run all fast tests once, to see which of them runs which line; minutes.

    Those that fail in a copy without any change are told, and never asked.

    Raises:
        RuntimeError: They cannot be run.
    """
    print("seeing which test runs which line…", flush=True)
    done = _pytest(tree, "-p", "dev.covering", *TESTS, covering_in=str(folder))
    if done.returncode not in {0, 1}:
        message = f"the tests do not run without any change:\n{done.stdout[-TOLD_MAX:]}"
        raise RuntimeError(message)
    failed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    for each in failed:
        print(f"left out, because it fails without any change: {each}", flush=True)
    return covering.seen(folder, tree, without=failed)


def copied(folder: Path) -> Path:
    """Copy the tree, without what is made in it."""
    return Path(shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED)))


def known(state: Path) -> dict[str, str]:
    """Return what earlier runs found, by change."""
    if not state.is_file():
        return {}
    lines = (json.loads(line) for line in state.read_text(encoding="utf-8").splitlines())
    return {line["mutant"]: line["noticed"] for line in lines}


def tell(found: dict[str, str], mutants: Sequence[Mutant]) -> None:
    """Print the score of those that were tried, and those that nothing noticed."""
    tried = [str(each) for each in mutants if found.get(str(each), UNKNOWN) != UNKNOWN]
    left = [mutant for mutant in tried if not found[mutant]]
    share = (len(tried) - len(left)) / len(tried) if tried else 0.0
    print(f"{len(tried) - len(left)} of {len(tried)} noticed ({share:.0%}); {len(mutants)} drawn")
    for mutant in left:
        print(f"  nothing noticed {mutant}")


def main() -> None:
    """Try a sample."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300, help="changes to draw")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    parser.add_argument("--minutes", type=float, default=120.0, help="when to stop")
    parser.add_argument("--state", type=Path, default=ROOT / ".run" / "mutants.jsonl")
    options = parser.parse_args()
    mutants, found = drawn(options.count, options.seed), known(options.state)
    until = time.monotonic() + options.minutes * 60
    options.state.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = copied(Path(folder) / "tree")
        covered = traced(tree, Path(folder))
        for number, mutant in enumerate(mutants, start=1):
            if str(mutant) in found:
                continue
            if time.monotonic() > until:
                break
            found[str(mutant)] = noticed(tree, mutant, covered)
            with options.state.open("a", encoding="utf-8") as lines:
                print(
                    json.dumps({"mutant": str(mutant), "noticed": found[str(mutant)]}), file=lines
                )
            print(f"{number}: {found[str(mutant)] or 'NOTHING'} noticed {mutant}", flush=True)
    tell(found, mutants)


if __name__ == "__main__":
    main()
