"""The rules about realtime models, both ways, on calls written by hand: what the provider's side
holds of a message, where it was truncated, and whether its generation was stopped."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reports.findings import RULES
from tests.findings_calls import (
    Proof,
    RealtimeCall,
    assert_fires,
    assert_silent,
    reply,
)

REALTIME = [name for name, rule in RULES.items() if "realtime" in rule.needs]


def cut(
    *,
    second: dict[str, Any] | None = None,
    server: tuple[str, ...] = ("m1",),
    local: tuple[str, ...] = ("m1",),
    later: dict[str, Any] | None = None,
    to_ms: int | None = 190,
    cancel_ms: float | None = 200.2,
    ended_ms: float = 210,
    made_ms: float = 100,
    unread_ms: float | None = 300,
) -> RealtimeCall:
    """Interrupted at 200 ms, after 190 ms of message 1 (500 ms) were sent; message 2 is there.

    ``made_ms`` of message 2 are generated after the interrupt, beside the ``unread_ms`` before it.
    ``server`` and ``local`` are what both sides hold at the end of the speech, ``later`` what they
    do at 600 ms. The next response is made from 990 ms on.
    """
    call = RealtimeCall()
    call.created(0).response(0.2).message(0.3, read_ms=500)
    call.message(0.9, "m2", **{"pulled": False, "opened": False, **(second or {})})
    call.capture(1, 500).push(2, 500).mark(3, "flush").send(10, 190)
    call.counted(200, 500, 0, why="interrupt").counted(200, 0, unread_ms, "m2", why="interrupt")
    call.commit(200, by="programmatic").mark(201, "clear").cleared(201.1).lose(310)
    if cancel_ms is not None:
        call.cancel(cancel_ms, 1)
    call.ended(ended_ms).counted(ended_ms, 500, 0)
    call.counted(ended_ms, 0, None if unread_ms is None else unread_ms + made_ms, "m2")
    call.finished(202, 190, interrupted=True)
    if to_ms is not None:
        call.truncated(203, to_ms)
    call.look(205, [*server], [*local], "s1").done(206, interrupted=True)
    if later is not None:
        call.look(600, **later)
    return answered(call)


def answered(call: RealtimeCall) -> RealtimeCall:
    """The next response, heard whole."""
    call.response(990, 9, "s2").message(990.3, "m9", 9, read_ms=300)
    reply(call, 990, "s2", ms=300)
    call.read(991, "m9", 0, ended=True).ended(992, 9).counted(992, 300, 0, "m9", 9)
    sides = [[*held, "m9"] for held in (call.held["server"], call.held["local"])]
    call.look(1302.5, *sides, "s2")
    return call


def unheard(*, server: tuple[str, ...]) -> RealtimeCall:
    """Interrupted when message 1 is captured, and before its first block."""
    call = RealtimeCall()
    call.created(0).response(0.2).message(0.3, read_ms=200).counted(5, 200, 0, why="interrupt")
    call.read(1, "m1", 0, ended=True).ended(4).capture(1, 200).push(2, 200).mark(3, "flush")
    call.commit(5, by="programmatic").mark(6, "clear").cleared(6.1).lose(200)
    call.finished(7, 0, interrupted=True)
    call.look(8, [*server], [], "s1").done(9, interrupted=True)
    return answered(call)


def in_flight(*, cancel: bool, hits: tuple[int, ...] = (2,), swept: bool = False) -> RealtimeCall:
    """Response 1 has ended, its audio plays; response 2 of a queued speech is being generated."""
    call = RealtimeCall()
    call.created(0).response(0.2).message(0.3, read_ms=500).read(1, "m1", 0, ended=True)
    call.ended(50).capture(1, 500).push(2, 500).mark(3, "flush").send(10, 190)
    call.created(100, "s3").response(100.2, 2, "s3")
    call.message(100.5, "m2", 2, pulled=False, opened=False)
    call.counted(200, 500, 0, why="interrupt").commit(200, by="programmatic")
    if cancel:
        call.cancel(201, *hits)
    if swept:
        call.commit(200.5, "s3", by="programmatic").counted(200.5, 0, 0, "m2", 2, why="interrupt")
    call.mark(202, "clear").cleared(202.1).lose(310).finished(203, 190, interrupted=True)
    call.truncated(204, 190).ended(210, 2).counted(210, 0, 0, "m2", 2)
    call.look(205, ["m1"], ["m1"], "s1").done(206, interrupted=True).done(300, "s3")
    return answered(call)


M2 = {"pulled": True}
GHOST = partial(cut, server=("m1", "m2"), made_ms=100)

PROOFS: dict[str, list[Proof]] = {
    "ghost-message": [
        Proof(GHOST, cut, samples=9600, figure=400, says="was never pulled", severity="error"),
        Proof(
            partial(GHOST, second=M2), partial(cut, second=M2),
            samples=9600, says="was pulled, never opened",
        ),
        Proof(
            lambda: unheard(server=("m1",)), lambda: unheard(server=()),
            samples=4800, says="was opened, never played",
        ),
        Proof(
            partial(GHOST, unread_ms=0, made_ms=0), partial(cut, unread_ms=0, made_ms=0),
            samples=0, figure=0, says="0.0 ms (0 samples) of it", severity="warning",
        ),
        Proof(
            GHOST, partial(GHOST, later={"server": ["m1"]}), says="when response 9 began",
        ),
        Proof(GHOST, partial(GHOST, local=("m1", "m2")), says="not in the local history"),
    ],
    "lost-message": [
        Proof(
            partial(cut, server=()), cut,
            samples=190 * 24, figure=190, says="the provider's conversation lacks it",
            severity="error",
        ),
        Proof(
            partial(cut, local=()), cut,
            samples=190 * 24, says="the local history lacks it", severity="warning",
        ),
        Proof(
            partial(cut, server=(), local=()), cut, samples=190 * 24, says="neither",
            severity="error",
        ),
        Proof(
            partial(cut, later={"server": []}),
            partial(cut, later={"server": [], "local": []}),
            says="the provider's conversation lacks it",
        ),
    ],
    "truncation-off": [
        Proof(partial(cut, to_ms=400), cut, figure=210, says="at 400 ms, 210.0 ms more"),
        Proof(partial(cut, to_ms=0), partial(cut, to_ms=165), figure=190, says="190.0 ms less"),
        Proof(partial(cut, to_ms=None), cut, figure=310, says="cut after 190.0 ms and never"),
    ],
    "cancel-missing": [
        Proof(
            partial(cut, cancel_ms=None, ended_ms=700), partial(cut, ended_ms=700),
            samples=2400, figure=500, says="500 ms to its own end, and no cancel was sent",
            severity="error",
        ),
        Proof(
            partial(cut, cancel_ms=None, ended_ms=700),
            partial(cut, cancel_ms=None, ended_ms=290), figure=500,
        ),
        Proof(
            partial(cut, cancel_ms=750, ended_ms=700), partial(cut, cancel_ms=650, ended_ms=700),
            figure=500, says="the cancel came 50 ms after that",
        ),
    ],
    "cancel-misdirected": [
        Proof(
            lambda: in_flight(cancel=True), lambda: in_flight(cancel=False),
            figure=151, says="151.0 ms after its response had ended, and hit response 2 of s3",
            severity="error",
        ),
        Proof(
            lambda: in_flight(cancel=True), lambda: in_flight(cancel=True, hits=()), figure=151
        ),
        Proof(
            lambda: in_flight(cancel=True), lambda: in_flight(cancel=True, swept=True), figure=151
        ),
    ],
    "generation-overrun": [
        Proof(
            partial(cut, made_ms=900, ended_ms=350), partial(cut, made_ms=190, ended_ms=350),
            samples=900 * 24, figure=900, says="900.0 ms (21600 samples) of s1 were generated",
            severity="warning",
        ),
    ],
}  # fmt: skip

EACH = [(rule, proof) for rule, proofs in PROOFS.items() for proof in proofs]
NAMES = [f"{rule}-{nth}" for rule, proofs in PROOFS.items() for nth in range(len(proofs))]


def test_every_rule_about_realtime_models_is_proven() -> None:
    assert list(PROOFS) == REALTIME


@pytest.mark.parametrize(("rule", "proof"), EACH, ids=NAMES)
def test_a_rule_fires_on_its_defect(rule: str, proof: Proof, tmp_path: Path) -> None:
    assert_fires(rule, proof, tmp_path)


@pytest.mark.parametrize(("rule", "proof"), EACH, ids=NAMES)
def test_every_rule_is_silent_on_the_same_call_mended(
    rule: str, proof: Proof, tmp_path: Path
) -> None:
    assert_silent(rule, proof, tmp_path)
