"""The account of realtime models: what was made, sent, held by either side, and how it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reports
from probe.cli.main import main
from probe.trace.events import (
    CancelSent,
    ContextSeen,
    Event,
    FrameCaptured,
    GenerationCounted,
    InterruptCalled,
    MessageAudio,
    MessageCreated,
    MessageOpened,
    RealtimeTapped,
    ResponseCreated,
    ResponseEnded,
    SpeechCommitted,
    SpeechCreated,
    TruncateSent,
)
from reports.results import Analysis, GenerationStop, Realtime, RealtimeMessage, Sound
from reports.units import time_ms
from tests.realtime_traces import Provider
from tests.report_traces import MS, Simulation, taps, write

RATE = 24_000


def analysed(tmp_path: Path, events: list[Event]) -> Analysis:
    return reports.analyze(write(tmp_path / "call.jsonl", events))


def account(tmp_path: Path, events: list[Event]) -> Realtime:
    analysis = analysed(tmp_path, events)
    assert analysis.balanced is True, analysis.unaccounted_because
    assert analysis.realtime is not None
    return analysis.realtime


def message(realtime: Realtime, name: str) -> RealtimeMessage:
    (found,) = [m for m in realtime.messages if m.id == name]
    return found


def stop(realtime: Realtime, speech: str = "s1") -> GenerationStop:
    (found,) = [s for s in realtime.stops if s.speech_id == speech]
    return found


def begun(provider: Provider) -> Provider:
    """200 of 300 ms that were read of the first message are sent, 500 ms are generated."""
    provider.respond()
    provider.create("m1")
    provider.pull("m1")
    provider.opens("m1")
    provider.generate("m1", 12_000)
    provider.play("m1", 7200)
    provider.sim.tick(20)
    return provider


def cut_short(provider: Provider) -> Provider:
    """The first of two messages is cut after 200 ms; 100 ms of the second are generated after that,
    until the response ends 30 ms after the interrupt."""
    begun(provider).create("m2")
    provider.interrupt()
    provider.cancel()
    provider.sim.clear()
    provider.sim.tick(3)
    provider.generate("m2", 2400)
    provider.end(cancelled=True)
    provider.truncate("m1", 200)
    provider.remember("m1")
    provider.done()
    return provider


# --- Messages ------------------------------------------------------------------------------------


def test_a_trace_without_a_realtime_model_has_no_account(tmp_path: Path) -> None:
    call = Simulation()
    call.capture(480)
    call.tick(3)
    call.happens(SpeechCommitted, "s1")
    analysis = analysed(tmp_path, call.end())
    assert analysis.realtime is None
    assert [segment.message_id for segment in analysis.segments] == [None]


def test_a_message_is_followed_from_the_server_to_the_wire(tmp_path: Path) -> None:
    realtime = account(tmp_path, cut_short(Provider()).finish())
    assert realtime.model == "scripted"
    first, second = realtime.messages
    assert (first.id, first.response, first.speech_id, first.created_by) == (
        "m1",
        1,
        "s1",
        "event",
    )
    assert first.created_ns is not None
    assert first.pulled_ns is not None
    assert first.opened_ns is not None
    assert first.first_audio_ns is not None
    assert (
        time_ms(first.created_ns)
        < time_ms(first.pulled_ns)
        < time_ms(first.opened_ns)
        < time_ms(first.first_audio_ns)
    )
    assert first.last_audio_ns is not None
    assert time_ms(first.last_audio_ns) > time_ms(first.first_audio_ns)
    assert first.generated == Sound(12_000, RATE)
    assert first.read == Sound(7200, RATE)
    assert first.captured is not None
    assert first.captured.samples == 7200
    assert first.sent is not None
    assert first.sent.samples == 4800
    assert (time_ms(first.truncated_to_ns), first.sent_position.ms) == (200.0, 200.0)
    assert (first.on_server, first.in_history) == (True, True)
    assert (
        time_ms(second.pulled_ns),
        time_ms(second.opened_ns),
        time_ms(second.first_audio_ns),
    ) == (None, None, None)
    assert second.generated == Sound(2400, RATE)
    assert second.read.samples == 0
    assert second.sent is not None
    assert second.sent.samples == 0
    assert second.truncated_to_ns is None
    assert (second.on_server, second.in_history) == (True, False)


def test_a_segment_plays_the_message_its_speech_began_to_read_last(tmp_path: Path) -> None:
    provider = Provider()
    provider.respond("s1")
    provider.create("m1")
    provider.create("m2")
    provider.play("m1", 2400, last=True)
    provider.sim.flush()
    provider.respond("s2")
    provider.create("other")
    provider.play("m2", 4800, last=True)
    provider.sim.flush()
    provider.play("other", 1200, last=True)
    provider.sim.flush()
    provider.sim.tick(40)
    provider.end(1)
    provider.end(2)
    analysis = analysed(tmp_path, provider.finish())
    assert [s.message_id for s in analysis.segments] == ["m1", "m2", "other"]
    assert analysis.realtime is not None
    assert {m.id: (m.segments, m.sent.samples) for m in analysis.realtime.messages if m.sent} == {
        "m1": ((1,), 2400),
        "m2": ((2,), 4800),
        "other": ((3,), 1200),
    }


def test_what_was_read_last_is_played_in_whatever_order_it_was_created(tmp_path: Path) -> None:
    provider = Provider()
    provider.respond()
    provider.create("m1")
    provider.create("m2")
    provider.play("m2", 2400, last=True)
    provider.sim.flush()
    provider.play("m1", 2400, last=True)
    provider.sim.tick(30)
    analysis = analysed(tmp_path, provider.finish())
    assert [s.message_id for s in analysis.segments] == ["m2", "m1"]


def test_a_frame_is_of_the_message_read_at_that_very_instant(tmp_path: Path) -> None:
    events = [
        *taps(),
        RealtimeTapped(0, 1),
        ResponseCreated(1, 1, 1, speech="s1"),
        MessageCreated(2, "m1", 1),
        MessageAudio(10, 10, "m1", 1, 480, RATE),
        FrameCaptured(10, 1, 0, 480, RATE, 1, "s1", "returned", 11),
    ]
    analysis = analysed(tmp_path, events)
    assert [s.message_id for s in analysis.segments] == ["m1"]


def test_audio_that_code_feeds_the_sink_is_of_no_message(tmp_path: Path) -> None:
    """Nor is what was sent of a message known that nobody is known to play."""
    provider = Provider()
    provider.respond(None)
    provider.create("m1")
    provider.play("m1", 4800, last=True)
    provider.sim.tick(30)
    analysis = analysed(tmp_path, provider.finish())
    assert [(s.speech_id, s.message_id) for s in analysis.segments] == [(None, None)]
    assert analysis.realtime is not None
    found = message(analysis.realtime, "m1")
    assert (found.captured, found.sent, found.segments) == (None, None, ())


def test_a_message_nobody_is_known_to_play_may_be_in_any_nameless_audio(tmp_path: Path) -> None:
    provider = Provider()
    provider.respond(None)
    provider.create("m1")
    provider.pull("m1")
    provider.sim.capture(4800, "other")
    provider.sim.tick(30)
    found = message(account(tmp_path, provider.finish()), "m1")
    assert (found.captured, found.sent) == (None, None)


def test_audio_of_another_speech_does_not_name_a_segment(tmp_path: Path) -> None:
    """The next response's audio is read while the first message is still being played."""
    provider = Provider()
    provider.respond("s1")
    provider.create("m1")
    provider.play("m1", 2400)
    provider.sim.flush()
    provider.respond("s2")
    provider.create("next")
    provider.generate("next", 480)
    at = provider.sim.now
    provider.sim.happens(MessageAudio, at, "next", 1, 480, RATE, ended=True)
    provider.play("m1", 2400, last=True)
    provider.sim.tick(30)
    analysis = analysed(tmp_path, provider.finish())
    assert [s.message_id for s in analysis.segments] == ["m1", "m1"]


def test_a_response_nobody_took_is_played_by_whoever_opens_its_message(tmp_path: Path) -> None:
    events = [
        *taps(),
        RealtimeTapped(0, 1),
        ResponseCreated(1, 1, 1),
        MessageCreated(2, "m1", 1),
        MessageOpened(3, "m1", "s1"),
    ]
    assert message(account(tmp_path, events), "m1").speech_id == "s1"


def test_what_was_read_since_the_last_count_is_generated_too(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.interrupt()
    provider.play("m1", 9600)
    provider.sim.tick(30)
    realtime = account(tmp_path, provider.sim.end())
    assert message(realtime, "m1").generated == Sound(16_800, RATE)


def test_the_first_event_says_when_a_message_was_created(tmp_path: Path) -> None:
    """It is told of when the server takes it in, and seen again in a look."""
    provider = begun(Provider())
    provider.sim.tick(5)
    provider.sim.happens(MessageCreated, "m1", None, "context")
    found = message(account(tmp_path, provider.finish()), "m1")
    assert (found.response, found.created_by) == (1, "event")
    assert time_ms(found.created_ns) == pytest.approx(0, abs=0.1)


def test_a_message_is_counted_over_all_its_segments(tmp_path: Path) -> None:
    provider = Provider()
    provider.respond()
    provider.create("m1")
    provider.play("m1", 2400)
    provider.sim.flush()
    provider.play("m1", 4800, last=True)
    provider.sim.tick(40)
    realtime = account(tmp_path, provider.finish())
    found = message(realtime, "m1")
    assert found.segments == (1, 2)
    assert found.captured is not None
    assert (found.captured.samples, found.captured.frames) == (7200, 15)
    assert found.sent is not None
    assert found.sent.samples == 7200


def test_what_was_sent_is_not_known_where_the_wire_was_not_read(tmp_path: Path) -> None:
    kinds = ("sent", "inserted")
    events = [
        event
        for event in cut_short(Provider()).finish()
        if event.NAME not in kinds and getattr(event, "boundary", "") != "sent"
    ]
    realtime = analysed(tmp_path, events).realtime
    assert realtime is not None
    found = message(realtime, "m1")
    assert found.captured is not None
    assert found.captured.samples == 7200
    assert (found.sent, found.sent_position) == (None, None)


def test_audio_that_may_be_of_either_message_is_counted_for_none(tmp_path: Path) -> None:
    """The speech was under way when the tap came: its audio can't be told apart."""
    call = Simulation()
    call.capture(2400, "s1")
    provider = Provider(call)
    provider.respond("s1")
    provider.create("m1")
    provider.create("m2")
    provider.pull("m1")
    call.tick(20)
    realtime = account(tmp_path, provider.finish())
    assert (message(realtime, "m1").captured, message(realtime, "m1").sent) == (None, None)
    never_pulled = message(realtime, "m2")
    assert never_pulled.sent is not None
    assert never_pulled.sent.samples == 0


def test_what_a_stream_does_not_say_is_not_made_up(tmp_path: Path) -> None:
    realtime = account(tmp_path, cut_short(Provider(askable=False)).finish())
    assert [m.generated for m in realtime.messages] == [None, None]
    assert message(realtime, "m1").read.samples == 7200
    assert realtime.responses[0].generated is None
    assert stop(realtime).generated_after is None
    assert time_ms(stop(realtime).generating_ns) == pytest.approx(30, abs=0.1)


def test_a_message_read_to_its_end_is_known_whole_without_asking(tmp_path: Path) -> None:
    provider = Provider(askable=False)
    provider.respond()
    provider.create("m1")
    provider.play("m1", 4800, last=True)
    provider.sim.tick(30)
    realtime = account(tmp_path, provider.finish())
    assert message(realtime, "m1").generated == Sound(4800, RATE)
    assert realtime.responses[0].generated == Sound(4800, RATE)


def test_a_message_that_was_generated_but_never_read_has_its_length(tmp_path: Path) -> None:
    provider = Provider()
    provider.respond()
    provider.create("m1")
    provider.generate("m1", 2400)
    realtime = account(tmp_path, provider.finish())
    found = message(realtime, "m1")
    assert (found.generated, found.read) == (Sound(2400, RATE), Sound(0, RATE))


def test_a_length_without_a_rate_is_samples_only(tmp_path: Path) -> None:
    events = [
        *taps(),
        RealtimeTapped(0, 1),
        ResponseCreated(1, 1, 1),
        *(MessageCreated(2, name, 1) for name in ("m1", "m2")),
        MessageAudio(3, 3, "m1", 1, 480, 24_000, ended=True),
        GenerationCounted(4, 1, "m2", 0, 480),
    ]
    realtime = account(tmp_path, events)
    assert message(realtime, "m2").generated == Sound(480, None)
    assert realtime.responses[0].generated == Sound(960, None)


def test_lengths_of_several_rates_are_not_added_up(tmp_path: Path) -> None:
    events = [
        *taps(),
        RealtimeTapped(0, 1),
        ResponseCreated(1, 1, 1),
        *(MessageCreated(2, name, 1) for name in ("m1", "m2")),
        MessageAudio(3, 3, "m1", 1, 480, 48_000, ended=True),
        MessageAudio(4, 4, "m2", 1, 480, 24_000, ended=True),
    ]
    realtime = account(tmp_path, events)
    assert realtime.responses[0].generated == Sound(960, None)


# --- Responses and how they were stopped ---------------------------------------------------------


def test_a_response_says_when_it_began_ended_and_was_cancelled(tmp_path: Path) -> None:
    realtime = account(tmp_path, cut_short(Provider()).finish())
    (response,) = realtime.responses
    assert (response.number, response.id, response.speech_id) == (1, "resp_1", "s1")
    assert (response.ended_by, response.cancelled) == ("closed", True)
    assert response.messages == ("m1", "m2")
    assert response.generated == Sound(14_400, RATE)
    assert time_ms(response.cancel_ns) == time_ms(realtime.cancels[0].at_ns)
    assert response.ended_ns is not None
    assert time_ms(response.ended_ns) > time_ms(response.cancel_ns)


def test_metrics_that_come_after_the_end_only_say_whether_it_was_cancelled(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.end(by="stream")
    ended = provider.sim.now
    provider.sim.tick(5)
    provider.sim.happens(ResponseEnded, 1, "metrics", cancelled=False)
    (response,) = account(tmp_path, provider.finish()).responses
    assert (response.ended_by, response.cancelled) == ("stream", False)
    assert time_ms(response.ended_ns) == pytest.approx(ended / MS, abs=0.01)


def test_a_cancel_in_time_is_placed_between_interrupt_and_end(tmp_path: Path) -> None:
    found = stop(account(tmp_path, cut_short(Provider()).finish()))
    assert found.responses == (1,)
    assert found.under_way is True
    assert found.hit == (1,)
    assert time_ms(found.cancel_after_interrupt_ns) == pytest.approx(0, abs=0.01)
    assert time_ms(found.cancel_after_end_ns) == pytest.approx(-30, abs=0.1)
    assert time_ms(found.generating_ns) == pytest.approx(30, abs=0.1)
    assert found.generated_after == Sound(2400, RATE)


def test_audio_of_the_message_being_played_counts_from_the_interrupt_on(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.interrupt()
    provider.generate("m1", 480)
    provider.sim.tick(1)
    provider.play("m1", 9600)
    provider.end()
    provider.done()
    realtime = account(tmp_path, provider.finish())
    assert message(realtime, "m1").generated == Sound(16_800, RATE)
    assert stop(realtime).generated_after == Sound(4800, RATE)


def test_without_a_cancel_nothing_is_said_of_one(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.interrupt()
    provider.sim.tick(50)
    provider.end()
    provider.done()
    found = stop(account(tmp_path, provider.finish()))
    assert found.under_way is True
    assert (time_ms(found.cancel_ns), time_ms(found.cancel_after_interrupt_ns)) == (None, None)
    assert (time_ms(found.cancel_after_end_ns), found.hit) == (None, ())
    assert time_ms(found.generating_ns) == pytest.approx(500, abs=1)


def test_a_response_that_had_ended_is_not_under_way(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.end()
    provider.sim.tick(2)
    provider.interrupt()
    provider.done()
    found = stop(account(tmp_path, provider.finish()))
    assert found.under_way is False
    assert time_ms(found.generating_ns) == 0
    assert found.generated_after is not None
    assert found.generated_after.samples == 0


def test_a_late_cancel_shows_whose_response_it_hit(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.end()
    provider.respond("s2")
    provider.create("next")
    provider.generate("next", 4800)
    provider.interrupt("s1")
    provider.sim.tick(4)
    provider.cancel("s1")
    provider.done()
    provider.end(2)
    realtime = account(tmp_path, provider.finish())
    assert [s.speech_id for s in realtime.stops] == ["s1"]
    found = stop(realtime)
    assert found.hit == (2,)
    assert found.cancel_after_end_ns is not None
    assert time_ms(found.cancel_after_end_ns) > 30
    assert time_ms(realtime.responses[1].cancel_ns) == time_ms(found.cancel_ns)
    assert time_ms(realtime.responses[0].cancel_ns) is None


def test_a_call_that_raised_told_the_provider_nothing(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.interrupt()
    provider.cancel(end="raised")
    provider.sim.happens(TruncateSent, 1, "m1", 200, "raised")
    provider.sim.tick(3)
    provider.end()
    realtime = account(tmp_path, provider.finish())
    assert realtime.cancels == ()
    assert time_ms(stop(realtime).cancel_ns) is None
    assert time_ms(realtime.responses[0].cancel_ns) is None
    assert time_ms(message(realtime, "m1").truncated_to_ns) is None


@pytest.mark.parametrize("counted", [False, True])
def test_a_trace_cut_before_anybody_counted_again_claims_no_zero(
    tmp_path: Path, counted: bool
) -> None:
    provider = begun(Provider())
    provider.interrupt()
    provider.sim.tick(4)
    if counted:
        provider.count("speech_done")
    cut = write(tmp_path / "cut.jsonl", provider.sim.end(), trailer=False)
    realtime = reports.analyze(cut).realtime
    assert realtime is not None
    sound = stop(realtime).generated_after
    assert (None if sound is None else sound.samples) == (0 if counted else None)


def test_a_message_whose_creation_was_lost_may_have_been_there_before(tmp_path: Path) -> None:
    written = cut_short(Provider()).finish()
    second = [event for event in written if getattr(event, "message", None) == "m2"]
    seen = next(nth for nth, event in enumerate(second) if getattr(event, "why", "") == "ended")
    events = [event for event in written if event not in second[:seen]]
    assert stop(account(tmp_path, events)).generated_after is None


def test_a_cancel_just_before_the_interrupt_belongs_to_it(tmp_path: Path) -> None:
    """Some releases cancel first and interrupt the speech then, in one step of the loop."""
    provider = begun(Provider())
    provider.cancel()
    provider.interrupt()
    provider.end()
    found = stop(account(tmp_path, provider.finish()))
    assert found.hit == (1,)
    assert found.cancel_after_interrupt_ns is not None
    assert -1 < time_ms(found.cancel_after_interrupt_ns) < 0


def test_a_cancel_that_nobody_asked_for_by_name_is_known_by_what_it_hit(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.interrupt()
    provider.sim.tick(2)
    provider.cancel(None)
    provider.end()
    found = stop(account(tmp_path, provider.finish()))
    assert time_ms(found.cancel_after_interrupt_ns) == pytest.approx(20, abs=0.1)


def test_the_first_of_several_cancels_is_the_one_that_counts(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.interrupt()
    provider.sim.tick(1)
    provider.cancel(None)
    provider.sim.tick(1)
    provider.end()
    provider.cancel("s1")
    realtime = account(tmp_path, provider.finish())
    assert len(realtime.cancels) == 2
    assert time_ms(stop(realtime).cancel_after_interrupt_ns) == pytest.approx(10, abs=0.1)


def test_a_response_that_came_after_the_cancel_has_no_part_in_when_it_was_sent(
    tmp_path: Path,
) -> None:
    provider = begun(Provider())
    provider.interrupt()
    provider.cancel()
    provider.sim.tick(1)
    provider.end(1)
    provider.sim.tick(1)
    provider.respond("s1")
    provider.sim.tick(50)
    provider.end(2)
    found = stop(account(tmp_path, provider.finish()))
    assert time_ms(found.cancel_after_end_ns) == pytest.approx(-10, abs=0.1)


def test_a_response_made_after_the_interrupt_was_not_under_way(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.end(1)
    provider.interrupt()
    provider.sim.tick(1)
    provider.respond("s1")
    provider.end(2)
    found = stop(account(tmp_path, provider.finish()))
    assert (found.responses, found.under_way) == ((1, 2), False)


def test_a_cancel_of_an_earlier_step_is_not_taken_for_the_one_of_the_interrupt(
    tmp_path: Path,
) -> None:
    """Before a reply to a tool the session cancels what is under way: nothing."""
    provider = Provider()
    provider.respond()
    provider.create("m1")
    provider.play("m1", 2400, last=True)
    provider.end(by="stream")
    provider.cancel("s1")
    provider.sim.tick(10)
    provider.respond("s1")
    provider.create("m2")
    provider.play("m2", 9600)
    provider.sim.tick(10)
    provider.interrupt()
    provider.end(2)
    found = stop(account(tmp_path, provider.finish()))
    assert found.responses == (1, 2)
    assert (found.under_way, time_ms(found.cancel_ns)) == (True, None)


def test_a_response_cancelled_for_another_speech_still_counts_as_cancelled(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.sim.happens(SpeechCreated, "s0")
    provider.cancel("s0")
    provider.sim.tick(10)
    provider.interrupt()
    provider.end()
    found = stop(account(tmp_path, provider.finish()))
    assert time_ms(found.cancel_after_interrupt_ns) == pytest.approx(-100, abs=0.1)
    assert found.hit == (1,)


def test_an_end_nobody_saw_is_not_made_up(tmp_path: Path) -> None:
    provider = begun(Provider(askable=False))
    provider.interrupt()
    provider.cancel()
    provider.done()
    found = stop(account(tmp_path, provider.finish()))
    assert found.under_way is None
    assert (
        time_ms(found.ended_ns),
        time_ms(found.generating_ns),
        time_ms(found.cancel_after_end_ns),
    ) == (None, None, None)
    assert found.generated_after is None


def test_a_stream_that_can_be_asked_and_is_open_is_under_way(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.interrupt()
    provider.done()
    found = stop(account(tmp_path, provider.finish()))
    assert (found.under_way, time_ms(found.ended_ns)) == (True, None)


def test_generation_is_counted_from_the_interrupt_and_not_from_a_later_count(
    tmp_path: Path,
) -> None:
    """The first message ends at once; what is counted then is not what there was before."""
    provider = Provider()
    provider.respond()
    provider.create("m1")
    provider.generate("m1", 4800)
    provider.interrupt()
    provider.generate("m1", 2400)
    provider.count("ended")
    provider.end()
    found = stop(account(tmp_path, provider.finish()))
    assert found.generated_after == Sound(2400, RATE)


def test_a_message_that_was_read_whole_before_the_interrupt_adds_nothing(tmp_path: Path) -> None:
    provider = Provider(askable=False)
    provider.respond()
    provider.create("m1")
    provider.play("m1", 4800, last=True)
    provider.sim.tick(20)
    provider.interrupt()
    provider.sim.tick(5)
    provider.end()
    found = stop(account(tmp_path, provider.finish()))
    assert (found.under_way, found.generated_after) == (True, Sound(0, None))


def test_a_message_made_after_the_interrupt_counts_whole(tmp_path: Path) -> None:
    provider = Provider()
    provider.respond()
    provider.interrupt()
    provider.sim.tick(1)
    provider.create("m1")
    provider.generate("m1", 2400)
    provider.end()
    provider.done()
    found = stop(account(tmp_path, provider.finish()))
    assert found.generated_after == Sound(2400, RATE)


@pytest.mark.parametrize(("by", "known"), [("closed", True), ("stream", True), ("metrics", False)])
def test_a_response_without_a_message_generated_nothing_if_its_stream_was_seen(
    tmp_path: Path, by: str, known: bool
) -> None:
    provider = Provider()
    provider.respond()
    provider.interrupt()
    provider.sim.tick(3)
    provider.end(by=by)
    realtime = account(tmp_path, provider.finish())
    none = Sound(0, None) if known else None
    assert realtime.responses[0].generated == none
    assert stop(realtime).generated_after == none


def test_a_message_seen_late_may_have_been_there_before(tmp_path: Path) -> None:
    """Nobody could ask, and it was only seen when it was pulled."""
    provider = Provider(askable=False)
    provider.respond()
    provider.interrupt()
    provider.sim.tick(3)
    provider.create("m1", by="stream")
    provider.play("m1", 2400, last=True)
    provider.end(by="stream")
    realtime = account(tmp_path, provider.finish())
    assert message(realtime, "m1").generated == Sound(2400, RATE)
    assert stop(realtime).generated_after is None


def test_a_message_the_streams_would_have_shown_was_not_there_before(tmp_path: Path) -> None:
    provider = Provider()
    provider.respond()
    provider.interrupt()
    provider.sim.tick(3)
    provider.create("m1", by="stream")
    provider.generate("m1", 2400)
    provider.end()
    assert stop(account(tmp_path, provider.finish())).generated_after == Sound(2400, RATE)


def test_a_message_told_of_after_the_interrupt_was_made_after_it(tmp_path: Path) -> None:
    provider = Provider(askable=False)
    provider.respond()
    provider.interrupt()
    provider.sim.tick(3)
    provider.create("m1")
    provider.play("m1", 2400, last=True)
    found = stop(account(tmp_path, provider.finish()))
    assert found.generated_after == Sound(2400, RATE)
    assert (found.under_way, time_ms(found.ended_ns)) == (True, None)


def test_a_speech_without_a_response_has_no_stop(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.sim.happens(SpeechCreated, "said")
    provider.sim.happens(SpeechCommitted, "said")
    assert account(tmp_path, provider.finish()).stops == ()


# --- The conversation ----------------------------------------------------------------------------


def sides(realtime: Realtime) -> dict[str, tuple[bool | None, bool | None, str]]:
    return {row.id: (row.server, row.local, row.difference) for row in realtime.conversation}


def test_both_sides_stand_side_by_side_in_the_order_of_the_server(tmp_path: Path) -> None:
    provider = Provider()
    provider.server["hello"] = "user"
    provider.remember("note", "system")
    provider.remember("hello", "user")
    begun(provider).create("m2")
    provider.remember("m1")
    provider.remember("tool", "function_call")
    provider.interrupt()
    provider.end()
    provider.done()
    realtime = account(tmp_path, provider.finish())
    assert list(sides(realtime).items()) == [
        ("note", (False, True, "history only")),
        ("hello", (True, True, "")),
        ("m1", (True, True, "")),
        ("tool", (False, True, "history only")),
        ("m2", (True, False, "server only")),
    ]
    rows = {row.id: row for row in realtime.conversation}
    assert rows["hello"].role == "user"
    assert rows["hello"].message is None
    assert rows["m2"].message == message(realtime, "m2")


def test_what_was_there_and_is_gone_keeps_its_row(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.create("m2")
    provider.look()
    del provider.server["m2"]
    provider.end()
    realtime = account(tmp_path, provider.finish())
    assert sides(realtime)["m2"] == (False, False, "neither")
    assert message(realtime, "m2").on_server is False


def test_an_item_that_comes_back_keeps_its_place(tmp_path: Path) -> None:
    """Some providers edit a conversation by taking items out and putting them in again."""
    provider = begun(Provider())
    provider.server["hello"] = "user"
    provider.look()
    del provider.server["m1"]
    provider.look()
    provider.server["m1"] = "assistant"
    provider.remember("m1")
    provider.remember("hello", "user")
    assert sides(account(tmp_path, provider.finish())) == {
        "m1": (True, True, ""),
        "hello": (True, True, ""),
    }


def test_a_message_that_was_removed_before_anybody_looked_is_gone(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.create("m2")
    del provider.server["m2"]
    provider.end()
    realtime = account(tmp_path, provider.finish())
    assert sides(realtime)["m2"] == (False, False, "neither")


def test_nothing_is_said_of_a_side_nobody_looked_at_since(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.look()
    provider.sim.tick(1)
    provider.create("m2")
    realtime = account(tmp_path, provider.sim.end())
    assert sides(realtime)["m1"] == (True, False, "server only")
    assert sides(realtime)["m2"] == (None, None, "")


def test_a_message_found_by_the_look_itself_is_held(tmp_path: Path) -> None:
    """The look is written down before the message it came upon."""
    events = [
        *taps(),
        RealtimeTapped(0, 1),
        ContextSeen(10, "server", [("m1", "assistant")], [], 1),
        MessageCreated(11, "m1", None, "context"),
    ]
    found = message(account(tmp_path, events), "m1")
    assert (found.on_server, found.in_history, found.created_by) == (True, None, "context")


def test_what_only_the_agent_keeps_for_itself_is_no_difference(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.remember("m1")
    provider.remember("h1", "agent_handoff")
    provider.remember("c1", "agent_config_update")
    assert list(sides(account(tmp_path, provider.finish()))) == ["m1"]


def test_a_message_is_looked_for_in_the_session_that_made_it(tmp_path: Path) -> None:
    """After a handoff another session holds another conversation."""
    provider = begun(Provider())
    provider.remember("m1")
    provider.end()
    provider.done()
    sim = provider.sim
    sim.happens(RealtimeTapped, 2, "other model")
    sim.happens(ContextSeen, "server", [("hello", "system")], [], 2)
    realtime = account(tmp_path, provider.finish())
    assert realtime.model == "scripted, other model"
    assert message(realtime, "m1").on_server is True
    assert sides(realtime) == {"m1": (True, True, ""), "hello": (True, False, "server only")}


def test_a_message_removed_by_a_later_session_before_anybody_looked_is_gone(
    tmp_path: Path,
) -> None:
    events = [
        *taps(),
        RealtimeTapped(0, 1),
        ContextSeen(1, "server", [("hello", "user")], [], 1),
        RealtimeTapped(2, 2),
        ResponseCreated(3, 1, 2),
        MessageCreated(4, "m1", 1),
        ContextSeen(5, "server", [("hello", "user")], [], 2),
    ]
    realtime = account(tmp_path, events)
    assert message(realtime, "m1").on_server is False
    assert [row.id for row in realtime.conversation] == ["m1", "hello"]


# --- Assertions ----------------------------------------------------------------------------------


def served(provider: Provider) -> Provider:
    """What the first message was cut to is on both sides, and nothing else is."""
    cut_short(provider)
    del provider.server["m2"]
    return provider


HOLDING = {
    "cancel - commit <= 1ms": served,
    "commit < cancel": served,
    "generated_after == 2400 samples": served,
    "generated_after <= 100ms": served,
    "generating <= 31ms": served,
    "responses == 1": served,
    "messages == 2": served,
    "cancels == 1": served,
    "conversation.same": served,
    "not conversation.same": cut_short,
    "no cancel": lambda provider: begun(provider).interrupt(),
}
FAILING = {
    "cancel - commit > 1ms": (served, "cancel - commit is 0.00"),
    "generated_after < 2400 samples": (served, "100.0 ms (2400 samples)"),
    "generating < 29ms": (served, "generating is 30.0 ms"),
    "responses == 2": (served, "responses is 1"),
    "messages < 2": (served, "messages is 2"),
    "cancels == 0": (served, "cancels is 1"),
    "conversation.same": (cut_short, "conversation.same is false"),
    "no cancel": (served, "cancel came at"),
    "cancel < finished": (lambda provider: begun(provider).interrupt(), "cancel never came"),
}
UNKNOWN = {
    "generated_after <= 100ms": "the model's streams do not say what was generated",
    "generating <= 100ms": "the end of the response was not seen",
    "conversation.same": "the trace can't tell what both sides hold",
}


def checked(tmp_path: Path, provider: Provider, assertion: str, *, looks: bool = True) -> Any:
    events = provider.finish() if looks else provider.sim.end()
    return reports.check(analysed(tmp_path, events), assertion)


@pytest.mark.parametrize("assertion", HOLDING)
def test_an_assertion_about_the_model_holds_where_it_is_so(tmp_path: Path, assertion: str) -> None:
    provider = Provider()
    HOLDING[assertion](provider)
    result = checked(tmp_path, provider, assertion)
    assert result.holds is True, result


@pytest.mark.parametrize("assertion", FAILING)
def test_an_assertion_about_the_model_fails_with_what_was_found(
    tmp_path: Path, assertion: str
) -> None:
    script, said = FAILING[assertion]
    provider = Provider()
    script(provider)
    result = checked(tmp_path, provider, assertion)
    assert result.holds is False
    assert said in result.checks[0].reason


@pytest.mark.parametrize("assertion", UNKNOWN)
def test_an_assertion_nobody_can_decide_is_left_undecided(tmp_path: Path, assertion: str) -> None:
    provider = begun(Provider(askable=False))
    provider.interrupt()
    result = checked(tmp_path, provider, assertion, looks=False)
    assert result.holds is None
    assert UNKNOWN[assertion] in result.checks[0].reason


@pytest.mark.parametrize("assertion", ["messages == 0", "generating == 0ms", "conversation.same"])
def test_without_a_realtime_model_an_assertion_about_it_fails(
    tmp_path: Path, assertion: str
) -> None:
    call = Simulation()
    call.capture(4800)
    call.tick(3)
    call.happens(InterruptCalled, "s1", "programmatic")
    call.happens(SpeechCommitted, "s1")
    result = reports.check(analysed(tmp_path, call.end()), assertion)
    assert result.holds is False
    assert "there was no realtime model" in result.checks[0].reason


# --- Around it -----------------------------------------------------------------------------------


def test_the_story_of_a_barge_in_tells_what_the_model_was_told(tmp_path: Path) -> None:
    (barge_in,) = analysed(tmp_path, cut_short(Provider()).finish()).barge_ins
    told = [moment.event for moment in barge_in.story]
    assert told.index("commit: the speech is interrupted") < told.index(
        "cancel sent to the realtime model"
    )
    assert told[-2:] == [
        "the realtime model's response ends",
        "its message is truncated at 200 ms",
    ]
    times = [time_ms(moment.at_ns) for moment in barge_in.story]
    assert times == sorted(times)


def test_only_the_barge_in_that_committed_tells_of_the_cancel(tmp_path: Path) -> None:
    """The first one only paused the speech, which went on."""
    provider = Provider()
    provider.respond()
    provider.create("m1")
    provider.play("m1", 24_000)
    provider.sim.tick(10)
    for step in (provider.sim.pause, provider.sim.resume):
        provider.sim.user(step == provider.sim.pause)
        step()
        provider.sim.tick(5)
    provider.interrupt()
    provider.cancel()
    provider.sim.clear()
    provider.end()
    barge_ins = analysed(tmp_path, provider.finish()).barge_ins
    told = [any("cancel" in moment.event for moment in b.story) for b in barge_ins]
    assert [b.commit_ns is not None for b in barge_ins] == told == [False, True]


def test_a_response_that_was_over_before_is_not_in_the_story(tmp_path: Path) -> None:
    provider = begun(Provider())
    provider.end()
    provider.interrupt()
    provider.sim.clear()
    (barge_in,) = analysed(tmp_path, provider.finish()).barge_ins
    assert not [m for m in barge_in.story if "model" in m.event]


def test_the_json_report_carries_the_account(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "call.jsonl", cut_short(Provider()).finish())
    assert main(["report", str(path), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["segments"][0]["message_id"] == "m1"
    realtime = document["realtime"]
    assert list(realtime) == [
        "model", "responses", "messages", "cancels", "stops", "conversation",
    ]  # fmt: skip
    assert realtime["conversation"][1]["message"]["generated"] == {
        "samples": 2400,
        "rate_hz": RATE,
        "ms": 100.0,
    }


def test_a_trace_that_breaks_off_anywhere_is_accounted_as_far_as_it_goes(tmp_path: Path) -> None:
    events = cut_short(Provider()).finish()
    for cut in range(0, len(events), 3):
        path = write(tmp_path / "call.jsonl", events[:cut], trailer=False)
        analysis = reports.analyze(path)
        shown = {m.id for m in analysis.realtime.messages} if analysis.realtime else set()
        named = {e.message for e in events[:cut] if isinstance(e, MessageCreated)}
        assert shown == named


def test_events_that_contradict_each_other_are_survived(tmp_path: Path) -> None:
    """A count of nothing known, an end without a beginning, a response told of twice."""
    events: list[Any] = [
        *taps(),
        ResponseEnded(1, 7, "closed"),
        GenerationCounted(2, 9, "m9", 0, None),
        MessageAudio(3, 3, "m8", 0, 0, 24_000, ended=True),
        CancelSent(4, 3, None, [5]),
        ResponseCreated(5, 1, 1, speech="s1"),
        ResponseCreated(6, 1, 1, speech="s2"),
        ContextSeen(7, "server", [], ["gone"], None),
        SpeechCommitted(8, "s1"),
    ]
    realtime = account(tmp_path, events)
    assert [m.id for m in realtime.messages] == ["m9", "m8"]
    assert [r.speech_id for r in realtime.responses] == ["s1"]
    assert stop(realtime).hit == ()
