"""A pipeline step that does nothing, slowly: what a busy third-party function looks like."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click
import grpc
from crossplane.function import cli as sdkcli
from crossplane.function import resource, response
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1


class DelayRunner(grpcv1.FunctionRunnerServiceServicer):
    """Passes everything through after `input.seconds`."""

    async def RunFunction(  # noqa: N802 - the protocol's name
        self, request: fnv1.RunFunctionRequest, context: grpc.aio.ServicerContext
    ) -> fnv1.RunFunctionResponse:
        seconds = request.input["seconds"]
        assert isinstance(seconds, float)
        metadata = resource.struct_to_dict(request.observed.composite.resource)["metadata"]
        # The run is in flight from here on, which nobody else could tell a test.
        sys.stdout.write(f"delaying {metadata['name']}\n")
        sys.stdout.flush()
        await asyncio.sleep(seconds)
        return response.to(request)


@click.command()
@sdkcli.standard_options
def main(**options: Any) -> None:
    """Serve the delay."""
    sdkcli.run(DelayRunner(), **options)


if __name__ == "__main__":
    main()
