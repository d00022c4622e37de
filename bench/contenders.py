"""The functions that are compared, each as a process of its own.

How each is started and what it is sent. All serve in the clear on loopback: TLS costs all
of them the same.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import grpc
import psutil
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import json_format

from bench.scenarios import Scenario
from dev import process
from function import fn

METHOD: Final = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"

START_TIMEOUT_S: Final = 60.0
"""Imports take two seconds on an idle core, several times that on a busy one."""

OURS: Final = "ours"
"""How our function is called in tables."""

_FOLDER: Final = Path(__file__).parent
_PYTHONIC_INPUT: Final = {
    "apiVersion": "pythonic.fn.crossplane.io/v1alpha1",
    "kind": "Composite",
    "composite": "pythonic_plan.Plan",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How a contender is started.

    Attributes:
        name: How tables call it.
        argv: Makes its arguments from its address and the plan's file.
        input: Replaces the step's input, which is ours; None keeps it.
        env: Added to the environment.
    """

    name: str
    argv: Callable[[str, Path], list[str]]
    input: dict[str, str] | None = None
    env: dict[str, str] = field(default_factory=dict)


class Requests:
    """A request on the wire, another text of one record in each, in turns.

    Args:
        wire: The request.
        versions: The texts in it that change.

    Attributes:
        first: The request as it is, which the scenario's answer is to.
    """

    def __init__(self, wire: bytes, versions: Sequence[bytes]) -> None:
        self.first = wire
        self._wire = bytearray(wire)
        self._places = [wire.index(version) for version in versions]
        self._count = 0

    def __next__(self) -> bytes:
        self._count += 1
        place = self._places[self._count % len(self._places)]
        version = b"%016d" % self._count
        self._wire[place : place + len(version)] = version
        return bytes(self._wire)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One function that runs.

    Attributes:
        requests: What it is sent.
        pid: Its process.
        same: Whether it composes the same objects as ours when the request changed.
    """

    name: str
    address: str
    requests: Requests
    pid: int
    same: bool = True

    @property
    def resident_bytes(self) -> int:
        """Resident memory right now."""
        return int(psutil.Process(self.pid).memory_info().rss)

    @property
    def cpu_s(self) -> float:
        """Processor time it has taken so far: what other work on the machine leaves alone."""
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)


def ours() -> Command:
    """Our function as it is installed, metrics switched on."""

    def argv(address: str, _plan: Path) -> list[str]:
        script = Path(sys.executable).with_name("function")
        metrics = f"127.0.0.1:{process.free_port()}"
        return [str(script), "--insecure", "--address", address, "--metrics-address", metrics]

    return Command(name=OURS, argv=argv)


def bare() -> Command:
    """The bare SDK."""

    def argv(address: str, plan: Path) -> list[str]:
        return [sys.executable, "-m", "bench.bare", "--plan", str(plan), "--address", address]

    return Command(name="bare SDK", argv=argv)


def pythonic(program: Path, version: str) -> Command:
    """function-pythonic in its environment.

    Args:
        program: Its console script.
        version: Its release; the old ones have no subcommands.
    """

    def argv(address: str, _plan: Path) -> list[str]:
        verb = [] if version.startswith("0.1.") else ["grpc"]
        return [str(program), *verb, "--insecure", "--address", address]

    return Command(
        name=f"pythonic {version}",
        argv=argv,
        input=_PYTHONIC_INPUT,
        env={"PYTHONPATH": str(_FOLDER)},
    )


@contextlib.contextmanager
def running(scenario: Scenario, commands: list[Command], folder: Path) -> Iterator[list[Contender]]:
    """Start contenders for one scenario; they end with the block.

    Args:
        scenario: What each is sent.
        commands: How each is started.
        folder: Where the plan and the logs go.

    Raises:
        ProcessError: One does not start.
        ValueError: One does not compose what the scenario asks for.
    """
    plan = folder / "plan.json"
    plan.write_text(json.dumps(scenario.plan))
    with contextlib.ExitStack() as stack:
        children = []
        for number, command in enumerate(commands):
            address = f"127.0.0.1:{process.free_port()}"
            program = process.Program(
                name=command.name,
                argv=command.argv(address, plan),
                env=command.env | {"BENCH_PLAN": str(plan)},
                cwd=_FOLDER.parent,
            )
            child = process.Child(program, folder / f"contender-{number}.log")
            stack.callback(child.stop)
            children.append((child, address))
        yield [
            _ready(scenario, command, *started)
            for command, started in zip(commands, children, strict=True)
        ]


def _ready(scenario: Scenario, command: Command, child: process.Child, address: str) -> Contender:
    request = fnv1.RunFunctionRequest()
    request.CopyFrom(scenario.request)
    if command.input is not None:
        json_format.ParseDict(command.input, request.input)
    contender = Contender(
        name=command.name,
        address=address,
        requests=Requests(request.SerializeToString(), scenario.versions),
        pid=child.pid,
    )
    with grpc.insecure_channel(address) as channel:
        ready = grpc.channel_ready_future(channel)
        child.await_ready(functools.partial(_done, ready), timeout_s=START_TIMEOUT_S)
        if different := _differing(contender.requests.first, scenario.answer, channel):
            message = f"cannot compare {contender.name}: it composes another {different[0]}"
            raise ValueError(message)
        changed = next(contender.requests)
        request = fnv1.RunFunctionRequest.FromString(changed)
        request.input.CopyFrom(scenario.request.input)
        same = not _differing(changed, fn.run(request), channel)
        if not same and command.name == OURS:
            message = f"cannot measure {contender.name}: another process answers otherwise"
            raise ValueError(message)
    return replace(contender, same=same)


def _done(future: grpc.Future) -> bool:
    return bool(future.done())


def _differing(
    request: bytes, wanted: fnv1.RunFunctionResponse, channel: grpc.Channel
) -> list[str]:
    """Name what a contender composes otherwise than it is wanted."""
    call = channel.unary_unary(METHOD, None, fnv1.RunFunctionResponse.FromString)
    ours, its = wanted.desired, call(request, timeout=START_TIMEOUT_S).desired
    return [
        name
        for name in sorted({*ours.resources, *its.resources})
        if ours.resources[name].resource != its.resources[name].resource
    ]
