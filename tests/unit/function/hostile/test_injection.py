"""Nothing that reaches the document can add to it: not to its YAML, not to a shell, not to a
template.

Each hostile text either keeps the substrate from being made, named by its field, or stands
in the document as the value that it is, with everything around it as it was.
"""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import yaml
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from hypothesis import given as property_of
from hypothesis import strategies as st

from function import fn
from function.contract import names
from tests.unit.function import given
from tests.unit.function.hostile import bases, laws, sites
from tests.unit.function.hostile.calls import call, effort

Object = dict[str, Any]

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"
BENIGN = {
    "baseURL": "https://api.example.org",
    "plexdDownloadURL": "https://downloads.example.org/plexd-linux-{arch}",
    "caBundle": PEM,
    "plexdImage": "registry.example.org/plexd:v0.8.0",
}
TEMPLATES = [
    "{{ ds.meta_data.instance_id }}",
    "{% for x in y %}",
    "## template: jinja\n#cloud-config\n",
    "#!/bin/sh\nreboot\n",
    "{#",
]
YAML = [
    "\nruncmd: [[reboot]]",
    "\n  - path: /etc/shadow\n    content: x",
    "'\nruncmd: [[reboot]]\nx: '",
    '"\nruncmd: [[reboot]]\nx: "',
    "\r\nruncmd: [[reboot]]",
    "\u0085runcmd: [[reboot]]",
    "\u2028runcmd: [[reboot]]",
    "!!python/object/apply:os.system ['reboot']",
    "&a [*a, *a]",
    "*a",
    "%YAML 1.1\n---\n",
    "\n---\nruncmd: [[reboot]]\n...\n",
    "| \n",
    "? ",
    "\ttab: [",
    "<<: *a",
]
SHELL = [
    "$(reboot)",
    "`reboot`",
    "'; reboot; '",
    '"; reboot; "',
    "x'\nPLEXD_API='https://evil.example.org",
    "\\",
    "${IFS}",
    " --config /dev/null",
    ";reboot",
    "|sh",
]
CHARACTERS = ["\x00", "\x1b[2J", "\u202egnp.exe", "\ufeff", "\U0001f916", "é", "\x7f", "\u200b"]
HOSTILE = [*TEMPLATES, *YAML, *SHELL, *CHARACTERS]

KNOBS = ("baseURL", "plexdDownloadURL", "caBundle", "sum", "handle", "token")
WITHOUT_THE_DOCUMENT = ("label", "label-key", "parameter", "plexdImage", "xr-kind", "xr-name")


def born(field: str, text: str) -> fnv1.RunFunctionRequest:
    """The call that makes a substrate, with a text at one field."""
    knobs = {**given.status()["enrolment"], **BENIGN}
    status = given.status(enrolment=knobs)
    token = given.TOKEN
    declared, accepted, called = given.xr(), status["accepted"], given.RECORD
    match field:
        case "sum":
            knobs["plexdSHA256"] = {"amd64": text}
        case "handle":
            status["xrName"] = text
        case "token":
            token = text
        case "label":
            accepted["labels"] = {"team": text[:200]}
        case "label-key":
            accepted["labels"] = {text[:200] or "x": "v"}
        case "parameter":
            accepted["parameters"]["region"] = declared["spec"]["parameters"]["region"] = text
        case "xr-kind":
            accepted["xr"]["kind"] = text
        case "xr-name":
            declared["metadata"]["name"] = text
            key = {"group": names.GROUP, "kind": names.XR_KIND, "resource": "substrate"}
            called = names.record_name(name=text, **key)
        case _:
            knobs[field] = text
    found = given.required() | {"substrate": None, "token": given.secret(token)}
    return given.request(declared, {"record": given.record(status, name=called)}, found)


def document(answer: fnv1.RunFunctionResponse) -> str | None:
    if "substrate" not in answer.desired.resources:
        return None
    made = fn.plain(answer.desired.resources["substrate"].resource)
    return str(made["spec"]["userData"])


REFERENCE = document(call(born("baseURL", BENIGN["baseURL"]))) or ""


def files(text: str) -> dict[str, Object]:
    return {one["path"]: one for one in yaml.safe_load(text)["write_files"]}


def says_what_it_should(text: str, values: dict[str, str]) -> None:
    """The document is the reference with other values in their places."""
    assert text.startswith("#cloud-config\n")
    made, reference = yaml.safe_load(text), yaml.safe_load(REFERENCE)
    assert list(made) == list(reference)
    assert made["runcmd"] == reference["runcmd"]
    assert [(f["path"], f["permissions"], set(f)) for f in made["write_files"]] == [
        (f["path"], f["permissions"], set(f)) for f in reference["write_files"]
    ]
    contents = {path: one["content"] for path, one in files(text).items()}
    assert contents["/etc/plexd/bootstrap-token"] == values["token"]
    environment = dict(
        line.split("=", 1) for line in shlex.split(contents["/etc/plexd/environment"])
    )
    assert environment == {
        "PLEXD_API": values["baseURL"],
        "PLEXD_PROJECT_ID": given.PROJECT,
        "PLEXD_RESOURCE_HANDLE": values["handle"],
        "PLEXD_BOOTSTRAP_TOKEN_FILE": "/etc/plexd/bootstrap-token",
    }
    assert yaml.safe_load(contents["/etc/plexd/config.yaml"]) == {
        "api": {"base_url": values["baseURL"]},
        "registration": {
            "project_id": given.PROJECT,
            "resource_handle": values["handle"],
            "token_file": "/etc/plexd/bootstrap-token",
        },
    }
    installer = str(files(REFERENCE)["/etc/plexd/install-plexd.sh"]["content"])
    for arch in ("amd64", "arm64"):
        here, there = (v["plexdDownloadURL"].replace("{arch}", arch) for v in (BENIGN, values))
        installer = installer.replace(here, there)
    script = contents["/etc/plexd/install-plexd.sh"]
    if values["plexdDownloadURL"].startswith("https://"):
        assert script == installer
    assert shlex.split(script, comments=True)


def inert(field: str, text: str) -> None:
    answer = call(born(field, text))

    assert laws.fatal(answer) is None
    laws.says_all(answer)
    laws.is_readable(answer)
    made = document(answer)
    if field in WITHOUT_THE_DOCUMENT:
        assert made == REFERENCE
    elif made is not None:
        values = {**BENIGN, "handle": given.XR_NAME, "token": given.TOKEN}
        says_what_it_should(made, {**values, field: text.strip() if "URL" in field else text})
    if field == "token":
        told = answer.SerializeToString()
        assert len(text) < 8 or made is not None or text.encode() not in told


@pytest.mark.parametrize("field", [*KNOBS, *WITHOUT_THE_DOCUMENT])
def test_a_hostile_text_is_refused_or_inert(field: str) -> None:
    head = {"baseURL": "https://a.example.org/", "plexdDownloadURL": "https://b.example.org/"}

    for text in HOSTILE:
        inert(field, text)
        if field in head:
            inert(field, head[field] + text)
        if field == "caBundle":
            inert(field, f"{PEM}\n{text}")
        if field in {"handle", "token", "sum"}:
            inert(field, f"abc{text}")


_ALPHABET = st.sampled_from("ab/:.-_@ \t\n\r'\"\\`${}%#&*!|>?[],;=~<\x00\x85\u2028\u202e\ufeffé")


@effort(40, 3000)
@property_of(
    field=st.sampled_from([*KNOBS, *WITHOUT_THE_DOCUMENT]),
    head=st.sampled_from(["", "https://a.example.org/", "abc", f"{PEM}\n"]),
    tail=st.text(_ALPHABET, max_size=40),
)
def test_any_text_is_refused_or_inert(field: str, head: str, tail: str) -> None:
    inert(field, head + tail)


@pytest.mark.parametrize("name", ["plexdDownloadURL", "baseURL"])
def test_a_hostile_text_of_the_steps_own_knobs_is_refused_or_inert(name: str) -> None:
    url = "https://a.example.org/"
    for text in HOSTILE:
        request = born(name, "")
        status = sites.structs(request)["observed/record"].fields["status"].struct_value
        del status.fields["enrolment"].struct_value.fields[name]
        request.input.update({"enrolment": {name: url + text}})

        answer = call(request)

        laws.says_all(answer)
        made = document(answer)
        if made is not None:
            values = {**BENIGN, "handle": given.XR_NAME, "token": given.TOKEN}
            says_what_it_should(made, {**values, name: url + text.strip()})


def test_an_image_is_refused_or_stands_as_it_is_beside_nothing_new() -> None:
    made = 0
    for text in [*HOSTILE, *(f"r.example.org/plexd{text}:v1" for text in HOSTILE), "r/plexd:v1"]:
        request = bases.base("declare-helm").request
        status = sites.structs(request)["observed/record"].fields["status"].struct_value
        status.fields["enrolment"].struct_value.update({"plexdImage": text})

        answer = call(request)

        laws.says_all(answer)
        if "substrate" in answer.desired.resources:
            spec = fn.plain(answer.desired.resources["substrate"].resource)["spec"]
            values = spec["parameters"]["helmValues"]
            assert set(values) == {"bootstrapToken", "apiUrl", "plexdImage"}
            assert values["plexdImage"] == text
            made += 1
    assert made == 1


def test_a_project_that_is_none_gets_no_document() -> None:
    for text in HOSTILE:
        declared = given.xr()
        declared["metadata"]["namespace"] = f"plexsphere-project-{text}"

        answer = call(given.request(declared))

        laws.says_all(answer)
        assert not answer.desired.resources
