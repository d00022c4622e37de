"""The steps of the published blueprints' pipelines, for a control plane that cannot pull them.

`tests.render.patching` with auto-ready's half, which a live XR needs to become Ready: what
is observed with the condition Ready is ready, and so is what can have no conditions. The
end-to-end tests of installed blueprints start it. Source: function-auto-ready v0.6.6,
README.
"""

from __future__ import annotations

from typing import Any, Final

import click
import grpc
from crossplane.function import cli as sdkcli
from crossplane.function import resource, response
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from tests.render.patching import INPUT, PatchRunner
from tests.render.status_transforming import INPUT as STATUS_INPUT

WITHOUT_CONDITIONS: Final = frozenset({"Secret", "ConfigMap"})


class StepsRunner(PatchRunner):
    """Patches where the step's input says so, and tells what is ready otherwise."""

    async def RunFunction(  # noqa: N802 - the protocol's name
        self, request: fnv1.RunFunctionRequest, context: grpc.aio.ServicerContext
    ) -> fnv1.RunFunctionResponse:
        if resource.struct_to_dict(request.input).get("apiVersion") in (INPUT, STATUS_INPUT):
            return await super().RunFunction(request, context)
        answer = response.to(request)
        for name, desired in answer.desired.resources.items():
            undecided = desired.ready == fnv1.READY_UNSPECIFIED
            if undecided and name in request.observed.resources:
                observed = request.observed.resources[name].resource
                if is_ready(resource.struct_to_dict(observed)):
                    desired.ready = fnv1.READY_TRUE
        return answer


def is_ready(observed: dict[str, Any]) -> bool:
    """Tell whether an object says that it is ready, or has no way to say so."""
    conditions = observed.get("status", {}).get("conditions", [])
    said = {each.get("type"): each.get("status") for each in conditions}
    return observed.get("kind") in WITHOUT_CONDITIONS or said.get("Ready") == "True"


@click.command()
@sdkcli.standard_options
def main(**options: Any) -> None:
    """Serve the steps."""
    sdkcli.run(StepsRunner(), **options)


if __name__ == "__main__":
    main()
