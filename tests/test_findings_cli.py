"""Thresholds, gates and the list of rules, as the command line takes and shows them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from probe.cli.main import main
from reports import analyze
from reports.findings import RULES, SettingError, parse
from reports.show import terminal
from tests.findings_calls import HandCall, barge_in, clean_call

ROOT = Path(__file__).resolve().parents[1]


def written(call: HandCall, folder: Path) -> Path:
    return Path(call.analysis(folder).trace.path)


@pytest.fixture
def leaky(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace with a leak of 50 ms, in a working directory without settings of its own."""
    monkeypatch.chdir(tmp_path)
    return written(barge_in(plays_on=50), tmp_path)


def report(*arguments: str | Path) -> int:
    return main(["report", *map(str, arguments)])


def in_force(out: str) -> dict[str, float]:
    document = json.loads(out)
    return {f"{t['rule']}.{t['name']}": t["value"] for t in document["thresholds"]}


# --- Thresholds -----------------------------------------------------------------------------------


def test_the_report_says_which_thresholds_were_in_force(
    leaky: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(leaky, "--format", "json")
    values = in_force(capsys.readouterr().out)
    assert values == {
        f"{rule.name}.{t.name}": t.default for rule in RULES.values() for t in rule.thresholds
    }
    report(leaky)
    assert "thresholds: all at their defaults" in capsys.readouterr().out


def test_a_threshold_comes_from_the_nearest_pyproject(
    leaky: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (leaky.parent / "pyproject.toml").write_text(
        "[tool.sinkprobe.rules.leak-after-verdict]\nfade-ms = 80\n"
    )
    below = leaky.parent / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    report(leaky, "--format", "json")
    document = json.loads(capsys.readouterr().out)
    assert document["findings"] == []
    assert {"rule": "leak-after-verdict", "name": "fade-ms", "value": 80, "unit": "ms",
            "default": 0} in document["thresholds"]  # fmt: skip
    report(leaky)
    out = " ".join(capsys.readouterr().out.split())
    assert "thresholds: leak-after-verdict.fade-ms = 80 ms (default 0)" in out


def test_the_command_line_goes_before_the_file(
    leaky: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (leaky.parent / "pyproject.toml").write_text(
        "[tool.sinkprobe.rules.leak-after-verdict]\nfade-ms = 80\nserious-ms = 40\n"
    )
    report(leaky, "--format", "json", "--set", "leak-after-verdict.fade-ms=5")
    document = json.loads(capsys.readouterr().out)
    assert [f["severity"] for f in document["findings"]] == ["error"]
    values = {f"{t['rule']}.{t['name']}": t["value"] for t in document["thresholds"]}
    assert values["leak-after-verdict.fade-ms"] == 5
    assert values["leak-after-verdict.serious-ms"] == 40


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.sinkprobe.rules.leak]\nfade-ms = 1", "found 'leak'"),
        ("[tool.sinkprobe.rules.leak]", "found 'leak'"),
        ("[tool.sinkprobe.rules.leak-after-verdict]\nfade = 1", "expected one of fade-ms"),
        ("[tool.sinkprobe.rules.late-frames]\ngrace-ms = 'x'", "expected a number from 0"),
        ("[tool.sinkprobe.rules.late-frames]\ngrace-ms = -1", "expected a number from 0"),
        ("[tool.sinkprobe.rules.late-frames]\ngrace-ms = true", "expected a number from 0"),
        ("[tool.sinkprobe.rules.late-frames]\ngrace-ms = inf", "expected a number from 0"),
        ("[tool.sinkprobe.rules.never-cleared]\nx = 1", "it has no thresholds"),
        ("[tool.sinkprobe]\nrule = 1", "expected only the table rules"),
        ("[tool.sinkprobe]\nrules = 1", "expected a table"),
        ("[tool]\nsinkprobe = []", "expected a table"),
        ("tool = ", "expected TOML"),
    ],
)
def test_bad_settings_are_wrong_usage_in_one_line(
    leaky: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    (leaky.parent / "pyproject.toml").write_text(text)
    assert report(leaky) == 2
    err = capsys.readouterr().err
    assert says in err
    assert "pyproject.toml" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "text", ["fade-ms=1", "leak-after-verdict.fade-ms", "leak-after-verdict.fade-ms=a", "x.y=1",
             "leak-after-verdict.fade-ms=nan", "=", ""],
)  # fmt: skip
def test_a_bad_set_is_wrong_usage(
    leaky: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert report(leaky, "--set", text) == 2
    err = capsys.readouterr().err
    assert "expected" in err
    assert err.count("\n") == 1


def test_a_pyproject_without_a_table_of_ours_changes_nothing(
    leaky: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (leaky.parent / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert report(leaky, "--format", "json") == 0
    assert len(json.loads(capsys.readouterr().out)["findings"]) == 1


def test_settings_go_into_an_analysis_by_rule_and_name(leaky: Path) -> None:
    assert analyze(leaky, settings={"leak-after-verdict": {"fade-ms": 60}}).findings == ()
    with pytest.raises(SettingError, match="expected one of"):
        analyze(leaky, settings={"leak-after-verdict": {"fade": 60}})


# --- Gates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ((), 0),
        (("info",), 3),
        (("warning",), 3),
        (("error",), 0),
        (("leak-after-verdict",), 3),
        (("late-frames",), 0),
        (("leak-after-verdict>20ms",), 3),
        (("leak-after-verdict > 0.02 s",), 3),
        (("leak-after-verdict>50ms",), 0),
        (("leak-after-verdict>1199samples",), 3),
        (("leak-after-verdict>1200samples",), 0),
        (("late-frames", "error"), 0),
        (("late-frames", "warning"), 3),
    ],
)
def test_a_gate_makes_the_exit_code(
    leaky: Path, capsys: pytest.CaptureFixture[str], gate: tuple[str, ...], code: int
) -> None:
    options = [part for text in gate for part in ("--fail-on", text)]
    assert report(leaky, *options) == code
    assert "leak-after-verdict" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fatal", "expected a severity"),
        ("leak", "expected a severity"),
        ("leak>20ms", "expected a severity"),
        ("leak-after-verdict>ms", "expected a severity"),
        ("leak-after-verdict<20ms", "expected a severity"),
        ("leak-after-verdict>20", "expected the unit ms or s or samples, found none"),
        ("leak-after-verdict>20frames", "found 'frames'"),
        ("gap-in-speech>20samples", "expected the unit ms or s"),
        ("extra-finish>1ms", "expected the unit a plain number"),
        ("swallowed-reply>20ms", "expected the unit %"),
        ("", "expected a severity"),
    ],
)
def test_a_bad_gate_says_what_was_expected(
    leaky: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    assert report(leaky, "--fail-on", text) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


def test_every_rule_can_be_gated_by_its_figure(leaky: Path) -> None:
    for rule in RULES.values():
        unit = "" if rule.unit == "count" else rule.unit
        gate = parse(f"{rule.name}>1.5{unit}")
        above = 1_500_000 if rule.unit == "ms" else 1.5
        assert gate.above is not None
        assert (gate.rule, gate.above.figure) == (rule.name, above)


def test_a_gate_on_a_rule_that_could_not_be_judged_is_not_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call = barge_in(plays_on=50).without("sent", "inserted")
    call.events = [e for e in call.events if getattr(e, "boundary", "") != "sent"]
    trace = written(call, tmp_path)
    assert report(trace, "--fail-on", "leak-after-verdict>20ms") == 1
    assert "not judged, sent was not tapped" in capsys.readouterr().err
    assert report(trace, "--fail-on", "error") == 0


# --- The reports ----------------------------------------------------------------------------------


def test_the_terminal_shows_findings_after_the_key_lines(
    leaky: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(leaky)
    out = capsys.readouterr().out
    assert out.index("leaked after") < out.index("Findings: 1 warning") < out.index("In order")
    text = " ".join(out.split())
    assert "WARNING leak-after-verdict, segment 1 50.0 ms (1200 samples)" in text
    assert text.count(" cause:") == 1
    assert "remedy: Clear the source's queue" in text


def test_json_carries_the_evidence(leaky: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(leaky, "--format", "json")
    document = json.loads(capsys.readouterr().out)
    finding = document["findings"][0]
    assert set(finding) == {
        "rule", "severity", "segment", "message", "evidence", "cause", "remedy",
    }  # fmt: skip
    assert set(finding["evidence"]) == {
        "figure", "samples", "parts", "ranges", "moments", "stalls", "facts",
    }  # fmt: skip
    assert finding["evidence"]["figure"] == {"value": 50.0, "unit": "ms"}
    assert document["not_judged"] == []
    assert document["summary"]["findings"] == {"leak-after-verdict": 1}


def test_several_traces_count_findings_by_rule(
    leaky: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(barge_in(plays_on=90), leaky.parent)
    written(clean_call(), leaky.parent)
    report(leaky.parent)
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.strip().startswith("leak-after-verdict"))
    assert row.split() == ["leak-after-verdict", "2", "in", "2", "of", "3", "traces,", "warning"]


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("colour", [False, True])
def test_no_line_of_the_findings_is_wider_than_the_terminal(
    tmp_path: Path, width: int, colour: bool
) -> None:
    call = barge_in(plays_on=90).stalled(150, 100)
    call.created(990, "s2").capture(991, 300, "s2").push(992, 300).mark(993, "flush", "s2")
    call.send(1000, 50).cleared(1050.5).lose(250).finished(1052, 50, "s2").done(1305, "s2")
    analysis = call.analysis(tmp_path, settings={"late-frames": {"grace-ms": 2}})
    for shown in ([analysis], [analysis, analysis]):
        for line in terminal.render(shown, width=width, colour=colour).splitlines():
            assert len(re.sub(r"\x1b\[[0-9;]*m", "", line)) <= width, line


# --- sinkprobe rules ------------------------------------------------------------------------------


def test_the_list_of_rules_is_readable_at_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["rules"]) == 0
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 80
    for rule in RULES.values():
        assert f"{rule.name}  ({rule.severity})" in out
        assert " ".join(rule.remedy.split()) in " ".join(out.split())


def test_the_list_of_rules_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["rules"]
    assert [entry["rule"] for entry in listed] == list(RULES)
    for entry in listed:
        assert all(entry[key] for key in ("severity", "looks_for", "cause", "remedy", "figure"))


def test_the_list_of_rules_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--markdown"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 2 + len(RULES)
    assert all(row.count("|") == 6 for row in rows)


def test_one_rule_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "late-frames"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("late-frames  (error, warning where none was sent)")
    assert "swallowed" not in out
    assert main(["rules", "late"]) == 2


# --- The rules themselves -------------------------------------------------------------------------


def test_each_rule_lives_in_a_file_of_its_name() -> None:
    folder = ROOT / "reports" / "findings"
    for name in RULES:
        assert (folder / f"{name.replace('-', '_')}.py").is_file()


def test_rules_and_thresholds_are_named_in_kebab_case() -> None:
    kebab = re.compile(r"[a-z]+(-[a-z]+)*")
    for rule in RULES.values():
        assert kebab.fullmatch(rule.name)
        for threshold in rule.thresholds:
            assert kebab.fullmatch(threshold.name)
            assert threshold.name.endswith({"ms": "-ms", "%": "-percent"}[threshold.unit])
