"""Silence of the lease or of a leader's looks is told, whoever leads; nothing else is."""

from __future__ import annotations

from datetime import timedelta

from reconciler.app.controller.liveness import MISSED, SILENCE_MIN, Liveness

SWEEP = timedelta(seconds=30)
UNLED = timedelta(seconds=8)


class Heard:
    """A pulse by a clock that moves by hand; the lease is heard of each second."""

    def __init__(self, *, sweep: timedelta = SWEEP) -> None:
        self.now = 0.0
        self.pulse = Liveness(lambda: self.now, unled=UNLED, looks={"sweep": sweep, "write": SWEEP})

    def passes(self, length: timedelta, *, by_us: bool | None, looks: tuple[str, ...] = ()) -> None:
        """Let time pass; `by_us` says who leads in it, None: the store tells of nobody."""
        for _ in range(int(length.total_seconds())):
            self.now += 1.0
            if by_us is not None:
                self.pulse.led(by_us=by_us)
            for name in looks:
                self.pulse.finished(name)


def test_a_leader_whose_sweep_does_not_end_is_told_after_three_intervals() -> None:
    heard = Heard()
    heard.passes(SWEEP * MISSED, by_us=True, looks=("write",))
    assert heard.pulse.fault is None

    heard.passes(timedelta(seconds=1), by_us=True, looks=("write",))

    assert heard.pulse.fault == "sweep: not finished for 3 intervals"


def test_terms_that_begin_and_fail_again_and_again_do_not_hide_it() -> None:
    heard = Heard()
    for _ in range(60):
        heard.passes(timedelta(seconds=1), by_us=True)
        heard.passes(timedelta(seconds=1), by_us=None)

    assert heard.pulse.fault == "sweep, write: not finished for 3 intervals"


def test_a_sweep_that_ends_makes_it_well_again() -> None:
    heard = Heard()
    heard.passes(SWEEP * 4, by_us=True)
    assert heard.pulse.fault is not None

    heard.pulse.begun()

    assert heard.pulse.fault is None


def test_who_stands_by_is_well_as_long_as_somebody_leads() -> None:
    heard = Heard()
    heard.passes(SWEEP * 10, by_us=False)

    assert heard.pulse.fault is None


def test_who_takes_over_has_its_own_three_intervals() -> None:
    heard = Heard()
    heard.passes(SWEEP * 10, by_us=False)
    heard.passes(SWEEP * MISSED, by_us=True)
    assert heard.pulse.fault is None

    heard.passes(timedelta(seconds=1), by_us=True)

    assert heard.pulse.fault is not None


def test_nobody_who_leads_is_told_by_whoever_stands() -> None:
    heard = Heard()
    heard.passes(SWEEP, by_us=False)
    heard.passes(UNLED, by_us=None)
    assert heard.pulse.fault is None

    heard.passes(timedelta(seconds=1), by_us=None)

    assert heard.pulse.fault == (
        "no leader is known: the lease can be neither acquired nor renewed"
    )


def test_a_sweep_may_take_seconds_however_short_its_interval() -> None:
    heard = Heard(sweep=timedelta(milliseconds=100))
    heard.passes(SILENCE_MIN, by_us=True)

    assert heard.pulse.fault is None
