"""Collects what a bootstrap document is rendered from.

Gathering the material.
"""

from __future__ import annotations

from function.compose import substrate_lookup
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.record import Declaration, Enrolment
from function.model.facts import Facts
from function.render.documents import cloudinit
from function.render.fields import inject


def material(facts: Facts, accepted: Declaration, enrolment: Enrolment) -> inject.Material:
    """Return what the strategies take.

    Raises:
        ContractError: The token is not at hand.
    """
    if facts.token is None or facts.xr.project_id is None:
        raise ContractError(
            field="status.bootstrap.secretRef",
            rule="names no Secret that exists",
            reason=Reason.WAITING_FOR_TOKEN,
        )
    return inject.Material(
        enrolment=cloudinit.DocumentFields(
            base_url=enrolment.base_url,
            plexd_download_url=enrolment.plexd_download_url,
            plexd_sha256=enrolment.plexd_sha256,
            ca_bundle=enrolment.ca_bundle,
            project_id=str(facts.xr.project_id),
            handle=substrate_lookup.handle(facts),
            token=facts.token.plaintext,
            form=enrolment.document_form,
        ),
        plexd_image=enrolment.plexd_image,
        provider=accepted.provider,
    )
