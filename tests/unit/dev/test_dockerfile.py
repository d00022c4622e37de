"""What can be said about the images without a machine that builds them."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from dev.packages import RUNTIME_USER

ROOT = Path(__file__).parents[3]
COMMANDS = {"function": "/venv/fn/bin/function", "reconciler": "/venv/broker/bin/broker"}
"""Targets, and the command that each one starts."""

Instruction = tuple[str, str]


def instructions() -> list[Instruction]:
    """The Dockerfile's instructions, comments and line breaks taken out."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    found = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [(word.upper(), " ".join(rest.split())) for word, rest in found]


def stages() -> dict[str, list[Instruction]]:
    """Each stage by name, its FROM first."""
    found: dict[str, list[Instruction]] = {}
    name = ""
    for word, rest in instructions():
        if word == "FROM":
            name = rest.rpartition(" AS ")[2]
            found[name] = []
        if name:
            found[name].append((word, rest))
    return found


def values(stage: str, word: str) -> list[str]:
    return [rest for found, rest in stages()[stage] if found == word]


def copied() -> list[str]:
    """Every path of this repository that some stage copies."""
    lists = [rest.split() for word, rest in instructions() if word == "COPY"]
    return [source for words in lists if not words[0].startswith("--") for source in words[:-1]]


@pytest.mark.parametrize("target", COMMANDS)
def test_a_target_starts_its_command_as_the_user_of_clusters(target: str) -> None:
    assert values(target, "USER") == [f"{RUNTIME_USER}:{RUNTIME_USER}"]
    assert [json.loads(value) for value in values(target, "ENTRYPOINT")] == [[COMMANDS[target]]]


@pytest.mark.parametrize("target", COMMANDS)
def test_a_target_brings_nothing_but_its_finished_environment(target: str) -> None:
    venv = str(Path(COMMANDS[target]).parents[1])

    assert values(target, "COPY") == [f"--from={target}-venv {venv} {venv}"]
    assert values(target, "RUN") == []


@pytest.mark.parametrize("target", COMMANDS)
def test_a_target_writes_nothing_when_it_runs(target: str) -> None:
    (build,) = values(f"{target}-venv", "RUN")

    assert "PYTHONDONTWRITEBYTECODE=1" in values(target, "ENV")[0].split()
    assert "compileall -q --invalidation-mode unchecked-hash" in build


@pytest.mark.parametrize("target", COMMANDS)
def test_a_command_ran_once_before_its_target_exists(target: str) -> None:
    (build,) = values(f"{target}-venv", "RUN")

    assert build.endswith(f"&& {COMMANDS[target]} --version")


def test_both_targets_and_the_build_stand_on_the_bases_that_a_release_may_pin() -> None:
    defaults = dict(rest.split("=", 1) for word, rest in instructions() if word == "ARG")

    assert {name: values(name, "FROM")[0] for name in stages()} == {
        "wheel": "${BUILD_BASE} AS wheel",
        "function-venv": "wheel AS function-venv",
        "reconciler-venv": "wheel AS reconciler-venv",
        "function": "${RUNTIME_BASE} AS function",
        "reconciler": "${RUNTIME_BASE} AS reconciler",
    }
    releases = {re.findall(r"debian:?(\d+)", base)[0] for base in defaults.values()}
    assert len(defaults) == 2
    assert releases == {"13"}, "one Debian, so one Python"
    assert defaults["RUNTIME_BASE"].endswith(":nonroot")


def test_whatever_is_installed_is_checked_by_hash_or_is_our_own_wheel() -> None:
    runs = [part for word, rest in instructions() if word == "RUN" for part in rest.split(" && ")]
    installs = [part for part in runs if "/pip " in part and " install " in part]

    assert len(installs) == 5
    for install in installs:
        assert "--require-hashes" in install or "--no-deps /dist/*.whl" in install, install


def test_the_build_backend_is_the_one_that_the_project_names() -> None:
    (extraction,) = re.findall(r"\\\((.*?)\\\)", " ".join(values("wheel", "RUN")))
    wanted = set(extraction.split("\\|"))
    locked = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")

    assert wanted <= set(re.findall(r"^([a-z0-9-]+)==", locked, re.MULTILINE))
    (backend,) = re.findall(r'requires = \["([a-z]+)==', (ROOT / "pyproject.toml").read_text())
    assert backend in wanted


@pytest.mark.parametrize("source", copied())
def test_what_is_copied_exists_and_reaches_the_builder(source: str) -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}

    assert (ROOT / source).exists()
    assert any(fnmatch(source, f"{part}*") for part in kept)


def test_the_deployment_runs_the_image_as_it_was_made() -> None:
    documents = yaml.safe_load_all((ROOT / "deploy" / "reconciler.yaml").read_text("utf-8"))
    (pod,) = [
        body["spec"]["template"]["spec"] for body in documents if body["kind"] == "Deployment"
    ]

    assert str(pod["securityContext"]["runAsUser"]) == RUNTIME_USER
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert "command" not in container
