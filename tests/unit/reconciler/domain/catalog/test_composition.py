"""`composition.yaml`: each broken rule is told by its field."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.reconciler.domain.catalog import given

PATCHES = "spec.pipeline[0].input.resources[0].patches"
BASE = "spec.pipeline[0].input.resources[0].base"
MACHINE = given.patches_of_a_machine()
STEP = {"step": "machine", "functionRef": {"name": "other"}}


def base(api_version: str, kind: str = "Machine", **spec: Any) -> given.Object:
    return {"apiVersion": api_version, "kind": kind, "spec": spec}


@pytest.mark.parametrize(
    ("composed", "finding"),
    [
        (given.composition(mode="Resources"), "spec.mode: is not Pipeline"),
        (given.composition(pipeline=[]), "spec.pipeline: must hold 1 to 99 steps"),
        (given.composition(compositeTypeRef={}), "spec.compositeTypeRef.apiVersion: is not"),
        (given.composition(compositeTypeRef={}), "spec.compositeTypeRef.kind: is not XSmallVM"),
        (given.composition(steps=[STEP]), "spec.pipeline[1].step: is duplicated"),
        (given.composition(steps=[{"step": "b"}]), "spec.pipeline[1].functionRef.name: is missing"),
        (given.composition(MACHINE[1:]), "spec.pipeline: does not read spec.userData"),
        (
            given.composition([*MACHINE, given.patch("spec.zone", "spec.x")]),
            f"{PATCHES}[5].fromFieldPath: names spec.zone, which the XRD does not declare",
        ),
        (
            given.composition([*MACHINE, given.patch("spec..zone", "spec.x")]),
            f"{PATCHES}[5].fromFieldPath: is not a field path",
        ),
        (
            given.composition(
                [*MACHINE, given.patch("status.x", "spec.userData", type="ToCompositeFieldPath")]
            ),
            f"{PATCHES}[5].toFieldPath: is outside status",
        ),
        (
            given.composition(
                [*MACHINE, given.patch("status.x", "status.phase", type="ToCompositeFieldPath")]
            ),
            f"{PATCHES}[5].toFieldPath: names status.phase, which the XRD does not declare",
        ),
        (
            given.composition([*MACHINE, {"type": "PatchSet", "patchSetName": "tags"}]),
            f"{PATCHES}[5].patchSetName: names a patch set that does not exist",
        ),
        (
            given.composition(
                [
                    *MACHINE,
                    {
                        "type": "CombineFromComposite",
                        "toFieldPath": "spec.x",
                        "combine": {"variables": [{"fromFieldPath": "spec.zone"}]},
                    },
                ]
            ),
            f"{PATCHES}[5].combine.variables[0].fromFieldPath: names spec.zone",
        ),
        (
            given.composition(base=base("blueprints.plexsphere.com/v1alpha1", "XGenericVM")),
            f"{BASE}.apiVersion: is a composite resource",
        ),
        (
            given.composition(base=base("hcloud.crossplane.io/v1alpha1", "Server")),
            f"{BASE}.apiVersion: is cluster-scoped",
        ),
        (
            given.composition(base=base("ec2.aws.upbound.io/v1beta1", "Instance")),
            f"{BASE}.apiVersion: is cluster-scoped, and a namespaced XR cannot compose it; use",
        ),
        (given.composition(base=base("v1", "Namespace")), f"{BASE}.apiVersion: is cluster-scoped"),
        (given.composition(base={"kind": "Machine"}), f"{BASE}: lacks apiVersion or kind"),
        (
            given.composition(
                base=base(given.NAMESPACED, providerConfigRef={"kind": "Other", "name": "a"})
            ),
            f"{BASE}.spec.providerConfigRef.kind: must be one of",
        ),
        (
            given.composition(
                base=base(given.NAMESPACED, providerConfigRef={"kind": "ProviderConfig"})
            ),
            f"{BASE}.spec.providerConfigRef.name: must be one name",
        ),
        (
            given.composition(
                [*MACHINE, given.patch("spec.parameters.size", "spec.providerConfigRef.name")]
            ),
            f"{PATCHES}[5].fromFieldPath: must be a field below spec",
        ),
        ({**given.composition(), "metadata": {"name": "other"}}, "metadata.name: must be the name"),
        ({**given.composition(), "kind": "Other"}, "kind: is not Composition"),
    ],
)
def test_a_broken_composition_is_named(composed: given.Object, finding: str) -> None:
    judgement = given.judged(composed=composed)

    assert judgement.manifest is None
    assert any(each.startswith(f"composition.yaml: {finding}") for each in given.told(judgement))


def test_a_patch_set_reads_for_each_resource_that_names_it() -> None:
    composed = given.composition([*MACHINE[1:], {"type": "PatchSet", "patchSetName": "boot"}])
    first = composed["spec"]["pipeline"][0]["input"]
    first["patchSets"] = [{"name": "boot", "patches": [MACHINE[0]]}]

    assert given.judged(composed=composed).findings == []


def test_reading_a_parent_reads_the_bootstrap() -> None:
    composed = given.composition([*MACHINE[1:], given.patch("spec", "spec.forProvider.all")])

    assert given.judged(composed=composed).findings == []


def test_a_program_that_mentions_the_bootstrap_is_believed() -> None:
    program = {
        "step": "program",
        "functionRef": {"name": "templating"},
        "input": {"apiVersion": "example.org/v1", "template": "{{ .spec.userData }}"},
    }

    judgement = given.judged(composed=given.composition(MACHINE[1:], steps=[program]))

    assert judgement.findings == []


def test_a_step_without_input_reads_nothing() -> None:
    ready = {"step": "ready", "functionRef": {"name": "auto-ready"}}

    judgement = given.judged(composed=given.composition(MACHINE[1:], steps=[ready]))

    assert judgement.manifest is None


def test_several_faults_are_all_told() -> None:
    judgement = given.judged(
        told=given.metadata(slug="other", meshRole="hub"),
        defined=given.definition(scope="Cluster"),
        composed=given.composition(mode="Resources"),
    )

    files = {each.file.rpartition("/")[2] for each in judgement.findings}
    assert files == {"metadata.json", "xrd.yaml", "composition.yaml"}


def test_what_crossplane_itself_serves_in_a_namespace_may_be_composed() -> None:
    composed = given.composition(base=base("protection.crossplane.io/v1beta1", "Usage"))

    told = given.told(given.judged(composed=composed))

    assert not any("cluster-scoped" in each for each in told)
