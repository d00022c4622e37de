"""The judge of a random run finds nothing in what went well, and each promise that is broken.

The life is made up: two XRs of one Project, of which one is deleted and one stays Ready.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import pytest

from reconciler.domain.events.lifecycle import EventType
from tests.e2e.random_run.history import (
    BREAK_GLASS,
    RECONCILER,
    Audit,
    Boot,
    CloudFact,
    Event,
    History,
    Interval,
    Look,
    Node,
    Request,
    Resource,
    Token,
    Try,
)
from tests.e2e.random_run.judge import PROMISES, judge

Item = TypeVar("Item")

PLACE: Final = "plexsphere-project-a"
GONE: Final = "pr-gone"
THERE: Final = "pr-there"


def at(seconds: float) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


QUIET: Final = Interval(begun=at(400), ended=at(440))


def _row(handle: str, **more: Any) -> Resource:
    owner = handle.removeprefix("pr-")
    given: dict[str, Any] = {"status": "Ready", "created_at": at(3), **more}
    given |= {"id": f"id-{owner}", "handle": handle, "owner": owner}
    return Resource(namespace=PLACE, record=f"{owner}-record", **given)


def _token(handle: str, **more: Any) -> Token:
    owner = handle.removeprefix("pr-")
    given: dict[str, Any] = {"id": f"token-{owner}", "digest": f"digest-{owner}", **more}
    times = {"issued_at": at(4), "expires_at": at(3600)}
    return Token(resource=f"id-{owner}", generation=1, **{**times, "consumed_at": at(20), **given})


def _node(handle: str, **more: Any) -> Node:
    owner = handle.removeprefix("pr-")
    given: dict[str, Any] = {"id": f"node-{owner}", "token": f"token-{owner}", **more}
    return Node(resource=f"id-{owner}", **{"registered_at": at(20), **given})


def _look(kind: str, name: str, **more: Any) -> Look:
    given: dict[str, Any] = {"begun": at(100), "ended": at(100.1), "held": True, **more}
    identity = {"namespace": PLACE, "name": name, "uid": f"uid-{kind}-{name}"}
    return Look(kind=kind, created_at=at(2), **{**identity, **given})


def _request(verb: str, resource: str, name: str, seconds: float, **more: Any) -> Request:
    given: dict[str, Any] = {"code": 200, "user": "crossplane", **more}
    return Request(at=at(seconds), verb=verb, resource=resource, name=name, **given)


def _fact(what: str, name: str, seconds: float, uid: str = "") -> CloudFact:
    return CloudFact(at=at(seconds), what=what, name=name, uid=uid or f"machine-{name}")


def _told(aggregate: str, *types: tuple[str, float]) -> list[Event]:
    return [_more(aggregate, n, kind, seconds) for n, (kind, seconds) in enumerate(types, start=1)]


def _more(aggregate: str, number: int, kind: str, seconds: float) -> Event:
    return Event(
        id=f"{aggregate}-{number}", aggregate=aggregate, number=number, type=kind, at=at(seconds)
    )


READY: Final = ("True", "Ready")
RECORD: Final = _look(
    "ProvisioningRecord", "there-record", ready=READY, owner="uid-xr", handle=THERE
)
XR: Final = _look("ProvisionedResource", "there", uid="uid-xr", ready=READY)
MACHINE: Final = _look("Machine", THERE)
REFUSED: Final = Try(
    at=at(50), subject=f"machines/{THERE}", what="{}", held=True, status=403, changed=False
)
WELL: Final = History(
    resources=[
        _row(GONE, status="Deleted", deletion_requested_at=at(200)),
        _row(THERE),
    ],
    nodes=[_node(GONE, deregistered_at=at(205)), _node(THERE)],
    tokens=[_token(GONE), _token(THERE)],
    events=[
        *_told(
            "id-gone",
            (EventType.REQUESTED, 3),
            (EventType.READY, 21),
            (EventType.DELETING, 200),
            (EventType.DELETED, 230),
        ),
        *_told("id-there", (EventType.REQUESTED, 3), (EventType.READY, 21)),
        *_told("node-gone", ("identity.NodeRegistered", 20), ("identity.NodeDeregistered", 205)),
        *_told("node-there", ("identity.NodeRegistered", 20)),
        *_told("token-gone", ("identity.BootstrapTokenIssued", 4)),
        *_told("token-there", ("identity.BootstrapTokenIssued", 4)),
    ],
    cloud=[
        _fact("created", GONE, 8),
        _fact("created", THERE, 8),
        _fact("delete-requested", GONE, 210),
        _fact("deleted", GONE, 214),
    ],
    boots=[
        Boot(uid=f"machine-{GONE}", name=GONE, digest="digest-gone"),
        Boot(uid=f"machine-{THERE}", name=THERE, digest="digest-there"),
    ],
    requests=[
        _request("patch", "provisioningrecords", "gone-record", 2, code=201),
        _request("patch", "provisioningrecords", "there-record", 2, code=201),
        _request("patch", "xgenericvms", GONE, 7, code=201),
        _request("patch", "xgenericvms", THERE, 7, code=201),
        _request("delete", "xgenericvms", GONE, 60, code=403, user="mallory"),
        _request("delete", "xgenericvms", GONE, 208),
    ],
    tries=[REFUSED],
    looks=[RECORD, _look("XGenericVM", THERE), MACHINE, _look("XGenericVM", GONE)],
    left=[XR, RECORD, _look("XGenericVM", THERE), MACHINE],
    quiet=QUIET,
    parted=frozenset({f"{PLACE}/gone"}),
)


def _without(items: Sequence[Item], *wanted: Item) -> list[Item]:
    return [item for item in items if item not in wanted]


def test_a_life_that_went_well_breaks_nothing() -> None:
    assert judge(WELL) == []


def test_there_are_nine_promises_in_their_order() -> None:
    assert [int(str(promise.__doc__).partition(".")[0]) for promise in PROMISES] == [*range(1, 10)]


LATER: Final = _token(THERE, id="later", digest="later", consumed_at=None)
BROKEN: Final[dict[str, tuple[str, History]]] = {
    "a-token-is-used-twice": (
        "promise 1: token token-gone enrolled 2 nodes",
        replace(WELL, nodes=[*WELL.nodes, _node(GONE, id="another", registered_at=at(30))]),
    ),
    "a-spent-token-has-no-node": (
        "promise 1: token token-there is spent without a node, or the other way",
        replace(WELL, nodes=[_node(GONE, deregistered_at=at(205))], looks=[], boots=[]),
    ),
    "two-tokens-are-live": (
        "promise 1: pr-there has two live tokens, token-there and later",
        replace(WELL, tokens=[*WELL.tokens, replace(LATER, issued_at=at(5))]),
    ),
    "two-nodes-are-live": (
        "promise 1: pr-there has two live nodes",
        replace(
            WELL,
            tokens=[*WELL.tokens, replace(LATER, issued_at=at(30), consumed_at=at(40))],
            nodes=[*WELL.nodes, _node(THERE, id="second", token="later", registered_at=at(40))],
        ),
    ),
    "a-machine-has-anothers-token": (
        "promise 1: pr-there has the token of another",
        replace(WELL, boots=[*WELL.boots, Boot(uid="x", name=THERE, digest="digest-gone")]),
    ),
    "two-machines-have-one-token": (
        "promise 1: 2 machines pr-there have one token",
        replace(WELL, boots=[*WELL.boots, Boot(uid="x", name=THERE, digest="digest-there")]),
    ),
    "a-node-has-no-machine": (
        "promise 1: a node of pr-there came without a machine",
        replace(WELL, boots=WELL.boots[:1]),
    ),
    "a-machine-is-nobodys": (
        "promise 2: machine x was made and nothing protected it",
        replace(WELL, cloud=[*WELL.cloud, _fact("created", "x", 9)]),
    ),
    "a-substrate-comes-before-its-row": (
        "promise 2: substrate pr-there was made and nothing protected it",
        replace(
            WELL,
            requests=[*WELL.requests, _request("patch", "xgenericvms", THERE, 1, code=201)],
        ),
    ),
    "a-machine-has-no-record": (
        f"promise 2: Machine {PLACE}/pr-there has no record at the end",
        replace(WELL, left=[XR, MACHINE]),
    ),
    "a-record-has-no-owner": (
        f"promise 2: ProvisioningRecord {PLACE}/there-record has no owner at the end",
        replace(WELL, left=[RECORD, MACHINE]),
    ),
    "the-machine-goes-first": (
        "promise 3: machine pr-gone was to go while its node was in the mesh",
        replace(WELL, nodes=[_node(GONE, deregistered_at=at(212)), _node(THERE)]),
    ),
    "the-machine-goes-while-its-token-is-good": (
        "promise 3: machine pr-gone was to go while its token was good",
        replace(
            WELL,
            tokens=[_token(GONE, consumed_at=None, revoked_at=at(220)), _token(THERE)],
            nodes=[_node(THERE)],
        ),
    ),
    "the-collector-takes-the-substrate-of-a-live-node": (
        "promise 3: machines pr-there was to go while its node was in the mesh",
        replace(WELL, requests=[*WELL.requests, _request("delete", "machines", THERE, 50)]),
    ),
    "a-machine-goes-and-nobody-asked": (
        "promise 3: machine pr-there was to go and nobody asked for it",
        replace(
            WELL,
            nodes=[WELL.nodes[0], _node(THERE, deregistered_at=at(50))],
            cloud=[*WELL.cloud, _fact("delete-requested", THERE, 60)],
        ),
    ),
    "a-substrate-is-not-held": (
        f"promise 3: Machine {PLACE}/pr-there lives in the mesh and is not held",
        replace(WELL, looks=[_look("Machine", THERE, held=False)]),
    ),
    "a-try-succeeds": (
        "promise 3: machines/pr-there is held, and who is no administrator got {}",
        replace(WELL, tries=[replace(REFUSED, status=200, changed=True)]),
    ),
    "it-is-Deleted-before-its-machine-is-gone": (
        "promise 4: pr-gone is Deleted, then ['deleted'], left []",
        replace(WELL, cloud=[*WELL.cloud[:3], _fact("deleted", GONE, 240)]),
    ),
    "a-machine-is-left-behind": (
        "promise 4: pr-gone is Deleted, then [], left ['machine-pr-gone']",
        replace(WELL, cloud=WELL.cloud[:3]),
    ),
    "a-secret-is-left-behind": (
        f"promise 4: Secret {PLACE}/gone-record-g1 is left of what is Deleted",
        replace(WELL, left=[*WELL.left, _look("Secret", "gone-record-g1", handle="gone-record")]),
    ),
    "a-node-of-what-is-Deleted-is-live": (
        "promise 4: pr-gone is Deleted and has a live node or token",
        replace(WELL, nodes=[_node(GONE), _node(THERE)]),
    ),
    "a-record-never-says-why": (
        f"promise 5: ProvisioningRecord {PLACE}/there-record is not Ready and says ''",
        replace(WELL, looks=[replace(RECORD, ready=("False", ""))]),
    ),
    "a-reason-is-made-up": (
        f"promise 5: ProvisioningRecord {PLACE}/there-record is not Ready and says 'Whatever'",
        replace(WELL, looks=[replace(RECORD, ready=("False", "Whatever"))]),
    ),
    "a-record-waits-for-ever": (
        f"promise 5: {RECORD.title} neither came nor stalled: WaitingForSubstrate",
        replace(
            WELL,
            left=[
                replace(XR, ready=("False", "")),
                replace(RECORD, ready=("False", "WaitingForSubstrate")),
                MACHINE,
            ],
        ),
    ),
    "an-xr-is-Ready-and-its-record-is-not": (
        f"promise 5: {XR.title} is Ready and {RECORD.title} is not",
        replace(
            WELL,
            left=[
                XR,
                replace(RECORD, ready=("False", "Failed"), stalled=("True", "Failed")),
                MACHINE,
            ],
        ),
    ),
    "an-xr-has-no-record": (
        f"promise 5: ProvisionedResource {PLACE}/there is not Ready and has no record",
        replace(WELL, left=[replace(XR, ready=("False", "Creating"))]),
    ),
    "an-event-is-told-twice": (
        "promise 6: event id-gone-1 is told 2 times",
        replace(WELL, events=[*WELL.events, WELL.events[0]]),
    ),
    "an-event-is-lost": (
        "promise 6: pr-gone has events [2, 3, 4]",
        replace(WELL, events=WELL.events[1:]),
    ),
    "a-deletion-is-told-and-nobody-asked": (
        "promise 6: pr-there is Ready and tells ['Requested', 'Ready', 'Deleting']",
        replace(WELL, events=[*WELL.events, _more("id-there", 3, EventType.DELETING, 30)]),
    ),
    "a-token-was-never-issued": (
        "promise 1: pr-there has a token that was never issued",
        replace(WELL, boots=[*WELL.boots, Boot(uid="x", name=THERE, digest="x")]),
    ),
    "a-node-leaves-untold": (
        "promise 6: node node-gone tells ['identity.NodeRegistered']",
        replace(WELL, events=_without(WELL.events, WELL.events[7])),
    ),
    "a-later-event-comes-first": (
        "promise 6: pr-gone tells later changes first",
        replace(WELL, events=[replace(WELL.events[0], at=at(22)), *WELL.events[1:]]),
    ),
    "a-token-is-in-a-log": (
        "promise 7: a token is in log reconciler-1.log: token 1",
        replace(WELL, leaks=["log reconciler-1.log: token 1"]),
    ),
    "an-acceptance-takes-long": (
        "promise 8: pr-there was accepted after 38.0 s",
        replace(WELL, resources=[WELL.resources[0], _row(THERE, created_at=at(40))]),
    ),
    "a-node-is-long-in-leaving": (
        "promise 8: pr-gone left the mesh after 60.0 s",
        replace(
            WELL,
            nodes=[_node(GONE, deregistered_at=at(260)), _node(THERE)],
        ),
    ),
    "a-status-is-written-at-rest": (
        "promise 9: the reconciler's patch provisioningrecords/status x 1 times at rest",
        replace(
            WELL,
            requests=[
                *WELL.requests,
                _request("patch", "provisioningrecords/status", "x", 420, user=RECONCILER),
            ],
        ),
    ),
    "an-object-changes-at-rest": (
        "promise 9: Machine x changed at rest",
        replace(WELL, restless=["Machine x"]),
    ),
    "an-event-is-told-at-rest": (
        "promise 9: identity.BootstrapTokenExpired was told at rest",
        replace(WELL, events=[*WELL.events, *_told("x", ("identity.BootstrapTokenExpired", 410))]),
    ),
    "a-deletion-never-ends": (
        "promise 9: pr-gone was to go and is Deregistering",
        replace(WELL, resources=[replace(WELL.resources[0], status="Deregistering")]),
    ),
    "a-record-of-what-was-deleted-is-left": (
        f"promise 9: ProvisioningRecord {PLACE}/gone-record is left of what was deleted",
        replace(WELL, left=[*WELL.left, replace(RECORD, name="gone-record", handle="pr-x")]),
    ),
    "what-they-share-is-left": (
        f"promise 9: ConfigMap {PLACE}/network is left of what was deleted",
        replace(WELL, left=[*WELL.left, _look("ConfigMap", "network", handle="gone")]),
    ),
}
"""By what goes wrong: the breach that tells it, and the life."""


@pytest.mark.parametrize("wrong", BROKEN)
def test_a_broken_promise_is_found(wrong: str) -> None:
    breach, history = BROKEN[wrong]

    assert breach in map(str, judge(history))


def test_each_promise_is_broken_by_something() -> None:
    told = {breach.partition(":")[0] for breach, _ in BROKEN.values()}

    assert told == {f"promise {number}" for number in range(1, 10)}


def test_a_machine_that_is_made_anew_was_audited_first() -> None:
    breach, unasked = BROKEN["a-machine-goes-and-nobody-asked"]
    audit = Audit(at=at(55), resource="id-there", action="recreate")

    assert breach not in map(str, judge(replace(unasked, audits=[audit])))


def test_what_kept_them_from_acting_counts_once() -> None:
    halves = [Interval(begun=at(0), ended=at(20)), Interval(begun=at(10), ended=at(30))]

    assert replace(WELL, stopped=halves).stopped_s(at(5), at(100)) == 25.0
    assert replace(WELL, stopped=halves).stopped_s(at(40), at(100)) == 0.0


def test_nobody_is_late_with_a_record_that_nobody_owns() -> None:
    late = replace(WELL, resources=[WELL.resources[0], _row(THERE, created_at=at(40))])
    loose = replace(RECORD, begun=at(30), ended=at(31), ready=("False", "NoController"))

    assert 8 not in {breach.promise for breach in judge(replace(late, looks=[loose]))}


def test_what_an_orphaning_leaves_beside_the_nodes_may_stay_once_nothing_holds_it() -> None:
    orphaned = replace(WELL, orphaned=WELL.parted)
    shared = _look("ConfigMap", "network", handle="gone")

    assert judge(replace(orphaned, left=[*WELL.left, replace(shared, held=False)])) == []
    assert judge(replace(orphaned, left=[*WELL.left, shared])) != []


def _glass(name: str, seconds: float) -> Request:
    groups = frozenset({BREAK_GLASS})
    return _request("delete", "xgenericvms", name, seconds, user="jane", groups=groups)


def test_what_break_glass_takes_is_no_breach_and_a_later_machine_is_judged_again() -> None:
    taken = replace(
        WELL,
        requests=[*WELL.requests, _glass(THERE, 50)],
        cloud=[*WELL.cloud, _fact("delete-requested", THERE, 51), _fact("deleted", THERE, 53)],
    )
    again = [_fact("created", THERE, 60, "second"), _fact("delete-requested", THERE, 70, "second")]

    assert [breach for breach in judge(taken) if breach.promise == 3] == []
    assert {breach.promise for breach in judge(replace(taken, cloud=[*taken.cloud, *again]))} == {3}


def test_what_the_collector_takes_after_break_glass_is_no_breach_and_what_comes_then_is() -> None:
    def taken(*more: Request) -> set[int]:
        machine = _request("patch", "machines", THERE, 8, code=201)
        collected = _request("delete", "machines", THERE, 51, user="generic-garbage-collector")
        requests = [*WELL.requests, machine, _glass(THERE, 50), collected, *more]
        # The cloud had refused it, and so tells of no making.
        cloud = [*_without(WELL.cloud, WELL.cloud[1]), _fact("create-failed", THERE, 8)]
        history = replace(WELL, requests=requests, cloud=cloud)
        return {breach.promise for breach in judge(history)}

    anew = _request("patch", "machines", THERE, 60, code=201)

    assert taken() == set()
    assert taken(anew, _request("delete", "machines", THERE, 70)) == {3}


def test_nobody_is_late_while_nobody_reconciles() -> None:
    late = replace(WELL, resources=[WELL.resources[0], _row(THERE, created_at=at(40))])
    down = Interval(begun=at(5), ended=at(39))

    assert 8 in {breach.promise for breach in judge(late)}
    assert 8 not in {breach.promise for breach in judge(replace(late, stopped=[down]))}
