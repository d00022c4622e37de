"""`Declare` over whole lives: whatever others do, in whatever order."""

from __future__ import annotations

from collections.abc import Mapping

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.unit.function import given
from tests.unit.function.hostile.bases import THEIRS, Base
from tests.unit.function.hostile.calls import effort
from tests.unit.function.hostile.life import Life
from tests.unit.function.hostile.plane import Object, Plane


class DeclarePlane(Plane):
    """A ProvisionedResource and what the platform team published."""

    def __init__(self) -> None:
        super().__init__(given.xr())
        made = (given.blueprint(), given.credential(), given.cloud())
        self.published = {one["kind"]: one for one in made}

    def step(self) -> Object:
        return given.STEP

    def desired(self) -> Mapping[str, Object]:
        return {"theirs": THEIRS}

    def look_up(self, kind: str, name: str) -> Object | None:
        if kind in {"BlueprintVersion", "CloudCredential", "Cloud"}:
            return self.published.get(kind)
        return super().look_up(kind, name)


class DeclareLife(Life):
    """One ProvisionedResource."""

    carriers = (("spec", "userData"),)

    def __init__(self) -> None:
        super().__init__()
        self.plane: DeclarePlane = DeclarePlane()

    def base(self) -> Base:
        carriers = tuple(("substrate", *path) for path in self.carriers)
        ours = frozenset({"record", "substrate"})
        return Base(request=fnv1.RunFunctionRequest(), ours=ours, carriers=carriers)

    def record_of(self, name: str) -> str | None:
        return "record" if name == "substrate" else None

    @rule(labels=st.dictionaries(st.sampled_from(["a", "B/c", "\u202eé"]), st.text(max_size=3)))
    def change_labels(self, labels: dict[str, str]) -> None:
        self.plane.xr["spec"]["labels"] = labels

    @rule(size=st.sampled_from([40, 80, 160, "x"]))
    def change_a_parameter(self, size: object) -> None:
        self.plane.xr["spec"]["parameters"]["diskSizeGb"] = size

    @rule(kind=st.sampled_from(["BlueprintVersion", "CloudCredential", "Cloud"]))
    def withdraw_for_a_while(self, kind: str) -> None:
        withdrawn = self.plane.published.pop(kind)
        self.step()
        self.plane.published[kind] = withdrawn


TestDeclareLife = DeclareLife.TestCase
TestDeclareLife.settings = effort(20, 400, stateful_step_count=30)
