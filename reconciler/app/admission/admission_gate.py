"""Checks catalogue, cluster and rights before anything is stored.

Resolving what a declaration names, and the checks that need the cluster. Source: design §2,
"What holds it"; docs/decisions/0009.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from function.contract.catalog.published import BlueprintVersionSpec, CloudCredentialSpec, CloudSpec
from function.contract.conditions import Reason
from function.contract.record import SubstrateReference
from reconciler.app.guard import any_version
from reconciler.domain.admission import admission, parameter_rules
from reconciler.domain.aggregate.errors import (
    AssignmentNotFoundError,
    BrokerError,
    ExternalSecretTakenError,
    NamespaceNotReadyError,
    RefusedError,
)
from reconciler.domain.aggregate.explanation import Explanation
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.protection import external_secret, provider_config
from reconciler.domain.record.record_view import RecordView
from reconciler.ports.cluster.catalog import Catalog, ProjectView
from reconciler.ports.cluster.management_cluster import ManagementCluster
from reconciler.ports.cluster.namespaces import SOMEBODY_ELSE

PROTECTED_VERBS: Final = ("get", "patch", "delete")
"""What a teardown does with substrate and siblings."""

PROVIDER_CONFIG_VERBS: Final = ("get", "create", "patch", "delete")
"""What the broker does with a real provider's ProviderConfig."""

XR_VERBS: Final = ("get",)
"""Who deletes a substrate depends on the state of its XR."""


class AdmissionGate:
    """Judges declarations on one management cluster."""

    def __init__(self, catalog: Catalog, cluster: ManagementCluster) -> None:
        self._catalog = catalog
        self._cluster = cluster

    def closed(self, view: RecordView) -> Explanation | None:
        """Say why nothing may be given out in a record's namespace; None while something may.

        Asked of the local view, at every step that gives something out; it costs nothing. What
        is there already stays as it is, whatever the answer.
        """
        try:
            self._project(view)
        except BrokerError as error:
            return Explanation(
                reason=error.reason, message=f"{error}; no token or credential is issued."
            )
        return None

    async def admit(
        self, view: RecordView, existing: ProvisionedResource | None
    ) -> BlueprintVersionSpec | None:
        """Judge a record's declaration against everything there is.

        Args:
            view: The record.
            existing: The aggregate that was accepted for it; None while none was.

        Returns:
            The blueprint, or None where it is somebody else's resource (`Enrol`).

        Raises:
            BrokerError: The first rule it breaks.
            KindNotServedError: An edit needs to know whether its machine is there, and its kind
                is not served.
        """
        fresh = existing is None
        project = self._project(view)
        if fresh and view.controller_uid is None:
            message = "metadata.ownerReferences: must name a composite resource as the controller"
            raise RefusedError(message, reason=Reason.NO_CONTROLLER)
        blueprint = await self._judged(view, project, existing)
        await self._may_tear_down(view, self._protected(view, blueprint))
        problem = await self._cluster.checks.hold_policies_problem() if fresh else None
        if problem is not None:
            message = f"admission policies: {problem}; apply deploy/policies"
            raise RefusedError(message, reason=Reason.HOLD_MISSING)
        return blueprint

    def _project(self, view: RecordView) -> ProjectView:
        project_id = view.project_id
        project = None if project_id is None else self._catalog.project(project_id)
        if project is None:
            message = f"metadata.namespace: {view.namespace!r} belongs to no Project that exists"
            raise AssignmentNotFoundError(message)
        if not project.namespace_ready:
            message = "metadata.namespace: the Project's namespace is not Ready"
            raise NamespaceNotReadyError(message)
        return project

    async def _judged(
        self, view: RecordView, project: ProjectView, existing: ProvisionedResource | None
    ) -> BlueprintVersionSpec | None:
        declaration = view.spec.declaration
        name = declaration.cloud_credential
        credential = None if name is None else self._catalog.credential(name)
        cloud = None if credential is None else self._catalog.cloud(credential.cloud_ref.name)
        if declaration.blueprint is None:
            admission.judge_enrolled(
                declaration, project=project.name, credential=credential, cloud=cloud
            )
            await self._external_secret_is_free(view, credential)
            return None
        blueprint, credential, cloud = admission.judge(
            declaration,
            project=project.name,
            blueprint=self._catalog.blueprint(declaration.blueprint.name),
            credential=credential,
            cloud=cloud,
            before=await self._before(view, existing),
        )
        await self._provider_is_there(view, blueprint)
        await self._provider_config_is_free(view, blueprint, credential, cloud)
        await self._external_secret_is_free(view, credential)
        return blueprint

    async def _before(
        self, view: RecordView, existing: ProvisionedResource | None
    ) -> parameter_rules.Before | None:
        if existing is None:
            return None
        edits = parameter_rules.edits(existing.accepted, view.spec.declaration)
        exists = edits and await self._machine_exists(view, existing)
        return parameter_rules.Before(accepted=existing.accepted, exists=exists)

    async def _machine_exists(self, view: RecordView, existing: ProvisionedResource) -> bool:
        """Tell whether there is a machine that an edit of parameters would reach.

        The record may be of a run that did not see what the one before it made.
        """
        if view.spec.observed.exists:
            return True
        reference = existing.substrate.reference
        live = await any_version.read(self._cluster, reference, view.namespace)
        return live is not None and not live.terminating

    def _protected(
        self, view: RecordView, blueprint: BlueprintVersionSpec | None
    ) -> Sequence[SubstrateReference]:
        if blueprint is None:
            return view.spec.substrate
        xr = blueprint.xr
        return (SubstrateReference(api_version=xr.api_version, kind=xr.kind, name=view.name),)

    async def _may_tear_down(
        self, view: RecordView, protected: Sequence[SubstrateReference]
    ) -> None:
        """Refuse what could not be taken down again: no bootstrap for it."""
        enrolled = view.spec.declaration.blueprint is None
        field = "spec.substrate" if enrolled else "spec.blueprintRef.name"
        reason = Reason.UNSUPPORTED_KIND if enrolled else Reason.UNSUPPORTED_BLUEPRINT
        for reference in protected:
            problem = await self._cluster.checks.definition_problem(reference)
            if problem is not None:
                message = f"{field}: {problem}"
                raise RefusedError(message, reason=reason)
            await self._allowed(field, reference.api_version, reference.kind, PROTECTED_VERBS)
        xr = view.spec.declaration.xr
        await self._allowed("spec.declaration.xr", xr.api_version, xr.kind, XR_VERBS)

    async def _allowed(self, field: str, api_version: str, kind: str, verbs: Sequence[str]) -> None:
        missing = await self._cluster.checks.missing_rights(
            api_version=api_version, kind=kind, verbs=verbs
        )
        if missing:
            message = (
                f"{field}: the reconciler lacks the right to {', '.join(missing)} {kind} in "
                f"{api_version} in all namespaces, so it could not tear it down; grant this in a "
                "ClusterRole that aggregates to provisioning-broker-reconciler-additions"
            )
            raise RefusedError(message, reason=Reason.RIGHTS_MISSING)

    async def _external_secret_is_free(
        self, view: RecordView, credential: CloudCredentialSpec | None
    ) -> None:
        """Refuse a credential that a stranger's ExternalSecret would bring."""
        if credential is None or credential.secret_store_ref is None:
            return
        manifest = external_secret.manifest(
            namespace=view.namespace, vault=credential.vault, store=credential.secret_store_ref
        )
        if await self._cluster.credentials.external_secret_taken(manifest):
            declaration = view.spec.declaration
            enrolled = declaration.blueprint is None
            field = (
                "input.resources.cloudCredential" if enrolled else "spec.cloudCredentialRef.name"
            )
            rule = external_secret.taken(
                manifest["metadata"]["name"], declaration.cloud_credential or ""
            )
            message = f"{field}: {rule}"
            raise ExternalSecretTakenError(message)

    async def _provider_is_there(self, view: RecordView, blueprint: BlueprintVersionSpec) -> None:
        """Refuse a blueprint whose provider is not installed, or out of the broker's reach."""
        target = blueprint.provider_config
        if target is None or target.api_version is None:
            return
        field, kind = "BlueprintVersion.spec.providerConfig", provider_config.KIND
        reference = SubstrateReference(api_version=target.api_version, kind=kind, name="")
        problem = await self._cluster.checks.definition_problem(reference)
        if problem is not None:
            message = f"{field}.apiVersion: {problem}"
            raise RefusedError(message, reason=Reason.UNSUPPORTED_BLUEPRINT)
        missing = await self._cluster.checks.missing_rights(
            api_version=target.api_version,
            kind=kind,
            verbs=PROVIDER_CONFIG_VERBS,
            namespace=view.namespace,
        )
        if missing:
            message = (
                f"{field}: the reconciler lacks the right to {', '.join(missing)} {kind} in "
                f"{target.api_version} in {view.namespace!r}; grant this in a ClusterRole that "
                "aggregates to provisioning-broker-project"
            )
            raise RefusedError(message, reason=Reason.RIGHTS_MISSING)

    async def _provider_config_is_free(
        self,
        view: RecordView,
        blueprint: BlueprintVersionSpec,
        credential: CloudCredentialSpec,
        cloud: CloudSpec,
    ) -> None:
        own = view.spec.declaration.cloud_credential or ""
        manifest = provider_config.manifest(
            name=provider_config.name(blueprint, cloud, own),
            namespace=view.namespace,
            credential_name=own,
            credential=credential,
            cloud=cloud,
            target=blueprint.provider_config,
        )
        holder = await self._cluster.provider_configs.provider_config_holder(manifest)
        if holder is not None and holder != own:
            rule = provider_config.taken(
                manifest["metadata"]["name"], None if holder == SOMEBODY_ELSE else holder
            )
            message = f"spec.cloudCredentialRef.name: {rule}"
            raise RefusedError(message, reason=Reason.PROVIDER_CONFIG_TAKEN)
