"""The catalogue of scripted calls, and the files users describe their own with."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from probe.errors import ScenarioError
from probe.scenarios import CATALOGUE, Axes, Scenario, SessionOptions, Step, load
from probe.scenarios.catalogue import found_in
from probe.scenarios.document import from_document, to_document
from probe.scenarios.scenario import RealtimeOptions
from probe.scenarios.script import STEPS, steps

PROMISED = (
    "barge-in",
    "barge-in-no-transcript",
    "barge-in-model",
    "barge-in-activity",
    "barge-in-cut",
    "false-interruption",
    "caller-ignored",
    "programmatic",
    "interrupted-before-subscribed",
    "uninterrupted",
    "long-reply",
    "sink-swapped",
    "reply-over-caller",
    "stale-verdict",
    "realtime-between-messages",
    "realtime-mid-message",
    "realtime-before-first-frame",
    "realtime-handle-interrupt",
    "realtime-late-interrupt",
    "realtime-uninterrupted",
)

WHOLE_FILE = """
name = "nagging"
summary = "the caller speaks twice"
healthy = "both are heard"
note = "staged"
needs = ["vad-before-model"]
subscribed = false
ends = false
lands_before_first_frame = false
expect = ["outcome == committed"]

[options]
allow_interruptions = true
min_duration_s = 0.25
min_words = 2
false_interruption_timeout_s = 1
resume_false_interruption = false
discard_audio_if_uninterruptible = false
interruption_model = true
backchannel_boundary_s = 0.5
min_endpointing_delay_s = 0.2
aec_warmup_s = 1

[call]
pacing = "realtime"
frame_ms = 98.5
rate_hz = 16000
reply_ms = 4000
at = 1500
reply = "generated"
channels = 2
close_ms = 100

[realtime]
messages = [2, 1]
speed = 0.5
cancel_ms = 200
streams = "generator"
detects_turns = false
in_task = true

[[steps]]
do = "land"

[[steps]]
do = "speak"
ms = 400

[[steps]]
do = "await-created"
message = 2

[[steps]]
do = "verdict"
interruption = false
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_catalogue_has_what_was_promised() -> None:
    assert tuple(CATALOGUE) == PROMISED
    for scenario in CATALOGUE.values():
        assert scenario.summary
        assert scenario.healthy


@pytest.mark.parametrize("scenario", CATALOGUE.values(), ids=lambda scenario: scenario.name)
def test_a_scenario_survives_the_way_to_the_child(scenario: Scenario) -> None:
    document = json.loads(json.dumps(to_document(scenario)))
    assert from_document(document) == scenario


def test_a_file_describes_every_part_of_a_scenario(tmp_path: Path) -> None:
    scenario = load(written(tmp_path, WHOLE_FILE))
    untouched = Scenario(name="", summary="", healthy="", steps=())
    for field in fields(Scenario):
        assert getattr(scenario, field.name) != getattr(untouched, field.name), field.name
    assert all(
        getattr(scenario.options, field.name) is not None for field in fields(SessionOptions)
    )
    assert scenario.axes == Axes("realtime", 98.5, 16_000, 4000, 1500, "generated", 2, 100)
    assert scenario.realtime == RealtimeOptions((2, 1), 0.5, 200, "generator", False, True)
    assert [step.do for step in scenario.steps] == ["land", "speak", "await-created", "verdict"]
    assert scenario.steps[2].message == 2
    assert scenario.steps[3].interruption is False


def test_a_file_may_change_one_of_the_catalogue(tmp_path: Path) -> None:
    scenario = load(
        written(tmp_path, 'base = "barge-in-activity"\n[options]\nmin_duration_s = 0.25\n')
    )
    base = CATALOGUE["barge-in-activity"]
    options = replace(base.options, min_duration_s=0.25)
    # What a healthy build shows for the base says nothing about a call that was changed.
    assert scenario == replace(base, name="own", options=options, expect=())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps = [", "own.toml: expected TOML"),
        ("", "own.toml: expected [[steps]] or a `base`"),
        ('base = "nothing"', "own.toml: base: expected one of barge-in,"),
        ('base = "barge-in"\ncolour = 1', "own.toml: colour: unknown key"),
        ('base = "barge-in"\nname = 1', "own.toml: name: expected some text, found 1"),
        ('base = "barge-in"\nneeds = ["luck"]', "own.toml: needs: expected a list of"),
        ('base = "barge-in"\nexpect = "luck"', "own.toml: expect: expected a list of assertions"),
        ('base = "barge-in"\nexpect = [""]', "own.toml: expect: expected a list of assertions"),
        ('base = "barge-in"\noptions = 1', "own.toml: options: expected a table"),
        ('base = "barge-in"\n[options]\nmin_word = 1', "own.toml: options.min_word: unknown key"),
        (
            'base = "barge-in"\n[options]\nmin_words = -1',
            "own.toml: options.min_words: expected a whole number from 0, found -1",
        ),
        (
            'base = "barge-in"\n[options]\nallow_interruptions = 1',
            "own.toml: options.allow_interruptions: expected true or false, found 1",
        ),
        ('base = "barge-in"\n[call]\npacing = "slow"', "own.toml: call.pacing: expected one of"),
        ('base = "barge-in"\n[call]\nrate_hz = 1', "own.toml: call.rate: expected 8000 to 48000"),
        ('base = "barge-in"\n[call]\nat = 99999', "own.toml: call.at: the reply is 2995 ms long"),
        ('base = "barge-in"\n[call]\nat = "late"', "own.toml: call.at: expected milliseconds"),
        ("steps = []", "own.toml: steps: expected [[steps]], one or more"),
        ("steps = [1]", "own.toml: steps[1]: expected a table"),
        ('[[steps]]\ndo = "dance"', "own.toml: steps[1].do: expected one of land,"),
        ('[[steps]]\ndo = "speak"', "own.toml: steps[1].ms: expected milliseconds for `speak`"),
        ('[[steps]]\ndo = "land"\nto = 1', "own.toml: steps[1].to: unknown key"),
        ('[[steps]]\ndo = "detect"', "own.toml: steps: `detect` needs a realtime model"),
        ('steps = ["dance"]', "own.toml: steps[1].do: expected one of land,"),
        ('steps = ["land", ""]', "own.toml: steps[2]: expected a table with `do`, or a step's"),
        ("[[steps]]\nms = 5", "own.toml: steps[1].do: expected one of land,"),
        (
            '[[steps]]\ndo = "land"\n[[steps]]\ndo = "wait"\nms = 1.5',
            "own.toml: steps[2].ms: expected a whole number from 0, found 1.5",
        ),
        (
            '[realtime]\nmessages = [1, "two"]',
            "own.toml: realtime.messages: expected a list of whole numbers, found [1, 'two']",
        ),
        ("realtime = 1", "own.toml: realtime: expected a table"),
        ("[realtime]\nmessages = []", "own.toml: realtime.messages: expected shares from 1"),
        ("[realtime]\nspeed = 0", "own.toml: realtime.speed: expected more than 0"),
        ('[realtime]\nstreams = "tape"', "own.toml: realtime.streams: expected one of channel,"),
        (
            '[realtime]\n[call]\nreply = "say"\n[[steps]]\ndo = "land"',
            "own.toml: reply: expected generated, a realtime model speaks for itself",
        ),
        ('[[steps]]\ndo = "verdict"', "own.toml: options.interruption_model: expected true"),
    ],
)
def test_a_wrong_file_is_one_line_with_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(written(tmp_path, text))
    message = str(caught.value)
    assert said in message
    assert "\n" not in message


def test_steps_that_need_nothing_else_may_be_named_in_one_line(tmp_path: Path) -> None:
    scenario = load(written(tmp_path, 'steps = ["land", {do = "speak", ms = 600}, "hush"]'))
    assert scenario.steps == steps("land", Step("speak", ms=600), "hush")


def test_a_file_is_all_a_scenario_of_the_catalogue_needs(tmp_path: Path) -> None:
    for name in ("zealous", "programmatic", "absent", "barge-in"):
        (tmp_path / f"{name}.toml").write_text('steps = ["land"]', encoding="utf-8")
    # Those that are known keep their order, what is new comes after them.
    assert [*found_in(tmp_path)] == ["barge-in", "programmatic", "absent", "zealous"]


def test_what_makes_a_call_needs_nothing_beside_numpy_and_livekit() -> None:
    """It runs in environments of others, where what checks files is not installed."""
    code = (
        "import sys\n"
        "missing = ['msgspec', 'tomllib', 'tomli', 'click', 'rich', 'filelock', 'jinja2']\n"
        "sys.modules.update(dict.fromkeys(missing))\n"
        "from probe.scenarios.runner import serve\n"
        "import probe.scenarios.__main__, probe.scenarios.call\n"
        "from probe.testing import ReferenceAudioOutput\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"missing\.toml: expected a scenario file"):
        load(tmp_path / "missing.toml")


def test_a_barge_in_by_the_model_does_not_land_before_the_first_frame() -> None:
    with pytest.raises(ScenarioError, match="barge-in-model: the barge-in can't land before"):
        CATALOGUE["barge-in-model"].with_axes(Axes(at="before-first-frame"))


@pytest.mark.parametrize("scenario", CATALOGUE.values(), ids=lambda scenario: scenario.name)
def test_what_steps_and_options_imply_is_required(scenario: Scenario) -> None:
    judged = any(step.do == "verdict" for step in scenario.steps)
    assert ("interruption-model" in scenario.required) == judged
    paused = any(step.do == "await-paused" for step in scenario.steps)
    assert ("pause" in scenario.required) == paused


def test_there_is_an_act_for_every_step() -> None:
    pytest.importorskip("livekit.agents", reason="livekit-agents is not installed")
    from probe.scenarios.acts import ACTS

    assert {*ACTS} == {*STEPS}


def test_describing_a_call_does_not_load_livekit() -> None:
    code = "import sys, probe.scenarios; sys.exit('livekit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
