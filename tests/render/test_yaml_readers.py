"""What we print as YAML reads the same in Python (YAML 1.1) and in Go's Kubernetes tools."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml as pyyaml

from function.render.documents import yaml
from tests.render.conftest import RENDER_TIMEOUT_S, Crossplane

pytestmark = pytest.mark.render

FLAGS = ("--crossplane-image=", "--error-on-missing-schemas")

AMBIGUOUS = [
    "y", "Y", "n", "N", "yes", "No", "ON", "off", "true", "FALSE", "null", "NULL", "~", "",
    "08", "0o7", "0o14", "010", "0x1f", "0b101", "1_000", "+1", "-1", "1", "1.0", ".5", "5.", "1e3",
    "1E3", "1e", "e1", ".inf", "-.Inf", ".nan", "NaN", "inf", "190:20:30", "1:30", "12:30:45.5",
    "2024-01-01", "2024-01-01T00:00:00Z", "2024-1-1", "<<", "=", "---", "...", "- a", "a: b",
    "a:", ": a", "#a", "a #b", "!a", "&a", "*a", "|", ">", "%a", "@a", "`a", "'", '"', "[a", "{a",
    "a,b", "?", "? a", "-", "--", " a", "a ", "\ta", "a\tb", "a\nb", "a\n", "\na", "a\n\n", " a\nb",
    "a\\nb", "a\u0085b", "a\u2028b", "a\ufeffb", "a\u00a0b", "{{ .token }}", "${TOKEN}", "A/b", "é",
    "\U0001f600", "0", "-0", "00", "1__0", "0.", "1.e+3", "0x", "0o8", "0b2", "Null", "True",
    "y ", "no", "x" * 300,
]  # fmt: skip
"""Texts that YAML 1.1, YAML 1.2 or Go's reader take for something else when they stand plain."""

CORE = re.compile(
    r"~|null|Null|NULL|true|True|TRUE|false|False|FALSE|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN"
)
"""What YAML 1.2's core schema takes for no string, when it stands plain.

Source: YAML 1.2.2, 10.3.2."""


def holder(value: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "test.example.org/v1",
        "kind": "Holder",
        "metadata": {"name": "holder"},
        "spec": value,
    }


def schema(value: dict[str, str]) -> dict[str, Any]:
    """A CRD that takes exactly these texts."""
    properties = {key: {"type": "string", "enum": [text]} for key, text in value.items()}
    spec = {"type": "object", "properties": properties, "required": sorted(properties)}
    top = {"type": "object", "properties": {"spec": spec}, "required": ["spec"]}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": top}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "holders.test.example.org"},
        "spec": {
            "group": "test.example.org",
            "scope": "Cluster",
            "names": {"kind": "Holder", "plural": "holders"},
            "versions": [version],
        },
    }


def judged(command: Crossplane, subject: Path, schemas: Path) -> tuple[int, str]:
    """Crossplane's verdict on a file as it is."""
    done = subprocess.run(
        [str(command.cli), "resource", "validate", str(schemas), str(subject), *FLAGS],
        capture_output=True,
        text=True,
        timeout=RENDER_TIMEOUT_S,
        check=False,
        env={"HOME": str(command.folder), "PATH": "/usr/bin:/bin"},
    )
    return done.returncode, done.stdout + done.stderr


def test_pythons_reader_gets_every_text_back() -> None:
    value = {text or "empty": text for text in AMBIGUOUS}

    assert pyyaml.safe_load(yaml.dump(value)) == value


def test_no_plain_scalar_is_something_else_in_yaml_1_2() -> None:
    printed = yaml.dump({f"k{number}": text for number, text in enumerate(AMBIGUOUS)})

    plain = [
        token.value
        for token in pyyaml.scan(printed, Loader=pyyaml.SafeLoader)
        if isinstance(token, pyyaml.ScalarToken) and token.plain
    ]

    assert [text for text in plain if CORE.fullmatch(text)] == []


def test_gos_reader_gets_every_text_back(command: Crossplane, tmp_path: Path) -> None:
    # A schema that holds U+0085 is changed by the command itself before it is used.
    texts = [text for text in AMBIGUOUS if "\u0085" not in text]
    value = {f"k{number}": text for number, text in enumerate(texts)}
    (tmp_path / "schema").mkdir()
    # JSON is YAML that no reader doubts, but for a pair of surrogates.
    exact = json.dumps(schema(value)).replace("\\ud83d\\ude00", "\U0001f600")
    (tmp_path / "schema" / "crd.yaml").write_text(exact)
    subject = tmp_path / "printed.yaml"
    subject.write_text(yaml.dump(holder(value)))

    status, told = judged(command, subject, tmp_path / "schema")

    assert status == 0, told


def test_the_check_of_gos_reader_can_fail(command: Crossplane, tmp_path: Path) -> None:
    (tmp_path / "schema").mkdir()
    (tmp_path / "schema" / "crd.yaml").write_text(json.dumps(schema({"k": "1e3"})))
    subject = tmp_path / "printed.yaml"
    subject.write_text(pyyaml.safe_dump(holder({"k": "1e3"})))

    status, told = judged(command, subject, tmp_path / "schema")

    assert status == 1, told
