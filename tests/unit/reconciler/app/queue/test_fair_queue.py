"""Lanes take turns: one with thousands of keys delays no other by more than a turn."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from reconciler.app.queue.fair_queue import RUN, FairQueue, Rank


def test_lanes_take_turns_whatever_their_length() -> None:
    queue: FairQueue[str] = FairQueue(workers=16)
    for number in range(1000):
        queue.put(f"big-{number}", "big")
    queue.put("small-0", "small")

    taken = [queue.take() for _ in range(2)]

    assert taken == ["big-0", "small-0"]


def test_a_lane_has_a_quarter_of_the_workers_while_another_waits() -> None:
    queue: FairQueue[str] = FairQueue(workers=16)
    for number in range(100):
        queue.put(f"a-{number}", "a")
        queue.put(f"b-{number}", "b")

    taken = [queue.take() or "" for _ in range(8)]

    assert sum(key.startswith("a") for key in taken) == 4
    queue.done("a")
    assert (queue.take() or "").startswith("a")


def test_urgent_keys_take_no_more_than_a_quarter_while_another_lane_waits() -> None:
    queue: FairQueue[str] = FairQueue(workers=16)
    for number in range(40):
        queue.put(f"a-{number}", "a", Rank.URGENT)
        queue.put(f"b-{number}", "b")
        queue.put(f"c-{number}", "c")

    taken = Counter((queue.take() or "none")[0] for _ in range(12))

    assert taken == {"a": 4, "b": 4, "c": 4}


def test_a_lane_alone_leaves_somebody_to_begin_with_the_next() -> None:
    queue: FairQueue[str] = FairQueue(workers=16)
    for number in range(100):
        queue.put(f"a-{number}", "a")

    taken = [queue.take() for _ in range(16)]
    queue.put("b-0", "b")

    assert sum(key is not None for key in taken) == 12
    assert queue.take() == "b-0"


def test_what_is_urgent_goes_first_but_not_for_ever() -> None:
    queue: FairQueue[str] = FairQueue(workers=64)
    for number in range(50):
        queue.put(f"old-{number}", "a")
        queue.put(f"urgent-{number}", "b", Rank.URGENT)

    taken = [queue.take() or "" for _ in range(2 * (RUN + 1))]

    turn = ["urgent"] * RUN + ["old"]
    assert [key.partition("-")[0] for key in taken] == turn * 2


def test_a_sweep_waits_for_changes_but_not_for_ever() -> None:
    queue: FairQueue[str] = FairQueue(workers=64)
    for number in range(50):
        queue.put(f"swept-{number}", "a", Rank.ROUTINE)
        queue.put(f"changed-{number}", "a")

    taken = [queue.take() or "" for _ in range(2 * (RUN + 1))]

    turn = ["changed"] * RUN + ["swept"]
    assert [key.partition("-")[0] for key in taken] == turn * 2


def test_beside_all_ranks_at_once_a_sweep_still_comes() -> None:
    queue: FairQueue[str] = FairQueue(workers=200)
    for number in range(40):
        for rank in Rank:
            queue.put(f"{rank.name}-{number}", rank.name, rank)

    taken = [(queue.take() or "").partition("-")[0] for _ in range((RUN + 1) ** 2)]

    assert Counter(taken) == {"URGENT": 12, "CHANGED": 3, "ROUTINE": 1}


def test_a_key_that_waits_becomes_urgent_and_waits_once() -> None:
    queue: FairQueue[str] = FairQueue(workers=4)
    for key in ("a", "b", "c"):
        queue.put(key, "lane")

    queue.put("c", "lane", Rank.URGENT)
    queue.put("c", "lane")

    assert queue.take() == "c"
    assert len(queue) == 2


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4), st.sampled_from(Rank))),
    st.integers(1, 16),
)
def test_every_key_comes_exactly_once(puts: list[tuple[int, int, Rank]], workers: int) -> None:
    queue: FairQueue[int] = FairQueue(workers=workers)
    lanes: dict[int, str] = {}
    for key, lane, rank in puts:
        lanes.setdefault(key, str(lane))
        queue.put(key, lanes[key], rank)

    taken: list[int] = []
    while (found := queue.take()) is not None:
        taken.append(found)
        queue.done(lanes[found])

    assert sorted(taken) == sorted(lanes)
    assert len(queue) == 0


def test_an_urgent_key_of_a_busy_lane_is_not_behind_the_resync_of_others() -> None:
    queue: FairQueue[str] = FairQueue(workers=16)
    for number in range(4):
        queue.put(f"hangs-{number}", "busy", Rank.ROUTINE)
        assert queue.take() == f"hangs-{number}"
    for number in range(1000):
        queue.put(f"swept-{number}", f"lane-{number}", Rank.ROUTINE)
    queue.put("deletion", "busy", Rank.URGENT)

    assert queue.take() == "deletion"


def test_an_urgent_key_of_a_busy_lane_lets_what_changed_elsewhere_begin_first() -> None:
    queue: FairQueue[str] = FairQueue(workers=16)
    for number in range(40):
        queue.put(f"a-{number}", "a", Rank.URGENT)
        queue.put(f"b-{number}", "b")

    taken = Counter((queue.take() or "none")[0] for _ in range(8))

    assert taken == {"a": 4, "b": 4}


def test_beside_urgent_keys_of_a_busy_lane_the_resync_of_others_still_comes() -> None:
    queue: FairQueue[str] = FairQueue(workers=64)
    for number in range(16):
        queue.put(f"hangs-{number}", "busy", Rank.ROUTINE)
        queue.take()
    for number in range(16):
        queue.put(f"urgent-{number}", "busy", Rank.URGENT)
        queue.put(f"swept-{number}", f"lane-{number}", Rank.ROUTINE)

    taken = [(queue.take() or "").partition("-")[0] for _ in range(2 * (RUN + 1))]

    assert taken == [*["urgent"] * RUN, "swept"] * 2
