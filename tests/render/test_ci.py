"""The scripts and jobs of `docs/ci.md`, run as a platform team's runner would.

What installs programs is replaced: the programs that are here stand in `.ci/bin`, and this
repository in `broker`. Everything else is taken from the page as it is.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from dev import binaries, examples, pythonic, render, rendering
from tests.integration.grpc.serving import COMMAND, free_address
from tests.render.conftest import COMPOSITION, ROOT, TARGET, XRDS, Object, every, loaded

pytestmark = pytest.mark.render

PAGE = (ROOT / "docs" / "ci.md").read_text()
EXAMPLE = ROOT / "example"
TIMEOUT_S = 180
"""Two functions start and four renders run, on a machine that others use too."""

INSTALLING = re.compile(r"bash ci/install\.sh|git clone .* broker")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def script(name: str) -> str:
    """The script that the page introduces under a name."""
    first = {"install.sh": "# Installs", "preview.sh": "# Renders"}[name]
    (found,) = [each for each in blocks("bash") if each.splitlines()[1].startswith(first)]
    return found


def github() -> list[str]:
    (job,) = [each for each in map(yaml.safe_load, blocks("yaml")) if "jobs" in each]
    steps: list[Object] = job["jobs"]["preview"]["steps"]
    return [step["run"] for step in steps if "run" in step]


def gitlab() -> list[str]:
    (job,) = [each for each in map(yaml.safe_load, blocks("yaml")) if "preview" in each]
    return [*job["preview"]["before_script"], *job["preview"]["script"]]


@pytest.fixture
def repository(tmp_path: Path, programs: Mapping[str, Path]) -> Path:
    """A platform team's repository, made of `example/`, with the page's scripts."""
    for name in ("platform", "blueprints", "shop"):
        shutil.copytree(EXAMPLE / name, tmp_path / name)
    (tmp_path / "providers").mkdir()
    shutil.copy(examples.MACHINES, tmp_path / "providers")
    (tmp_path / "ci").mkdir()
    for name in ("install.sh", "preview.sh"):
        (tmp_path / "ci" / name).write_text(script(name))
    (tmp_path / "broker").symlink_to(ROOT)
    bin_folder = tmp_path / ".ci" / "bin"
    bin_folder.mkdir(parents=True)
    installed = {
        "crossplane": programs["crossplane-cli"],
        "crossplane-core": programs["crossplane"],
        "function": COMMAND,
        "function-pythonic": pythonic.ensure(report=_report),
        "python3": sys.executable,
    }
    for name, program in installed.items():
        (bin_folder / name).write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        (bin_folder / name).chmod(0o755)
    return tmp_path


def run(repository: Path, commands: list[str]) -> tuple[int, str]:
    """Run a job's commands in order, but for those that install; exit status and output."""
    ports = [free_address().rpartition(":")[2] for _ in range(2)]
    functions = every(EXAMPLE / "functions.yaml")
    for each, port in zip(functions, ports, strict=True):
        each["metadata"]["annotations"][TARGET] = f"localhost:{port}"
    (repository / "functions.yaml").write_text(yaml.safe_dump_all(functions))
    kept = [each for each in commands if not INSTALLING.fullmatch(each)]
    assert kept != commands
    done = subprocess.run(
        ["bash", "-euc", "\n".join(kept)],
        cwd=repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={
            "HOME": str(repository),
            "PATH": os.defpath,
            "BROKER_PORT": ports[0],
            "PYTHONIC_PORT": ports[1],
        },
    )
    return done.returncode, done.stdout


def _report(line: str) -> None:
    print(line, file=sys.stderr)


def test_what_is_installed_are_the_versions_that_are_tested() -> None:
    installed = script("install.sh")

    urls = re.findall(r"https://\S+/stable/(v[0-9.]+)/bin/", installed)

    modules = (ROOT / "dev" / "tools" / "crossplane-cli" / "go.mod").read_text()
    assert f"github.com/crossplane/cli/v2 {urls[0]}" in modules
    assert urls[1:] == [binaries.CORE_VERSION]
    named = re.findall(r"broker/(\S+\.txt)", installed)
    assert named
    assert all((ROOT / each).is_file() for each in named)


@pytest.mark.parametrize("name", ["install.sh", "preview.sh"])
def test_a_script_is_one_that_bash_reads(name: str) -> None:
    done = subprocess.run(
        ["bash", "-n"], input=script(name), capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr


def test_the_github_workflow_shows_everything_down_to_the_machine(repository: Path) -> None:
    status, told = run(repository, github())

    assert status == 0, told
    (machine,) = every(repository / "preview" / "web-1-generic-vm.yaml")[1:]
    assert machine["kind"] == "Machine"
    assert machine["spec"]["forProvider"]["userData"].startswith("#cloud-config\n")
    kinds = {each["kind"] for each in every(repository / "preview" / "web-1.yaml")}
    assert kinds == {"ProvisionedResource", "ProvisioningRecord", "XGenericVM"}


def test_the_gitlab_job_refuses_a_wrong_parameter_with_field_and_rule(repository: Path) -> None:
    path = repository / "shop" / "web-1.yaml"
    wrong = loaded(path)
    wrong["spec"]["parameters"]["diskSizeGb"] = "forty"
    path.write_text(yaml.safe_dump(wrong))

    status, told = run(repository, gitlab())

    assert status == 1
    expected = (
        "  Admitted is False, InvalidParameters: spec.parameters.diskSizeGb: must be an integer"
    )
    assert expected in told.splitlines()


def test_a_job_refuses_a_machine_that_its_provider_does_not_take(repository: Path) -> None:
    path = repository / "blueprints" / "generic-vm" / "composition.yaml"
    path.write_text(path.read_text().replace("wanted.region =", "wanted.place ="))

    status, told = run(repository, gitlab())

    assert status == 1
    assert 'spec.forProvider.place: Invalid value: "place": unknown field' in told


PROGRAMS = {"crossplane": b"the command", "crossplane-core": b"the core"}
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


def sums(programs: Mapping[str, bytes]) -> str:
    return "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}-{ARCH}\n"
        for name, content in programs.items()
    )


def install(folder: Path, listed: str | None) -> tuple[int, str, dict[str, bytes]]:
    """Run the page's install.sh; its status, what it said, and the programs that may be run.

    What makes environments and downloads is replaced; the downloads are `PROGRAMS`.
    """
    tools = folder / "tools"
    stand_ins = {
        "python3": 'mkdir -p "$3/bin"; printf "#!/bin/sh\\n" > "$3/bin/pip"; chmod +x "$3/bin/pip"',
        "curl": 'for each; do [ "$last" = -o ] && file=$each; last=$each; done\n'
        'case $last in *cli.*) printf "the command" ;; *) printf "the core" ;; esac > "$file"\n'
        'echo "$last" >> downloads',
    }
    (folder / "ci").mkdir()
    tools.mkdir()
    for name, body in stand_ins.items():
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    (folder / "downloads").touch()
    (folder / "ci" / "install.sh").write_text(script("install.sh"))
    if listed is not None:
        (folder / "ci" / "crossplane.sha256").write_text(listed)
    done = subprocess.run(
        ["bash", "ci/install.sh"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={"PATH": f"{tools}:{os.defpath}"},
    )
    installed = {
        name: path.read_bytes()
        for name in PROGRAMS
        if os.access(path := folder / ".ci" / "bin" / name, os.X_OK)
    }
    return done.returncode, done.stderr, installed


def test_what_is_downloaded_is_installed_when_its_sum_is_listed(tmp_path: Path) -> None:
    status, said, installed = install(tmp_path, sums(PROGRAMS))

    assert (status, installed) == (0, PROGRAMS), said


@pytest.mark.parametrize(
    "listed",
    [None, "", sums({"crossplane-core": b"the core"}), sums({"crossplane": b""})[1:], "  \n"],
    ids=["no file", "an empty file", "the other one's", "a short sum", "blanks"],
)
def test_nothing_is_downloaded_whose_sum_is_not_listed(tmp_path: Path, listed: str | None) -> None:
    status, said, installed = install(tmp_path, listed)

    assert status != 0
    assert "crossplane.sha256" in said
    assert installed == {}
    assert (tmp_path / "downloads").read_text() == ""


@pytest.mark.parametrize("altered", list(PROGRAMS))
def test_an_altered_download_is_never_one_that_may_be_run(tmp_path: Path, altered: str) -> None:
    status, _, installed = install(tmp_path, sums({**PROGRAMS, altered: b"as it was"}))

    assert status != 0
    assert altered not in installed
    assert not list((tmp_path / ".ci").glob("*.unchecked"))


Judge = Callable[[Object], render.Outcome]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """`make render` for one ProvisionedResource, without the blueprint below it."""
    folder = tmp_path_factory.mktemp("render")
    core_crds = binaries.core_manifests(report=_report).crds
    with rendering.crossplane([rendering.OURS], folder, _report) as command:

        def judged(xr: Object) -> render.Outcome:
            path = folder / "example.yaml"
            path.write_text(yaml.safe_dump(xr))
            blueprint = EXAMPLE / "blueprints" / "generic-vm" / "xrd.yaml"
            example = examples.Example(
                xr=path,
                compositions=[COMPOSITION],
                schemas=[XRDS / "provisionedresource.yaml", examples.KINDS, blueprint],
                required=[EXAMPLE / "platform"],
            )
            return render.judged(example, command, core_crds)

        yield judged


def web() -> Object:
    return loaded(EXAMPLE / "shop" / "web-1.yaml")


def test_make_render_shows_what_is_composed_and_that_it_is_valid(judge: Judge) -> None:
    outcome = judge(web())

    assert outcome.faults == []
    told = [(line.split()[0], line.split()[1].partition("/")[0]) for line in outcome.lines[:3]]
    assert told == [
        (".", "ProvisionedResource"),
        ("record", "ProvisioningRecord"),
        ("substrate", "XGenericVM"),
    ]
    assert all(line.endswith(" valid") for line in outcome.lines[:3])


def test_make_render_tells_a_wrong_parameter_though_render_exits_with_0(judge: Judge) -> None:
    xr = web()
    del xr["spec"]["parameters"]["region"]

    outcome = judge(xr)

    (fault,) = outcome.faults
    assert fault.startswith("ProvisionedResource/web-1: Admitted is False, InvalidParameters: ")
    assert fault.endswith("spec.parameters.region: is required by this blueprint")


def test_make_render_tells_what_is_not_valid(judge: Judge) -> None:
    xr = web()
    xr["spec"]["surprise"] = True

    outcome = judge(xr)

    assert any(
        each.startswith("ProvisionedResource/web-1: spec.surprise:") for each in outcome.faults
    )


def test_make_render_tells_why_a_render_failed(judge: Judge) -> None:
    xr = web()
    xr["spec"]["crossplane"] = {"compositionSelector": {"matchLabels": {"no": "such"}}}

    outcome = judge(xr)

    (fault,) = outcome.faults
    assert 'composition "provisionedresource" is missing required label "no"' in fault
