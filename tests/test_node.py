"""The probe for Node without LiveKit: what it does to a session, how exactly it follows audio."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from probe.errors import ScenarioError
from probe.scenarios import CATALOGUE, run_in_child
from probe.sweep import Build
from probe.trace.events import EVENTS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
NODE = ROOT / "probe" / "node"

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")

Found = dict[str, Any]


def node(script: str, *arguments: object) -> Any:
    """What a script of the tests prints, as JSON."""
    done = subprocess.run(
        ["node", str(ROOT / "tests" / script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def of(events: Iterable[Found], kind: str) -> list[Found]:
    return [event for event in events if event["event"] == kind]


# --- On a session --------------------------------------------------------------------------------


@functools.cache
def _sessions(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = node("node_session.mjs", folder)
    return found


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found = _sessions(tmp_path_factory.mktemp("sessions"))
    failed = {name: told for name, told in found.items() if "failed" in told}
    assert not failed, failed
    return found


@needs_node
def test_calls_give_what_they_would_give_without_the_probe(sessions: dict[str, Any]) -> None:
    told = sessions["passes_everything_through"]
    assert told["answers"] == [
        "captured",
        "flushed",
        "cleared",
        "TypeError: no pause",
        "RangeError: another rate",
    ]
    assert told["pushed"] == 1


@needs_node
def test_how_each_call_ended_is_recorded(sessions: dict[str, Any]) -> None:
    events = sessions["passes_everything_through"]["events"]
    assert [(mark["mark"], mark.get("end")) for mark in of(events, "mark")] == [
        ("flush", None),
        ("clear", None),
        ("pause", "raised"),
    ]
    accepted, refused = of(events, "pushed")
    assert (accepted["end"], accepted.get("accepted", True)) == ("returned", True)
    assert (refused["end"], refused["accepted"], refused["error"]) == (
        "raised",
        False,
        "RangeError",
    )
    assert accepted["captured"] == [[0, 480]]


@needs_node
def test_a_frame_that_is_refused_late_takes_no_place(sessions: dict[str, Any]) -> None:
    events = sessions["gives_no_place_to_a_frame_that_is_refused_late"]
    refused, accepted = sorted(of(events, "pushed"), key=lambda push: int(push["push"]))
    assert refused["accepted"] is False
    assert accepted.get("accepted", True) is True
    assert accepted["start_sample"] == refused["start_sample"] == 0


@needs_node
def test_what_a_sink_calls_on_itself_is_no_mark(sessions: dict[str, Any]) -> None:
    events = sessions["passes_everything_through"]["events"]
    # the clear of that sink flushes it as well
    assert [mark["mark"] for mark in of(events, "mark")].count("flush") == 1


@needs_node
def test_detached_it_leaves_nothing_behind(sessions: dict[str, Any]) -> None:
    told = sessions["leaves_nothing_behind"]
    assert all(
        before != during for before, during in zip(told["before"], told["during"], strict=True)
    )
    assert told["after"] == told["before"]
    assert told["exits"] == 0
    assert told["trailers"] == 1


@needs_node
def test_a_method_that_others_replaced_is_left_to_them(sessions: dict[str, Any]) -> None:
    told = sessions["leaves_to_others_what_they_replaced"]
    assert told == {"during": "theirs, flushed", "after": "theirs, flushed"}


@needs_node
def test_a_frame_that_passes_several_sinks_of_a_chain_is_captured_once(
    sessions: dict[str, Any],
) -> None:
    events = sessions["records_a_sink_of_a_chain_once"]
    assert len(of(events, "captured")) == len(of(events, "pushed")) == 1


@needs_node
def test_a_tap_that_fails_is_a_fault_and_touches_nothing(sessions: dict[str, Any]) -> None:
    told = sessions["never_raises_into_the_session"]
    assert told["answer"] == "captured"
    faults = of(told["events"], "fault")
    assert len(faults) == told["faults"]["tap_raised"] >= 3
    assert "secret" not in json.dumps(faults)


@needs_node
def test_who_interrupts_is_told_from_the_calling_code(sessions: dict[str, Any]) -> None:
    events = sessions["tells_who_interrupts"]
    asked = [(call["speech"], call["by"]) for call in of(events, "interrupt_called")]
    # Where nothing was left to stop, nobody asked.
    assert asked == [
        ("activity", "activity"),
        ("transcript", "transcript"),
        ("code", "programmatic"),
    ]
    assert [one["speech"] for one in of(events, "speech_committed")] == [
        speech for speech, _ in asked
    ]
    done = {one["speech"]: one.get("interrupted", False) for one in of(events, "speech_done")}
    assert done == {"late": False, "activity": True}


def endings(events: list[Found]) -> list[str]:
    """What ended, in the order of its times and, where those are one, as it was written."""
    names = ("session_closed", "caller_left", "handed_over", "interrupt_called", "speech_committed")
    found = [event for event in events if event["event"] in names]
    return [str(event["event"]) for event in sorted(found, key=lambda event: int(event["at_ns"]))]


@needs_node
def test_a_close_is_told_once_and_before_it_interrupts_the_speech(sessions: dict[str, Any]) -> None:
    told = sessions["tells_a_close_before_what_it_interrupts"]
    assert told["answers"] == ["closed", "it did not run"]
    assert (told["own"], told["faults"]) == (False, {})
    assert endings(told["events"]) == ["session_closed", "interrupt_called", "speech_committed"]
    assert [event["reason"] for event in of(told["events"], "session_closed")] == ["user_initiated"]


@needs_node
def test_where_only_its_end_can_be_seen_the_header_says_so(sessions: dict[str, Any]) -> None:
    events = sessions["tells_where_only_the_end_of_a_session_is_seen"]
    assert {"session_closed", "caller_left", "handed_over"} <= events[0]["missing"].keys()
    assert [event["reason"] for event in of(events, "session_closed")] == ["job_shutdown"]


@needs_node
def test_the_caller_who_leaves_is_told_and_nobody_else(sessions: dict[str, Any]) -> None:
    told = sessions["tells_that_the_caller_left"]
    assert [event["reason"] for event in of(told["events"], "caller_left")] == ["CLIENT_INITIATED"]
    assert (told["during"], told["after"], told["faults"]) == (2, 1, {})


@needs_node
def test_a_handoff_is_told_by_numbers_and_before_what_is_interrupted_for_it(
    sessions: dict[str, Any],
) -> None:
    told = sessions["tells_of_a_handoff_before_what_is_interrupted_for_it"]
    taken = [(event["old"], event["new"]) for event in of(told["events"], "handed_over")]
    assert taken == [(1, 2), (2, 1)]
    assert endings(told["events"])[:3] == ["handed_over", "interrupt_called", "speech_committed"]
    assert told["faults"] == {}


@needs_node
def test_a_mark_says_which_sink_it_goes_to(sessions: dict[str, Any]) -> None:
    events = sessions["says_which_sink_a_mark_goes_to"]
    marks = [(mark["mark"], mark["sink"]) for mark in of(events, "mark")]
    assert marks == [("pause", 2), ("clear", 1)]
    found = [(tap["source"], tap["sink"]) for tap in of(events, "tapped") if "source" in tap]
    assert found == [(1, 1), (2, 2)]


@needs_node
def test_only_the_words_of_livekit_s_own_audio_are_kept(sessions: dict[str, Any]) -> None:
    told = sessions["keeps_the_words_of_livekit_s_own_audio"]
    assert told["ends"] == 1
    for name in ("captured", "pushed"):
        own, *others = [event.get("detail") for event in of(told["events"], name)]
        assert own.startswith("the rates differ")
        assert len(own) == 200
        assert others == [None, None]


@needs_node
def test_no_words_are_written(sessions: dict[str, Any]) -> None:
    told = sessions["keeps_words_out"]
    (transcript,) = of(told["events"], "transcript")
    assert (transcript["chars"], transcript["words"], transcript["final"]) == (16, 4, True)
    assert "four words" not in told["text"]


@needs_node
def test_what_can_not_be_recorded_says_what_was_expected(sessions: dict[str, Any]) -> None:
    told = sessions["refuses_what_is_no_session"]
    nothing, twice, nowhere, refused = told["reasons"]
    assert "expected an AgentSession, found Object" in nothing
    assert "recorded already" in twice
    assert told["first"] in twice
    assert nowhere is not None
    assert refused is not None
    assert told["second"] == told["first"].replace(".jsonl", "-1.jsonl")


@needs_node
def test_many_sessions_under_record_bring_no_warning(sessions: dict[str, Any]) -> None:
    assert sessions["warns_of_nothing_with_many_sessions"] == {"warnings": [], "left": 0}


@needs_node
def test_it_attaches_where_nothing_can_be_looked_up(sessions: dict[str, Any]) -> None:
    assert sessions["attaches_where_nothing_can_be_looked_up"] == "attached\n"


@needs_node
def test_wrong_options_of_the_runner_are_wrong_usage() -> None:
    for options in (["--no-such"], ["--home"], []):
        done = subprocess.run(
            ["node", str(NODE / "run.mjs"), *options], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "usage: node run.mjs --home FOLDER --json-spec -\n"


@needs_node
def test_the_trace_ends_shortly_after_the_session(sessions: dict[str, Any]) -> None:
    events = sessions["closes_after_the_session"]
    assert events[-1]["event"] == "trailer"
    assert events[-1]["reason"] == "session_closed"
    assert len(of(events, "state")) == 1, "the last events come after the close"
    assert events[-1]["counts"] == Counter(event["event"] for event in events[:-1])


@needs_node
def test_what_happened_a_quarter_second_ago_is_on_the_disk(sessions: dict[str, Any]) -> None:
    events = sessions["writes_within_a_quarter_second"]
    assert of(events, "captured")
    assert of(events, "pushed")
    assert not of(events, "trailer")


@needs_node
def test_a_wire_that_can_not_be_read_is_a_fault_and_no_silent_zero(
    sessions: dict[str, Any],
) -> None:
    told = sessions["says_that_the_wire_could_not_be_read"]
    assert told["faults"] == {"tap_raised": 1}
    assert not [tap for tap in of(told["events"], "tapped") if tap["boundary"] == "sent"]


@needs_node
def test_the_wire_is_read_without_a_bound_and_only_that_request_is_changed(
    sessions: dict[str, Any],
) -> None:
    told = sessions["reads_the_wire_without_a_bound"]
    assert told["asked"] == [{"queueSizeFrames": 0}]
    assert told["untouched"]
    assert told["faults"] == {}
    taps = [event for event in told["events"] if event.get("boundary") == "sent"]
    assert [event["event"] for event in taps] == ["tapped", "untapped"]


@needs_node
def test_a_loop_that_stands_still_is_told_of(sessions: dict[str, Any]) -> None:
    (stall, *_) = of(sessions["tells_of_a_stall"], "stalled")
    assert stall["until_ns"] - stall["at_ns"] >= 80_000_000


@needs_node
def test_a_disk_that_takes_no_more_is_counted_and_ends_nothing(sessions: dict[str, Any]) -> None:
    assert sessions["survives_a_full_disk"]["faults"] == {"write_failed": 1}


@needs_node
def test_a_trace_nobody_closed_ends_with_the_process(sessions: dict[str, Any]) -> None:
    lines = Path(sessions["left_open"]).read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[-1])["reason"] == "exit"


@needs_node
def test_every_event_is_one_of_the_format(sessions: dict[str, Any]) -> None:
    known = {name: {field.name for field in fields(cls)} for name, cls in EVENTS.items()}
    for told in sessions.values():
        events: Sequence[Found] = told.get("events", []) if isinstance(told, dict) else told
        for event in events if isinstance(events, list) else []:
            assert set(event) - {"event"} <= known[event["event"]], event


# --- As a package --------------------------------------------------------------------------------


def test_both_halves_of_the_probe_have_one_version() -> None:
    package = json.loads((NODE / "package.json").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert package["version"] == project["version"]


def test_the_probe_for_node_has_no_dependencies_of_its_own() -> None:
    package = json.loads((NODE / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in package
    for module in NODE.rglob("*.mjs"):
        for line in module.read_text(encoding="utf-8").splitlines():
            if line.startswith(("import ", "} from ")) and " from " in line:
                name = line.rsplit(" from ", 1)[1].strip("';")
                assert name.startswith(("node:", "./", "../")), (module.name, line)


@pytest.mark.registry
def test_the_wheel_brings_the_probe_for_node(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "uv", "build", "-q", "--wheel", "-o", str(tmp_path), str(ROOT)],
        check=True,
        timeout=120,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        inside = set(packed.namelist())
    needed = [file for file in NODE.rglob("*") if file.suffix in (".mjs", ".json")]
    assert {file.relative_to(ROOT).as_posix() for file in needed} <= inside


@needs_node
def test_a_folder_without_a_build_is_refused_in_a_line(tmp_path: Path) -> None:
    build = Build("nothing", runtime="node", home=tmp_path)
    with pytest.raises(ScenarioError, match="expected an installation of @livekit/agents"):
        run_in_child(CATALOGUE["uninterrupted"], tmp_path / "out", command=build.command)


def package(home: Path, name: str, version: str) -> None:
    folder = home / "node_modules" / name
    folder.mkdir(parents=True)
    described = {"name": name, "version": version, "type": "module", "exports": "./index.js"}
    (folder / "package.json").write_text(json.dumps(described), encoding="utf-8")
    (folder / "index.js").write_text("export const initializeLogger = () => {};", encoding="utf-8")


@needs_node
def test_a_release_that_lacks_what_a_call_needs_is_refused_in_a_line(tmp_path: Path) -> None:
    package(tmp_path, "@livekit/agents", "0.0.7")
    package(tmp_path, "@livekit/rtc-node", "0.0.3")
    build = Build("straw", runtime="node", home=tmp_path)
    refused = r"uninterrupted can't run on @livekit/agents 0\.0\.7: it has no room output"
    with pytest.raises(ScenarioError, match=refused) as raised:
        run_in_child(CATALOGUE["uninterrupted"], tmp_path / "out", command=build.command)
    assert len(str(raised.value).splitlines()) == 1


@needs_node
@pytest.mark.parametrize("name", [name for name, s in CATALOGUE.items() if s.realtime])
def test_a_call_with_a_realtime_model_is_refused_and_not_made_without_it(
    tmp_path: Path, name: str
) -> None:
    package(tmp_path, "@livekit/agents", "0.0.7")
    package(tmp_path, "@livekit/rtc-node", "0.0.3")
    build = Build("straw", runtime="node", home=tmp_path)
    with pytest.raises(ScenarioError, match="its calls have no realtime model") as raised:
        run_in_child(CATALOGUE[name], tmp_path / "out", command=build.command)
    assert len(str(raised.value).splitlines()) == 1


def test_a_program_that_is_not_there_is_refused_in_a_line(tmp_path: Path) -> None:
    command = [str(tmp_path / "no-such-node"), "run.mjs"]
    with pytest.raises(ScenarioError, match="expected a program to run the call"):
        run_in_child(CATALOGUE["uninterrupted"], tmp_path, command=command)
