"""The probe comes at any time, ends up at the head once, and leaves nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.session_child import found

livekit = pytest.mark.livekit


def test_importing_the_probe_imports_no_livekit() -> None:
    code = "import probe, sys; print([m for m in sys.modules if m.startswith('livekit')])"
    child = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.strip() == "[]"


def test_attach_stays_a_function_after_its_module_is_imported() -> None:
    code = "import probe, probe.attach as module, probe as p; print(callable(p.attach))"
    child = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.strip() == "True"


@livekit
def test_a_greeting_is_recorded_whole_when_the_probe_comes_before_start() -> None:
    seen = found("greeting_before_start")
    leaf = [call[1] for call in seen["leaf"] if call[0] == "capture"]
    assert seen["captured"] == leaf
    assert len(leaf) == 30
    assert seen["ends"] == ["returned"]


@livekit
def test_a_probe_that_comes_and_goes_in_mid_speech_neither_cuts_nor_hangs_it() -> None:
    seen = found("attached_mid_speech")
    assert seen["done"] == [True, True, True]
    assert seen["mid_speech"] == [True]
    assert seen["missed"]
    assert 0 < seen["recorded_first"] < 30
    assert seen["recorded_more"]
    assert seen["nothing_after"]
    assert seen["after_leaving"] == []


@livekit
def test_a_wrapper_made_around_the_probe_gets_the_sink_behind_it() -> None:
    seen, without = found("wrapped_afterwards"), found("wrapped_afterwards", probed=False)
    assert seen["handed_out_is_probe"]
    assert seen["head_is_probe"]
    assert seen["probes_in_chain"] == 1
    assert seen["chain"] == without["chain"]
    assert seen["captured"] == [call[1] for call in seen["leaf"] if call[0] == "capture"]


@livekit
def test_a_sink_that_a_room_builds_is_recorded_from_its_first_frame_and_at_its_head() -> None:
    seen = found("room_builds_the_sink")
    assert seen["faults"] == []
    assert seen["unset_before"]
    assert seen["greeting"]
    assert (seen["more"], seen["done"]) == (10, True)
    assert seen["pushed"] == 30 * 480
    assert seen["probes"] == 1
    assert seen["chain"][0] == "Wrapper"
    assert seen["chain"][-1].endswith("AudioOutput")
    assert seen["sources"] == [["pushed", 1, 200]]
    assert seen["sent"] == [[24_000, 240]]
    assert seen["blocks"]
    assert seen["threads"] == []


@livekit
def test_taps_follow_the_sink_to_another_source() -> None:
    seen = found("swapped_mid_session")
    assert seen["faults"] == []
    assert seen["done"] == [True] * 4
    assert len(seen["captured"]) == 16
    last = 4 if seen["can_swap"] else 3
    assert seen["pushes"] == [1] * 4 + [2] * 4 + [last] * 4
    assert ["tapped", last] in seen["tapped"]
    assert not [name for name, _ in seen["tapped"] if name == "untapped"], "they may still play"
    assert ["untapped", 1] in seen["tapped_later"]
    assert ["untapped", last] not in seen["tapped_later"]
    # of the first nobody saw how it was made; a source is found under the sink that marks go to
    queues = {1: None, 2: 150, 3: 250, 4: 350}
    assert seen["found"] == [[n, n, queues[n]] for n in sorted({1, 2, 3, last})]
    assert seen["flushed"] == [1, 2, last, last]
    assert seen["constructor"], "the class is left as it was"
    assert seen["left"] == [[], [], [], []]


@livekit
def test_attaching_and_detaching_a_thousand_times_leaks_nothing() -> None:
    seen = found("attach_detach_a_thousand_times")
    assert seen["after"] == seen["before"]
    assert seen["same"]


@livekit
def test_a_closed_recording_leaves_no_thread_and_no_open_file() -> None:
    seen = found("recordings_leave_nothing")
    assert seen["after"] == seen["before"]
    assert seen["same"]
    assert seen["names"] == 20


@livekit
def test_a_recording_ends_shortly_after_its_session() -> None:
    seen = found("recording_ends_with_the_session")
    last = json.loads(seen["last"])
    assert last["event"] == "trailer"
    assert last["reason"] == "session_closed"
    assert seen["captured"] == 10
    assert len(seen["lines"]) == 1
    assert seen["output"] == "<class 'livekit.agents.voice.io.AgentOutput'>"
    assert seen["threads"] == []


@livekit
def test_a_second_recording_of_one_session_is_refused() -> None:
    assert found("recording_ends_with_the_session")["twice"] == "UsageError"


@livekit
def test_wrong_usage_says_so_in_one_line_and_touches_nothing() -> None:
    seen = found("usage_errors")
    assert seen["no session"] == ["UsageError", False]
    assert seen["directory"] == ["UsageError", False]
    assert seen["untouched"] == ["AgentOutput", 0]
