"""The half of an object that this XR's pipeline last composed, read off the object.

Reading field ownership. A resource that no step composes any more must stay as it is until
it may go, and composing less of it would take the rest away. Source: Kubernetes,
"Server-Side Apply", fieldsV1; Crossplane core, `FieldOwnerComposedPrefix`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from function.model.objects import Raw, mapping, metadata

_MANAGER: Final = "apiextensions.crossplane.io/composed"
_OF_METADATA: Final = ("name", "namespace", "labels", "annotations")
_OF_NOBODY: Final = frozenset({"status", "metadata"})
_LIST_ITEMS: Final = ("k:", "v:", "i:")


def last_applied(live: Raw) -> dict[str, Any]:
    """Return what the pipeline composed of an object, with its present values.

    A list of which items are owned one by one is returned whole. Where the object does not
    say who owns what, it is all but what Crossplane writes itself.
    """
    fields = _fields(live)
    made = _everything(live) if fields is None else mapping(_chosen(live, fields))
    head = metadata(made) if fields is None else mapping(_chosen(metadata(live), _under(fields)))
    kept = {key: head[key] for key in _OF_METADATA if key in head}
    kept["name"] = metadata(live).get("name")
    return {
        "apiVersion": live.get("apiVersion"),
        "kind": live.get("kind"),
        **{key: value for key, value in made.items() if key not in _OF_NOBODY},
        "metadata": kept,
    }


def _fields(live: Raw) -> Raw | None:
    entries = metadata(live).get("managedFields")
    for entry in entries if isinstance(entries, list) else ():
        found = mapping(entry)
        ours = str(found.get("manager", "")).startswith(_MANAGER)
        if ours and found.get("operation") == "Apply" and not found.get("subresource"):
            return mapping(found.get("fieldsV1"))
    return None


def _under(fields: Raw) -> Raw:
    return mapping(fields.get("f:metadata"))


def _chosen(value: object, fields: Raw) -> Any:
    """Return the part of a value that a set of fields names."""
    items = any(key.startswith(_LIST_ITEMS) for key in fields)
    names = [key for key in fields if key.startswith("f:")]
    if items or not names or not isinstance(value, Mapping):
        return deepcopy(value)
    return {
        key.removeprefix("f:"): _chosen(value[key.removeprefix("f:")], mapping(fields[key]))
        for key in names
        if key.removeprefix("f:") in value
    }


def _everything(live: Raw) -> dict[str, Any]:
    made = {key: deepcopy(live[key]) for key in live if key not in {"spec", "status"}}
    spec = live.get("spec")
    if isinstance(spec, Mapping):
        made["spec"] = {key: deepcopy(spec[key]) for key in spec if key != "crossplane"}
    elif spec is not None:
        made["spec"] = spec
    return made
