"""How a golden case is read, answered and written.

What the test and the regenerating script share.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import yaml
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import json_format

from function import fn

FOLDER = Path(__file__).parent
REQUEST = "request.yaml"
RESPONSE = "response.yaml"


def every() -> list[Path]:
    """Every case's folder, by name."""
    return sorted(path.parent for path in FOLDER.glob(f"*/{REQUEST}"))


def response(case: Path) -> str:
    """What the function answers to a case's request, as the text of its file."""
    body = yaml.safe_load((case / REQUEST).read_text())
    request = json_format.ParseDict(body, fnv1.RunFunctionRequest())
    return text(fn.run(request))


def text(message: fnv1.RunFunctionRequest | fnv1.RunFunctionResponse) -> str:
    """A message as YAML, keys sorted, lists in their order."""
    body = _whole(json_format.MessageToDict(message))
    return str(yaml.dump(body, Dumper=_Dumper, width=math.inf, allow_unicode=True))


class _Dumper(yaml.SafeDumper):
    """Shows text of several lines as a block."""


def _block(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _block)


def _whole(value: Any) -> Any:
    """A Struct's whole doubles as the integers they were."""
    match value:
        case dict():
            return {key: _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value
