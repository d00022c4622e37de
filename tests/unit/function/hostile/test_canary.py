"""A token stands at its one path, and a provider that quotes it is not quoted.

The scan covers everything that leaves the process: the answer, the log, the metrics.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import grpc
import pytest
import structlog
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from prometheus_client import generate_latest

from function import fn
from function.contract.redaction import redacted
from function.operating.calls import CallInterceptor
from function.operating.metrics import Metrics
from tests.unit.function import given
from tests.unit.function.hostile import bases, laws, sites
from tests.unit.function.hostile.calls import call

QUOTES = [
    given.TOKEN,
    f"cannot take user data: #cloud-config\n# {given.TOKEN}\n",
    *(base64.b64encode(b" " * lead + given.TOKEN.encode()).decode() for lead in range(3)),
    base64.encodebytes(f"#cloud-config\nwrite_files: {given.TOKEN}\n".encode() * 3).decode(),
    f"Refused: {given.TOKEN}" * 200,
]
"""As a provider's error may hold the document that it was given."""

SAID_BY_PROVIDERS = {
    "declare-failing": ["observed/substrate"],
    "declare-ready": ["observed/substrate"],
    "enrol-enrolled": ["observed/server", "observed/network"],
    "enrol-draining": ["observed/server", "observed/network"],
}


@pytest.mark.parametrize("name", sorted(SAID_BY_PROVIDERS))
def test_a_token_in_a_status_is_told_to_nobody(name: str) -> None:
    base = bases.base(name)
    places = [
        site
        for site in sites.sites(base.request)
        if site.part in SAID_BY_PROVIDERS[name] and site.path[:1] == ("status",)
    ]

    for site in places:
        for quote in QUOTES:
            request = sites.spoil(base.request, site, sites.value(quote))
            laws.lawful(base, request, call(request))
    assert places


@pytest.mark.parametrize("kind", ["ProvisioningFailed", "Ready", "Stalled", "Admitted"])
@pytest.mark.parametrize("quote", QUOTES)
def test_a_condition_that_quotes_a_token_is_told_without_it(kind: str, quote: str) -> None:
    said = given.condition(kind, "True", quote, quote)
    status = given.status(phase="Failed", conditions=[said])
    resources = {"record": given.record(status), "substrate": given.substrate(said)}

    answer = call(given.request(resources=resources))

    laws.says_all(answer)
    laws.tells_no_token(answer, [("substrate", "spec", "userData")])


def test_what_is_no_token_is_told_as_it_is() -> None:
    text = "psb is short; c2Jf too, and BzYl; cHNiX"

    assert redacted(text) == text


async def served(request: fnv1.RunFunctionRequest, metrics: Metrics) -> Any:
    """One call through the interceptor that counts and tells."""
    runner = fn.FunctionRunner()

    async def continuation(_: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(
            runner.RunFunction,
            request_deserializer=fnv1.RunFunctionRequest.FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )

    class Details:
        method = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"

    handler = await CallInterceptor(metrics, debug=True).intercept_service(continuation, Details())
    assert handler is not None
    answer = await handler.unary_unary(request, None)
    handler.response_serializer(answer)
    return answer


def test_neither_log_nor_metrics_hold_a_token() -> None:
    metrics = Metrics()
    requests = []
    for name in sorted(SAID_BY_PROVIDERS):
        base = bases.base(name)
        requests.append(base.request)
        # What an XR is called is its author's to say, and is in the log.
        for part in sites.structs(base.request).keys() - {"xr"}:
            for path in (("metadata", "name"), ("kind",), ("apiVersion",), ("status",)):
                site = sites.Site(part=part, path=path)
                if site in sites.sites(base.request):
                    requests.append(sites.spoil(base.request, site, sites.value(given.TOKEN)))

    with structlog.testing.capture_logs() as logged:
        for request in requests:
            asyncio.run(served(request, metrics))

    told = "".join(str(line) for line in logged).encode() + generate_latest(metrics.registry)
    assert len(logged) == len(requests)
    assert not any(form in told for form in laws.CANARIES)


def test_an_error_of_ours_names_no_token() -> None:
    asked = given.request(found=given.required() | {"token": given.secret()})
    asked.input.update({"enrolment": {"baseURL": [given.TOKEN], "other": given.TOKEN}})

    answer = call(asked)

    assert laws.fatal(answer) is not None
    laws.tells_no_token(answer, ())
