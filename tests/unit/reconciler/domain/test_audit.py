"""When a substrate's going is a fact for the audit, over every state and crossing."""

from __future__ import annotations

from itertools import product

import pytest

from function.contract.strategy import Phase
from reconciler.domain.aggregate.errors import InvalidInputError
from reconciler.domain.aggregate.phase import is_teardown
from reconciler.domain.aggregate.protected_object import ProtectedObject
from reconciler.domain.aggregate.resource import ProvisionedResource
from reconciler.domain.events import audit
from reconciler.domain.events.audit import AuditAction
from reconciler.domain.teardown.force_release import ForceRelease
from tests.unit.reconciler import samples

STATES = list(product(Phase, (False, True), (False, True)))


def _resource(*, seen: bool, released: bool) -> ProvisionedResource:
    protected = ProtectedObject(reference=samples.SUBSTRATE, seen=seen, released=released)
    return samples.resource(protected=(protected,), deletion_requested_at=samples.NOW)


@pytest.mark.parametrize(("phase", "seen", "released"), STATES)
def test_only_what_was_there_and_is_gone_without_a_release_is_told(
    phase: Phase, seen: bool, released: bool
) -> None:
    entry = audit.on_phase(_resource(seen=seen, released=released), phase)

    told = phase in (Phase.PENDING, Phase.DELETED) and seen and not released
    assert (entry is not None) == told
    if entry is not None:
        assert entry.action is AuditAction.UNRELEASED_SUBSTRATE_GONE
        assert samples.SUBSTRATE.name in entry.reason
        assert entry.actor is None


@pytest.mark.parametrize(("phase", "seen", "released"), STATES)
def test_it_is_told_once(phase: Phase, seen: bool, released: bool) -> None:
    resource = _resource(seen=seen, released=released)

    entered = resource.enter(phase, samples.NOW)

    if phase is Phase.PENDING:
        assert audit.on_phase(entered, phase) is None
    assert entered.protected[0].seen >= (seen and phase is not Phase.PENDING)


@pytest.mark.parametrize("phase", Phase)
def test_a_phase_that_needs_a_substrate_proves_one(phase: Phase) -> None:
    entered = _resource(seen=False, released=False).enter(phase, samples.NOW)

    proves = phase is not Phase.PENDING and not is_teardown(phase)
    assert entered.protected[0].seen == proves


def test_a_forced_release_is_told_in_the_words_of_who_asked() -> None:
    entry = audit.force_release(ForceRelease(reason="OPS-17", actor="kubectl"))

    assert (entry.action, entry.reason, entry.actor) == ("force-release", "OPS-17", "kubectl")


def test_nobody_is_given_up_whose_deletion_was_not_asked_for() -> None:
    with pytest.raises(InvalidInputError, match="force_released_at must follow"):
        samples.resource(force_released_at=samples.NOW)


@pytest.mark.parametrize("phase", [each for each in Phase if not is_teardown(each)])
def test_a_raised_retry_is_told_in_every_phase_with_both_numbers(phase: Phase) -> None:
    accepted = samples.DECLARATION.model_copy(update={"retry": 2})
    resource = samples.resource(accepted=accepted, phase=phase)

    entry = audit.retry(resource, accepted.model_copy(update={"retry": 5}))

    assert entry is not None
    assert (entry.action, entry.actor) == ("retry", None)
    assert entry.reason == f"spec.retry was raised from 2 to 5 in phase {phase}"


@pytest.mark.parametrize("retry", [0, 1, 2])
def test_a_retry_that_is_not_raised_is_none(retry: int) -> None:
    accepted = samples.DECLARATION.model_copy(update={"retry": 2})
    resource = samples.resource(accepted=accepted)

    assert audit.retry(resource, accepted.model_copy(update={"retry": retry})) is None
