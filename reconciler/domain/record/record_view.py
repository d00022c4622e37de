"""Parses a ProvisioningRecord.

Parsing one raw record into a frozen value, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic import ValidationError

from function.contract import names
from function.contract.errors import ContractError
from function.contract.record import RecordSpec, XRReference
from reconciler.domain.aggregate import ids
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import RecordIdentity, ResourceKey
from reconciler.domain.teardown import force_release, release
from reconciler.domain.teardown.force_release import ForceRelease


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    """One record at one resourceVersion.

    Attributes:
        generation: The spec's generation, for `observedGeneration`.
        terminating: It has a deletionTimestamp.
        finalizer: It still carries the teardown finalizer.
        paused: It carries `crossplane.io/paused: "true"`.
        controller_uid: The uid of the XR that controls it; None when orphaned.
        force_release: The wish to skip deregistration, or why the annotation is none; None
            without it.
        spec: The function's half.
        status: The raw status, as last written.
        raw: The whole object, for the gateway's preconditions.
    """

    name: str
    namespace: str
    uid: str
    generation: int
    terminating: bool
    finalizer: bool
    paused: bool
    controller_uid: str | None
    force_release: ForceRelease | Explanation | None
    spec: RecordSpec
    status: dict[str, Any]
    raw: dict[str, Any]

    @property
    def teardown_asked(self) -> bool:
        """Whether its teardown is due."""
        return release.teardown_asked(terminating=self.terminating, drain=self.spec.drain)

    @property
    def identity(self) -> RecordIdentity:
        """Which record object this is."""
        return RecordIdentity(name=self.name, uid=self.uid)

    @property
    def project_id(self) -> ids.ProjectID | None:
        """The Project whose namespace it lies in, or None outside a Project."""
        project = names.project_id(self.namespace)
        return None if project is None else ids.ProjectID(project)

    @property
    def key(self) -> ResourceKey | None:
        """What identifies its aggregate, or None outside a Project."""
        project = self.project_id
        if project is None:
            return None
        xr = self.spec.declaration.xr
        return ResourceKey(
            project_id=project,
            namespace=self.namespace,
            group=names.group_of(xr.api_version),
            kind=xr.kind,
            name=xr.name,
            resource=self.spec.declaration.resource,
        )

    @property
    def named_resource(self) -> ids.ProvisionedResourceID | None:
        """The aggregate that its status names, which the reconciler alone writes; None without."""
        try:
            found = UUID(str(self.status.get("provisionedResourceID")))
        except ValueError:
            return None
        # The zero id is nobody's, and a name that differs was not written by us.
        told = found.int != 0 and self.status.get("xrName") == names.xr_name(found)
        return ids.ProvisionedResourceID(found) if told else None

    @property
    def xr(self) -> XRReference:
        """Its composite resource, by the uid that controls it now."""
        declared = self.spec.declaration.xr
        return declared.model_copy(update={"uid": self.controller_uid or declared.uid})


def parse(raw: dict[str, Any]) -> RecordView:
    """Read a raw record.

    Raises:
        ContractError: Its spec does not have the contract's shape; names the first field.
    """
    metadata = raw["metadata"]
    try:
        spec = RecordSpec.model_validate(raw.get("spec") or {})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(("spec", *(str(part) for part in first["loc"])))
        raise ContractError(field=field, rule=first["msg"]) from error
    annotations = metadata.get("annotations") or {}
    return RecordView(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        generation=int(metadata.get("generation", 0)),
        terminating="deletionTimestamp" in metadata,
        finalizer=names.FINALIZER in (metadata.get("finalizers") or []),
        paused=annotations.get(names.PAUSED) == "true",
        controller_uid=_controller(metadata),
        force_release=force_release.read(metadata),
        spec=spec,
        status=raw.get("status") or {},
        raw=raw,
    )


def _controller(metadata: dict[str, Any]) -> str | None:
    for owner in metadata.get("ownerReferences") or []:
        if owner.get("controller"):
            return str(owner["uid"])
    return None
