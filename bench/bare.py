"""The bare SDK composing the same objects: the least a Python function can do.

A server that turns a plan's dictionaries into a response, as the SDK's template does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import grpc
from crossplane.function import resource, response, runtime
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1
from google.protobuf import json_format


class Bare(grpcv1.FunctionRunnerServiceServicer):
    """Composes a plan.

    Args:
        plan: A response in protobuf's JSON.
    """

    def __init__(self, plan: dict[str, Any]) -> None:
        rest = json_format.ParseDict(plan, fnv1.RunFunctionResponse())
        self._resources = {
            name: (entry["resource"], rest.desired.resources[name].ready)
            for name, entry in plan["desired"]["resources"].items()
        }
        self._status = plan["desired"].get("composite", {}).get("resource", {})
        self._ready = rest.desired.composite.ready
        self._conditions = list(rest.conditions)
        self._requirements = rest.requirements

    async def RunFunction(  # noqa: N802 - gRPC's name
        self, req: fnv1.RunFunctionRequest, _: grpc.aio.ServicerContext
    ) -> fnv1.RunFunctionResponse:
        """Answer one call."""
        rsp = response.to(req)
        for name, (manifest, ready) in self._resources.items():
            desired = rsp.desired.resources[name]
            resource.update(desired, manifest)
            desired.ready = ready
        resource.update(rsp.desired.composite, self._status)
        rsp.desired.composite.ready = self._ready
        rsp.conditions.extend(self._conditions)
        rsp.requirements.CopyFrom(self._requirements)
        return rsp


@click.command()
@click.option("--plan", type=click.Path(path_type=Path), required=True)
@click.option("--address", required=True)
def main(plan: Path, address: str) -> None:
    """Serve a plan."""
    runtime.serve(Bare(json.loads(plan.read_text())), address, creds=None, insecure=True)


if __name__ == "__main__":
    main()
