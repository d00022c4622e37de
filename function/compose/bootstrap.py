"""What a bootstrap is rendered from, for every input.

Belongs here: gathering the material. Not here: the fields it becomes (`render.inject`),
where they go.
"""

from __future__ import annotations

from function.compose import sight
from function.compose.facts import Facts
from function.contract.conditions import Reason
from function.contract.errors import ContractError
from function.contract.record import Declaration, Enrolment
from function.render import cloudinit, inject


def material(facts: Facts, accepted: Declaration, enrolment: Enrolment) -> inject.Material:
    """Return what the strategies take.

    Raises:
        ContractError: The token is not at hand.
    """
    if facts.token is None or facts.xr.project_id is None:
        raise ContractError(
            field="status.bootstrap.secretRef",
            rule="names no Secret that is there",
            reason=Reason.WAITING_FOR_TOKEN,
        )
    return inject.Material(
        enrolment=cloudinit.Enrolment(
            base_url=enrolment.base_url,
            plexd_download_url=enrolment.plexd_download_url,
            plexd_sha256=enrolment.plexd_sha256,
            ca_bundle=enrolment.ca_bundle,
            project_id=str(facts.xr.project_id),
            handle=sight.handle(facts),
            token=facts.token.plaintext,
            form=enrolment.document_form,
        ),
        plexd_image=enrolment.plexd_image,
        provider=accepted.provider,
    )
