"""Calls of the servicer as Crossplane makes them, without a socket or an event loop.

One call, its bytes, the effort of a run.
"""

from __future__ import annotations

import os
from collections.abc import Coroutine
from typing import Any

import structlog
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from hypothesis import HealthCheck, Phase, settings

from function import fn

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
"""Whether this run has the minutes of `make test-long`, and not the seconds of `make check`."""


def effort(quick: int, thorough: int, **more: Any) -> settings:
    """Settings of a property: the same examples on every quick run, new ones on a long one.

    A quick run does not make a failure small: that takes minutes.
    """
    return settings(
        max_examples=thorough if LONG else quick,
        derandomize=not LONG,
        phases=[Phase.generate, Phase.shrink] if LONG else [Phase.generate],
        report_multiple_bugs=LONG,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **more,
    )


class _Context:
    """The servicer looks at no context."""


_OLD = fn.FunctionRunner()
"""It remembers whatever was asked before, by every test of the process."""


def call(request: fnv1.RunFunctionRequest) -> fnv1.RunFunctionResponse:
    """One answer; what is logged meanwhile is part of the failure when there is anything.

    Whoever remembers earlier calls gives the same one.
    """
    with structlog.testing.capture_logs() as logged:
        answer = _run(fn.FunctionRunner().RunFunction(request, _Context()))
        for _ in range(2 if LONG else 1):
            assert wire(_run(_OLD.RunFunction(request, _Context()))) == wire(answer)
    assert not logged
    assert isinstance(answer, fnv1.RunFunctionResponse)
    return answer


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    # It awaits nothing, so one step takes it to its end.
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    message = "the servicer awaits something"
    raise AssertionError(message)


def wire(message: Any) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))
