"""Since when a record is missing: what is there again starts from the beginning."""

from __future__ import annotations

from reconciler.app.guard.missing_records import SECOND_LOOK_S, MissingRecords
from tests.unit.reconciler import samples


class _Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_one_that_a_sweep_found_again_is_waited_for_anew() -> None:
    time = _Time()
    missing = MissingRecords(time)
    assert missing.missed(samples.ID) == SECOND_LOOK_S
    time.now = SECOND_LOOK_S

    missing.only(set())

    assert len(missing) == 0
    assert missing.missed(samples.ID) == SECOND_LOOK_S


def test_one_that_is_missing_still_keeps_its_time() -> None:
    time = _Time()
    missing = MissingRecords(time)
    missing.missed(samples.ID)
    time.now = SECOND_LOOK_S

    missing.only({samples.ID})

    assert missing.missed(samples.ID) == 0.0


def test_a_contradiction_is_forgotten_with_what_was_found_again() -> None:
    missing = MissingRecords(_Time())
    assert not missing.contradicted(samples.ID)

    missing.only(set())

    assert not missing.contradicted(samples.ID)
    assert missing.contradicted(samples.ID)
