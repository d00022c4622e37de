"""`Enrol` in a Composition of somebody's own, in Crossplane's own reconciler."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from dev import examples, render, rendering
from dev.rendering import RESOURCE_NAME, Inputs, Object, Rendered
from function.contract import names
from tests.render.conftest import INPUTS, ROOT, Crossplane, every, loaded
from tests.unit.function import given

pytestmark = pytest.mark.render

EXAMPLE = ROOT / "example" / "enrol"
COMPOSITION = EXAMPLE / "composition.yaml"
XRD = EXAMPLE / "xrd.yaml"
PREVIEW = {names.CONTEXT_PREVIEW: True}

MACHINES = {"database", "worker-0", "worker-1"}
SIBLINGS = {"subnet", "data", "attachment"}
RECORDS = {f"record-{name}" for name in MACHINES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The example's pipeline with its functions running."""

    example: examples.Example
    command: rendering.Crossplane
    records: Mapping[str, Object]
    """What stands before the reconciler has said anything."""

    def shown(
        self,
        *,
        xr: Object | None = None,
        observed: Sequence[Object] = (),
        secrets: Sequence[Object] = (),
        preview: bool = False,
        composition: Path = COMPOSITION,
    ) -> Rendered:
        required = self.command.folder / "required.yaml"
        required.write_text(yaml.safe_dump_all(secrets))
        return self.command.render(
            orders() if xr is None else xr,
            Inputs(
                composition=composition,
                xrd=XRD,
                required=[required] if secrets else [],
                observed=observed,
                context=PREVIEW if preview else None,
            ),
        )


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    (example,) = [each for each in examples.examples() if each.xr.parent == EXAMPLE]
    folder = tmp_path_factory.mktemp("enrol")
    with rendering.crossplane(example.functions(), folder, _report) as command:
        inputs = Inputs(composition=COMPOSITION, xrd=XRD)
        records = command.render(orders(), inputs).resources
        yield Pipeline(example=example, command=command, records=records)


def _report(line: str) -> None:
    print(line, file=sys.stderr)


def orders() -> Object:
    return loaded(EXAMPLE / "orders.yaml")


def accepted(record: Object, **status: object) -> Object:
    """The record as the reconciler leaves it once it has minted a token."""
    name = record["metadata"]["name"]
    identity = f"0197b1a2-7c3d-7e4f-8a5b-{name[-10:]:0>12}"
    bootstrap = {"secretRef": {"name": f"{name}-g1"}, "generation": 1, "state": "Issued"}
    written = given.status(
        provisionedResourceID=identity,
        xrName=f"pr-{identity}",
        accepted=record["spec"]["declaration"],
        bootstrap=bootstrap,
        **status,
    )
    return {**copy.deepcopy(record), "status": written}


def registered(record: Object) -> Object:
    node = {"id": "n-1", "meshIP": "100.64.0.7", "registeredAt": "2026-01-01T00:00:00Z"}
    return accepted(record, phase="Ready", node=node)


def secret(record: Object) -> Object:
    made = given.secret()
    made["metadata"]["name"] = f"{record['metadata']['name']}-g1"
    return made


def ready(body: Object) -> Object:
    return {**body, "status": {"conditions": [given.READY]}}


def enrol_step(composition: Object) -> Object:
    (step,) = [each for each in composition["spec"]["pipeline"] if each["step"] == "enrol"]
    found: Object = step["input"]
    return found


def test_a_preview_shows_every_resource_with_its_document_and_its_tags(pipeline: Pipeline) -> None:
    shown = pipeline.shown(preview=True)

    assert set(shown.resources) == MACHINES | SIBLINGS | RECORDS
    assert shown.conditions()["Admitted"]["reason"] == "Preview"
    for name in MACHINES:
        wanted = shown.resources[name]["spec"]["forProvider"]
        assert wanted["userData"].startswith("#cloud-config\n")
        assert wanted["tags"] == {"platform/env": "prod", "team": "checkout"}


def test_machines_and_what_they_hold_are_held_from_birth(pipeline: Pipeline) -> None:
    shown = pipeline.shown(preview=True).resources

    held = {
        name
        for name, each in shown.items()
        if each["metadata"]["labels"].get(names.LABEL_HOLD) == "true"
    }

    assert held == MACHINES | SIBLINGS
    listed = shown["record-database"]["spec"]["substrate"]
    protected = [shown[name] for name in ("database", "subnet", "data", "attachment")]
    assert [each["name"] for each in listed] == [each["metadata"]["name"] for each in protected]
    of_worker = shown["record-worker-0"]["spec"]["substrate"]
    assert [each["kind"] for each in of_worker] == ["SpotInstanceRequest", "Subnet"]


def test_without_a_reconciler_only_records_stand(pipeline: Pipeline) -> None:
    shown = pipeline.shown()

    assert set(shown.resources) == RECORDS
    assert shown.conditions()["Admitted"]["reason"] == "WaitingForReconciler"
    assert shown.conditions()["Ready"]["status"] == "False"


def test_an_accepted_record_gives_birth_to_its_machine_and_what_it_holds(
    pipeline: Pipeline,
) -> None:
    records = dict(pipeline.records)
    database = accepted(records.pop("record-database"))

    shown = pipeline.shown(observed=[database, *records.values()], secrets=[secret(database)])

    assert set(shown.resources) == RECORDS | SIBLINGS | {"database"}
    machine = shown.resources["database"]
    assert machine["metadata"]["name"] == database["status"]["xrName"]
    assert given.TOKEN in machine["spec"]["forProvider"]["userData"]
    assert shown.conditions()["Ready"]["status"] == "False"


def test_a_registered_node_keeps_its_document_when_the_token_is_gone(pipeline: Pipeline) -> None:
    secrets = [secret(each) for each in pipeline.records.values()]
    waiting = [accepted(each) for each in pipeline.records.values()]
    born = pipeline.shown(observed=waiting, secrets=secrets).resources
    machines = [ready(born[name]) for name in sorted(MACHINES | SIBLINGS)]
    nodes = [registered(each) for each in pipeline.records.values()]

    shown = pipeline.shown(observed=[*nodes, *machines])

    assert shown.conditions()["NodeRegistered"]["status"] == "True"
    for name in MACHINES:
        assert shown.resources[name]["spec"] == born[name]["spec"]
        assert given.TOKEN in shown.resources[name]["spec"]["forProvider"]["userData"]


def test_a_resource_that_was_there_first_is_never_injected(pipeline: Pipeline) -> None:
    machine = copy.deepcopy(pipeline.shown(preview=True).resources["database"])
    machine["metadata"] = {
        "name": "old-1",
        "namespace": machine["metadata"]["namespace"],
        "annotations": {RESOURCE_NAME: "database"},
    }
    del machine["spec"]["forProvider"]["userData"]
    record = accepted(pipeline.shown(observed=[machine]).resources["record-database"])

    shown = pipeline.shown(observed=[machine, record], secrets=[secret(record)])

    assert shown.resources["database"]["metadata"]["name"] == "old-1"
    assert "userData" not in shown.resources["database"]["spec"]["forProvider"]


def test_labels_that_are_wrong_are_a_condition_in_a_preview(pipeline: Pipeline) -> None:
    xr = orders()
    xr["spec"]["labels"]["team"] = "x" * 257

    shown = pipeline.shown(xr=xr, preview=True)

    assert not shown.error
    admitted = shown.conditions()["Admitted"]
    assert admitted["status"] == "False"
    assert "spec.labels[team]: must" in admitted["message"]
    assert not shown.resources.keys() & (MACHINES | RECORDS)


def test_outside_a_project_none_is_composed(pipeline: Pipeline) -> None:
    xr = orders()
    xr["metadata"]["namespace"] = "default"

    shown = pipeline.shown(xr=xr, preview=True)

    assert not shown.resources.keys() & (MACHINES | RECORDS)
    assert "metadata.namespace: must be a Project's" in shown.conditions()["Admitted"]["message"]


def test_a_document_over_its_clouds_limit_is_a_condition_before_anything_exists(
    pipeline: Pipeline,
) -> None:
    large = given.status()["enrolment"] | {"caBundle": authorities()}
    record = accepted(pipeline.records["record-database"], enrolment=large)

    shown = pipeline.shown(observed=[record], secrets=[secret(record)], preview=True)

    assert not shown.error
    injected = shown.conditions()["BootstrapInjected"]
    assert (injected["status"], injected["reason"]) == ("False", "UserDataTooLarge")
    assert "spec.userData: holds" in injected["message"]
    assert "aws accepts at most 16384" in injected["message"]
    assert "database" not in shown.resources


@pytest.fixture(scope="module")
def misspelt(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, str], Path]:
    """Writes the example's Composition with another name in an entry of our step."""
    folder = tmp_path_factory.mktemp("misspelt")

    def written(place: int, name: str) -> Path:
        composition = loaded(COMPOSITION)
        enrol_step(composition)["resources"][place]["name"] = name
        path = folder / "composition.yaml"
        path.write_text(yaml.safe_dump(composition))
        return path

    return written


@pytest.mark.parametrize(
    ("place", "name", "said"),
    [
        (0, "data-base", "'data-base' is none (nearest: 'database')"),
        (1, "worker_*", "'worker_*' fits none (nearest: 'worker-1')"),
    ],
)
def test_a_name_that_no_step_composes_is_an_error_in_a_preview(
    pipeline: Pipeline,
    core_crds: Path,
    misspelt: Callable[[int, str], Path],
    place: int,
    name: str,
    said: str,
) -> None:
    example = replace(pipeline.example, compositions=[misspelt(place, name)])

    (fault,) = render.judged(example, pipeline.command, core_crds).faults

    assert "Admitted is False, ResourceNotFound: " in fault
    assert f"input.resources[{place}].name: must " in fault
    assert f"{said}; earlier steps compose '" in fault


def test_a_machine_that_exists_beside_a_wrong_name_is_named_and_stays(
    pipeline: Pipeline, misspelt: Callable[[int, str], Path]
) -> None:
    machine = copy.deepcopy(pipeline.shown(preview=True).resources["database"])
    machine["metadata"] = {
        "name": "old-1",
        "namespace": machine["metadata"]["namespace"],
        "annotations": {RESOURCE_NAME: "database"},
    }

    shown = pipeline.shown(observed=[machine], composition=misspelt(0, "data-base"))

    admitted = shown.conditions()["Admitted"]
    assert (admitted["status"], admitted["reason"]) == ("False", "ResourceNotFound")
    assert "; 'database' exists and is not enrolled; " in admitted["message"]
    assert shown.conditions()["Ready"]["status"] == "False"
    assert shown.resources["database"]["metadata"]["name"] == "old-1"
    assert {"record-worker-0", "record-worker-1"} <= set(shown.resources)


def test_a_star_that_fits_nothing_is_said_and_refuses_nothing(
    pipeline: Pipeline, misspelt: Callable[[int, str], Path]
) -> None:
    shown = pipeline.shown(composition=misspelt(1, "runner-*"))

    admitted = shown.conditions()["Admitted"]
    assert admitted["reason"] == "WaitingForReconciler"
    assert admitted["message"].endswith(
        "input.resources[1].name: 'runner-*' fits no resource that an earlier step composes"
    )


def authorities() -> str:
    """The bundle of a golden case: too many authorities for a document."""
    request = loaded(ROOT / "tests" / "golden" / "document-too-large" / "request.yaml")
    enrolment = request["observed"]["resources"]["record"]["resource"]["status"]["enrolment"]
    found: str = enrolment["caBundle"]
    return found


def test_the_examples_input_is_valid(command: Crossplane, core_crds: Path) -> None:
    status, told = command.validate([without_others()], core_crds, XRD, INPUTS)

    assert status == 0, told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda step: step.update(resources=[]), "resources"),
        (lambda step: step["resources"][0].update(provider="moon"), "resources[0].provider"),
        (lambda step: step["resources"][0].update(surprise=1), "unknown field"),
        (lambda step: step["resources"][0].pop("provider"), "resources[0].provider: Required"),
        (lambda step: step["resources"][1].update(name="database"), "names must be unique"),
        (lambda step: step["resources"][0].update(hold=["worker-7"]), "hold must not name"),
        (lambda step: step["resources"][1]["paths"].update(userData="status.x"), "paths.userData"),
        (lambda step: step["resources"][1]["paths"].update(user="spec.x"), "unknown field"),
        (lambda step: step.update(enrolment={"baseURL": "ftp://x"}), "enrolment.baseURL"),
    ],
)
def test_a_wrong_input_is_refused_with_the_field(
    command: Crossplane, core_crds: Path, change: Callable[[Object], object], told: str
) -> None:
    wrong = without_others()
    change(enrol_step(wrong))

    status, said = command.validate([wrong], core_crds, XRD, INPUTS)

    assert status == 1
    assert told in said


def without_others() -> Object:
    """The example's Composition with our step alone; the others' schemas are not ours."""
    composition = loaded(COMPOSITION)
    steps = composition["spec"]["pipeline"]
    composition["spec"]["pipeline"] = [each for each in steps if each["step"] == "enrol"]
    return composition


def test_every_xr_of_the_example_folder_is_an_example() -> None:
    kinds = {
        (each["spec"]["group"], each["spec"]["names"]["kind"])
        for folder in (ROOT / "xrds", ROOT / "example")
        for path in folder.rglob("*.yaml")
        for each in every(path)
        if each["kind"] == "CompositeResourceDefinition"
    }

    found = {
        path
        for path in (ROOT / "example").rglob("*.yaml")
        for each in every(path)
        if (names.group_of(each["apiVersion"]), each["kind"]) in kinds
    }

    assert found == {example.xr for example in examples.examples()}


def test_the_page_shows_the_examples_step() -> None:
    page = (ROOT / "docs" / "enrol.md").read_text()
    (shown,) = re.findall(r"^```yaml\n(pipeline:.*?)^```$", page, re.MULTILINE | re.DOTALL)

    steps = {each["step"]: each for each in yaml.safe_load(shown)["pipeline"]}

    pipeline = loaded(COMPOSITION)["spec"]["pipeline"]
    assert list(steps) == [each["step"] for each in pipeline]
    assert steps["enrol"] == pipeline[1]


def test_the_reconciler_may_do_what_the_example_needs() -> None:
    rules = loaded(EXAMPLE / "rights.yaml")["rules"]
    granted = {
        (group, plural): set(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for plural in rule["resources"]
    }
    bases = {
        each["name"]: each["base"]
        for each in loaded(COMPOSITION)["spec"]["pipeline"][0]["input"]["resources"]
    }

    kinds = {
        (names.group_of(base["apiVersion"]), f"{base['kind'].lower()}s")
        for name, base in bases.items()
        if name in MACHINES | SIBLINGS
    }

    assert set(bases) == MACHINES | SIBLINGS
    assert all(granted[kind] == {"get", "patch", "delete"} for kind in kinds)
    assert granted["platform.example.org", "backends"] == {"get"}
