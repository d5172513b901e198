"""The rules about realtime models, both ways, on calls written by hand: what the provider's side
holds of a message, where it was truncated, and whether its generation was stopped."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probe.trace.events import (
    ContextSeen,
    ContextSent,
    Event,
    Faulted,
    MessageAudio,
    MessageCreated,
    RealtimeTapped,
    RealtimeUntapped,
)
from reports import Analysis, Finding, analyze
from reports.findings import RULES
from tests.findings_calls import (
    HandCall,
    Proof,
    RealtimeCall,
    assert_fires,
    assert_silent,
    at,
    barge_in,
    reply,
)
from tests.realtime_traces import Provider
from tests.report_traces import header, write

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
        call.cancel(cancel_ms, *([1] if cancel_ms < ended_ms else []))
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


def in_flight(
    *, cancel: bool, hits: tuple[int, ...] = (2,), swept: bool = False, ended_ms: float = 50
) -> RealtimeCall:
    """Response 1 has ended, its audio plays; response 2 of a queued speech is being generated."""
    call = RealtimeCall()
    call.created(0).response(0.2).message(0.3, read_ms=500).read(1, "m1", 0, ended=True)
    call.ended(ended_ms).capture(1, 500).push(2, 500).mark(3, "flush").send(10, 190)
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
            lambda: in_flight(cancel=True),
            lambda: in_flight(cancel=True, hits=(1, 2), ended_ms=205), figure=151,
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


# --- What can't be judged, and what is nothing to judge -------------------------------------------


def the(analysis: Analysis, rule: str) -> Finding:
    (finding,) = [f for f in analysis.findings if f.rule == rule]
    return finding


def fired(analysis: Analysis) -> set[str]:
    return {f.rule for f in analysis.findings}


def endless(call: HandCall) -> HandCall:
    """The end of response 1 is not in the trace."""
    call.events = [
        e for e in call.events if e.NAME != "response_ended" or getattr(e, "response", 0) != 1
    ]
    return call


def unjudged(analysis: Analysis) -> dict[str, str]:
    return {n.rule: n.reason for n in analysis.not_judged}


def test_a_call_without_a_realtime_model_says_nothing_of_its_rules(tmp_path: Path) -> None:
    analysis = barge_in().analysis(tmp_path)
    assert analysis.not_judged == ()
    blind = HandCall().capture(1, 200, None).push(2, 200).mark(3, "flush", None).send(10, 200)
    assert not set(unjudged(blind.finished(212, 200).analysis(tmp_path))) & set(REALTIME)


def test_a_realtime_model_that_could_not_be_tapped_is_the_reason(tmp_path: Path) -> None:
    lacks = header(missing={"realtime": "no such session in this release"})
    reasons = unjudged(barge_in().analysis(tmp_path, head=lacks))
    assert reasons == dict.fromkeys(REALTIME, "realtime: no such session in this release")


@pytest.mark.parametrize(("side", "says"), [("server", "provider's side"), ("local", "local side")])
def test_a_side_nobody_looked_at_leaves_its_messages_unjudged(
    tmp_path: Path, side: str, says: str
) -> None:
    call = cut(server=("m1", "m2"), local=())
    call.events = [e for e in call.events if getattr(e, "side", "") != side]
    analysis = call.analysis(tmp_path)
    assert says in unjudged(analysis)["ghost-message"]
    assert "m2" in unjudged(analysis)["ghost-message"]
    assert "ghost-message" not in fired(analysis)
    if side == "server":
        assert "m1" in the(analysis, "lost-message").message
    else:
        assert "m1" in unjudged(analysis)["lost-message"]


def test_a_look_from_before_a_message_existed_says_nothing_of_it(tmp_path: Path) -> None:
    call = RealtimeCall().look(0.1, [], [])
    call.events += [e for e in cut().events if e.NAME not in ("context_seen", "realtime", "tapped")]
    assert set(unjudged(call.analysis(tmp_path))) == {"ghost-message", "lost-message"}


def test_what_lies_unread_where_that_cannot_be_asked_is_no_zero(tmp_path: Path) -> None:
    analysis = GHOST(unread_ms=None).analysis(tmp_path)
    assert set(unjudged(analysis)) == {"generation-overrun"}
    ghost = the(analysis, "ghost-message")
    assert "can't be asked" in ghost.message
    assert (ghost.evidence.samples, ghost.severity) == (None, "error")


def test_a_generation_whose_end_nobody_saw_is_not_called_stopped(tmp_path: Path) -> None:
    call = cut(cancel_ms=None, unread_ms=None)
    call.events = [
        e for e in call.events if getattr(e, "response", 0) != 1 or e.NAME != "response_ended"
    ]
    reasons = unjudged(call.analysis(tmp_path))
    assert "s1" in reasons["cancel-missing"]
    assert "s1" in reasons["generation-overrun"]
    assert "cancel-misdirected" not in reasons


def test_a_cancel_of_two_is_unjudged_where_the_end_of_its_own_was_not_seen(tmp_path: Path) -> None:
    call = in_flight(cancel=True, hits=(1, 2))
    call.events = [
        e
        for e in call.events
        if e.NAME not in ("generation_counted", "response_ended") or getattr(e, "response", 0) != 1
    ]
    analysis = call.analysis(tmp_path)
    assert "s1" in unjudged(analysis)["cancel-misdirected"]
    assert fired(analysis) == set()


def test_one_speech_is_judged_beside_another_that_cannot_be(tmp_path: Path) -> None:
    call = cut(made_ms=900, ended_ms=350)
    call.created(1500, "s5").response(1500.2, 5, "s5").message(1500.5, "m5", 5)
    call.commit(1600, "s5", by="programmatic").done(1601, "s5", interrupted=True)
    analysis = call.analysis(tmp_path)
    assert "s1" in the(analysis, "generation-overrun").message
    assert "s5" in unjudged(analysis)["generation-overrun"]


def test_absences_are_not_judged_where_the_trace_lost_something(tmp_path: Path) -> None:
    call = GHOST(cancel_ms=None, ended_ms=700, made_ms=900)
    analysis = call.add(Faulted(at(50), "events_lost", 3, "buffer full")).analysis(tmp_path)
    assert fired(analysis) == {"generation-overrun"}
    assert set(unjudged(analysis)) >= set(REALTIME) - {"generation-overrun"}


# --- When a message is judged ---------------------------------------------------------------------


def test_a_message_removed_after_the_next_response_was_a_ghost_for_it(tmp_path: Path) -> None:
    call = GHOST()
    ghost = the(call.look(2000, ["m1", "m9"], ["m1", "m9"]).analysis(tmp_path), "ghost-message")
    assert ghost.evidence.facts["next_response"] == 9
    assert ghost.evidence.facts["on_server_at_the_end"] is False


def test_a_message_whose_speech_goes_on_is_no_ghost(tmp_path: Path) -> None:
    """The call ends while message 1 is played; message 2 waits for its turn."""
    call = RealtimeCall()
    call.created(0).response(0.2).message(0.3, read_ms=500)
    call.message(0.9, "m2", pulled=False, opened=False)
    call.capture(1, 500).push(2, 500).send(10, 490).look(495, ["m1", "m2"], [])
    call.end_ms = 500
    assert fired(call.analysis(tmp_path)) == set()


def test_a_message_of_a_response_nobody_took_is_a_ghost(tmp_path: Path) -> None:
    call = RealtimeCall()
    call.response(0.2, 1, None).message(0.5, "m1", pulled=False, opened=False)
    call.counted(50, 0, 300).ended(50).look(60, ["m1"], [])
    ghost = the(answered(call).analysis(tmp_path), "ghost-message")
    assert ghost.segment is None
    assert ghost.evidence.samples == 300 * 24


@pytest.mark.parametrize("over", [True, False])
def test_a_message_of_some_response_waits_for_every_speech_that_was_there(
    tmp_path: Path, over: bool
) -> None:
    """Two responses are in flight, and which of them the message is of was never seen."""
    call = in_flight(cancel=False)
    call.message(150, "mx", None, pulled=False, opened=False)
    call.look(1400, ["m1", "m9", "mx"], ["m1", "m9"])
    if not over:
        call.events = [e for e in call.events if e.NAME != "speech_done" or e.speech != "s3"]
    assert ("ghost-message" in fired(call.analysis(tmp_path))) is over


def test_another_session_of_the_model_does_not_take_over_what_one_holds(tmp_path: Path) -> None:
    """The next agent's session begins without message 2; the one before still has it."""
    call = GHOST()
    call.events = [
        replace(e, session=2) if getattr(e, "at_ns", 0) > at(980) and hasattr(e, "session") else e
        for e in call.events
    ]
    call.add(replace(the_tap(call), at_ns=at(980), session=2))
    analysis = call.analysis(tmp_path)
    ghost = the(analysis, "ghost-message")
    assert "at the end of the trace" in ghost.message
    assert ghost.evidence.facts["next_response"] is None
    assert ghost.severity == "warning"


def test_what_the_next_session_is_given_does_not_come_back_to_the_one_before(
    tmp_path: Path,
) -> None:
    call = cut(server=())
    call.add(replace(the_tap(call), at_ns=at(700), session=2))
    call.add(ContextSeen(at(710), "server", [("m1", "assistant")], session=2))
    assert fired(call.analysis(tmp_path)) == {"lost-message"}


@pytest.mark.parametrize("keeps", ["its own ids", "none", "the streams' ids"])
def test_a_side_that_has_other_ids_lacks_and_adds_nothing(tmp_path: Path, keeps: str) -> None:
    """Some plugins write their side down themselves, under ids of their own, or not at all."""
    provider = Provider()
    for nth in (1, 2):
        response, speech, message = provider.respond(f"s{nth}"), f"s{nth}", f"m{nth}"
        provider.create(message, by="stream")
        del provider.server[message]
        provider.pull(message)
        provider.opens(message)
        provider.play(message, 4800, last=True)
        provider.end(response)
        provider.sim.tick(30)
        provider.sim.flush()
        if keeps != "none":
            own = f"x{nth}" if keeps == "its own ids" else message
            provider.server[own] = "assistant"
            provider.sim.happens(MessageCreated, own, None, "context")
        provider.remember(message)
        provider.done(speech, interrupted=False)
        provider.sim.tick(2)
    provider.respond("s3")
    analysis = analyze(write(tmp_path / "call.jsonl", provider.finish()))
    assert fired(analysis) == set()
    expected = {
        "its own ids": {"ghost-message", "lost-message"},
        "none": {"lost-message"},
        "the streams' ids": set(),
    }[keeps]
    assert set(unjudged(analysis)) == expected
    assert analysis.realtime is not None
    assert {row.difference for row in analysis.realtime.conversation} == {""}


def the_tap(call: HandCall) -> RealtimeTapped:
    return next(e for e in call.events if isinstance(e, RealtimeTapped))


def without_a_right(call: HandCall, **rights: bool) -> HandCall:
    """The same, with a model that can't do something."""
    tap = the_tap(call)
    call.events[call.events.index(tap)] = replace(tap, **rights)
    return call


def test_a_context_that_cannot_be_edited_is_the_cause(tmp_path: Path) -> None:
    ghost = the(
        without_a_right(GHOST(), can_edit_context=False).analysis(tmp_path), "ghost-message"
    )
    assert "can't be edited" in ghost.cause


@pytest.mark.parametrize(
    ("context", "says"),
    [
        (ContextSent(at(204), 1, 3), "it still held the message"),
        (ContextSent(at(204), 1, 2, removes=["m2"], end="raised"), "was not accepted"),
        (ContextSent(at(204), 2, 3), "it never took"),
        (ContextSent(at(900), 1, 3), "it never took"),
        (ContextSent(at(150), 1, 3), "it never took"),
    ],
)
def test_a_context_sent_meanwhile_is_the_cause(
    tmp_path: Path, context: ContextSent, says: str
) -> None:
    ghost = the(GHOST().add(context).analysis(tmp_path), "ghost-message")
    assert says in ghost.cause
    sent_then = context.end if says != "it never took" else None
    assert ghost.evidence.facts["context_sent"] == sent_then


def test_a_message_that_was_truncated_to_nothing_is_a_warning(tmp_path: Path) -> None:
    call = GHOST().truncated(203.5, 0, "m2")
    ghost = the(call.analysis(tmp_path), "ghost-message")
    assert ghost.severity == "warning"
    assert "truncated to nothing" in ghost.message


# --- Truncations and cancels ----------------------------------------------------------------------


def test_a_model_that_cannot_truncate_is_not_asked_to(tmp_path: Path) -> None:
    call = without_a_right(cut(to_ms=None), can_truncate=False)
    assert fired(call.analysis(tmp_path)) == set()


def test_what_was_swallowed_of_a_reply_nobody_interrupted_needs_no_truncation(
    tmp_path: Path,
) -> None:
    call = RealtimeCall()
    call.created(0).response(0.2).message(0.3, read_ms=500).read(1, "m1", 0, ended=True).ended(4)
    call.capture(1, 500).push(2, 500).mark(3, "flush").send(10, 290).cleared(300).lose(210)
    call.finished(301, 290).look(302, ["m1"], ["m1"], "s1").done(303)
    assert fired(call.analysis(tmp_path)) == {"swallowed-audio"}


def test_a_message_that_was_heard_whole_needs_no_truncation(tmp_path: Path) -> None:
    assert fired(answered(RealtimeCall()).analysis(tmp_path)) == set()


def test_audio_sent_after_the_truncation_is_told_from_a_wrong_position(tmp_path: Path) -> None:
    call = RealtimeCall()
    call.created(0)
    call.response(0.2).message(0.3, read_ms=500).read(1, "m1", 0, ended=True).ended(4)
    call.capture(1, 500).push(2, 500).mark(3, "flush").send(10, 290)
    call.commit(200, by="programmatic").truncated(205, 195).mark(299, "clear").cleared(299.5)
    call.lose(210).finished(301, 290, interrupted=True)
    call.look(302, ["m1"], ["m1"], "s1").done(303, interrupted=True)
    off = the(call.analysis(tmp_path), "truncation-off")
    assert off.evidence.facts["sent_ns"] == 290_000_000
    assert off.evidence.facts["sent_by_then_ns"] == 200_000_000
    assert "leak-after-verdict" in off.cause


def test_a_truncation_of_audio_that_may_be_another_messages_is_not_judged(tmp_path: Path) -> None:
    """Message 1 was read after the speech's audio had begun: whose that is can't be told."""
    call = cut(to_ms=400)
    call.events = [
        replace(e, at_ns=at(4), until_ns=at(4.1)) if isinstance(e, MessageAudio) else e
        for e in call.events
    ]
    analysis = call.analysis(tmp_path)
    assert "m1" in unjudged(analysis)["truncation-off"]
    assert "truncation-off" not in fired(analysis)


def test_a_tighter_tolerance_is_kept_to(tmp_path: Path) -> None:
    settings = {"truncation-off": {"tolerance-ms": 1.0}}
    assert fired(cut(to_ms=179).analysis(tmp_path, settings=settings)) == set()
    assert fired(cut(to_ms=178).analysis(tmp_path, settings=settings)) == {"truncation-off"}


def test_a_response_that_never_ends_went_on_to_the_end_of_the_trace(tmp_path: Path) -> None:
    missing = the(endless(cut(cancel_ms=None)).analysis(tmp_path), "cancel-missing")
    assert missing.evidence.figure.value == 2800
    assert missing.evidence.facts["ended"] is False


@pytest.mark.parametrize(("closed_ms", "fires"), [(250, False), (450, True)])
def test_a_session_that_was_closed_generates_no_more(
    tmp_path: Path, closed_ms: float, fires: bool
) -> None:
    call = endless(cut(cancel_ms=None)).add(RealtimeUntapped(at(closed_ms), 1, "closed"))
    missing = [f for f in call.analysis(tmp_path).findings if f.rule == "cancel-missing"]
    assert [f.evidence.figure.value for f in missing] == ([250] if fires else [])


@pytest.mark.parametrize("hit", [True, False])
def test_a_cancel_from_before_its_response_began_does_not_count(tmp_path: Path, hit: bool) -> None:
    call = RealtimeCall()
    call.created(0).commit(10, by="programmatic").cancel(10.1)
    call.response(100, 1).message(101, pulled=False, opened=False).counted(102, 0, 0)
    if hit:
        call.cancel(103, 1)
    call.ended(600).counted(600, 0, 400).done(601, interrupted=True).look(602, [], [], "s1")
    analysis = call.analysis(tmp_path)
    assert ("cancel-missing" in fired(analysis)) is not hit
    if not hit:
        missing = the(analysis, "cancel-missing")
        assert missing.evidence.figure.value == 500
        assert "before it was generated" in missing.message
        assert "the cancel did not hit it" in missing.message


def test_a_provider_that_cancelled_by_itself_is_named(tmp_path: Path) -> None:
    call = cut(cancel_ms=None, ended_ms=700)
    call.ended(701, by="metrics", cancelled=True)
    assert (
        "until the provider cancelled it" in the(call.analysis(tmp_path), "cancel-missing").message
    )


def test_the_cause_of_an_overrun_says_who_was_late(tmp_path: Path) -> None:
    late = cut(cancel_ms=540, made_ms=900, ended_ms=550)
    slow = cut(cancel_ms=200.2, made_ms=900, ended_ms=550)
    after = cut(cancel_ms=600, made_ms=900, ended_ms=550)
    none = cut(cancel_ms=None, made_ms=900, ended_ms=550)
    causes = [
        the(call.analysis(tmp_path), "generation-overrun").cause
        for call in (late, slow, after, none)
    ]
    assert "only 340 ms after" in causes[0]
    assert "the provider went on" in causes[1]
    assert "to its end" in causes[2]
    assert "No cancel was sent" in causes[3]


# --- Whatever happens -----------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["respond", "create", "generate", "end", "pull", "opens", "play", "play", "interrupt",
             "cancel", "truncate", "remember", "forget", "done", "look", "clear", "flush", "tick",
             "tick"]
        ),
        st.integers(0, 11),
    ),
    max_size=40,
)  # fmt: skip


def improvise(steps: Sequence[tuple[str, int]], askable: bool) -> list[Event]:
    """A call in which anything comes in any order, as far as there is something for it."""
    provider = Provider(askable=askable)
    for nth, (step, amount) in enumerate(steps):
        name = f"m{amount % 4}"
        speech = f"s{amount % 3}"
        if step == "respond":
            provider.respond(speech if amount else None)
        elif step == "create" and provider.speeches:
            provider.create(f"m{nth % 4}", amount % len(provider.speeches) + 1)
        elif step == "end" and provider.open:
            provider.end(provider.open[amount % len(provider.open)])
        elif step in ("pull", "opens") and name in provider.messages:
            getattr(provider, step)(name)
        elif step in ("generate", "play") and name in provider.messages:
            getattr(provider, step)(name, amount * 480)
        elif step in ("interrupt", "done", "cancel"):
            getattr(provider, step)(speech)
        elif step == "truncate":
            provider.truncate(name, amount * 20)
        elif step == "remember":
            provider.remember(name)
        elif step == "forget":
            provider.server.pop(name, None)
        elif step == "look":
            provider.look()
        elif step in ("clear", "flush"):
            getattr(provider.sim, step)()
        elif step == "tick":
            provider.sim.tick(amount + 1)
    return provider.finish()


@settings(max_examples=150, deadline=None)
@given(STEPS, st.booleans(), st.booleans(), st.data())
def test_whatever_a_model_does_is_judged_without_an_error(
    steps: Sequence[tuple[str, int]], askable: bool, whole: bool, data: st.DataObject
) -> None:
    events = improvise(steps, askable)
    if not whole:
        keep = data.draw(st.lists(st.booleans(), min_size=len(events), max_size=len(events)))
        events = [e for e, kept in zip(events, keep, strict=True) if kept]
    with tempfile.TemporaryDirectory() as folder:
        analysis = analyze(write(Path(folder) / "call.jsonl", events, trailer=whole))
    heard = {
        m.id: m.sent.samples
        for m in (analysis.realtime.messages if analysis.realtime else ())
        if m.sent is not None
    }
    for finding in (f for f in analysis.findings if f.rule in REALTIME):
        facts = finding.evidence.facts
        assert finding.message.endswith(".")
        assert finding.evidence.figure.value >= 0
        assert finding.segment is None or 1 <= finding.segment <= len(analysis.segments)
        if finding.rule == "ghost-message":
            assert heard[facts["message"]] == 0
        if finding.rule == "lost-message":
            assert heard[facts["message"]] > 0
        if finding.rule == "cancel-misdirected":
            assert not set(facts["hit"]) & set(facts["responses"])
