"""A trace that breaks the analysis is one row that says so, and hides none of the others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reports.analysis
import reports.attempt
import reports.timeline
from probe.cli.main import main
from probe.trace.events import Bookmarked, Event, InterruptCalled, SpeechCommitted
from probe.trace.reader import read_trace
from reports import SettingError, analyze
from reports.account.ledger import Ledger
from reports.attempt import attempted
from reports.show import FORMS
from tests.report_traces import MS, Simulation, write

PLANT = "break the analysis"
SAID = "it could not be analysed, which is a fault of sinkprobe: IndexError: planted"


def call(name: str) -> list[Event]:
    simulation = Simulation()
    for _ in range(20):
        simulation.capture(480)
        simulation.tick(2)
    simulation.user(True)
    simulation.happens(InterruptCalled, "s1", by="programmatic")
    simulation.happens(SpeechCommitted, "s1")
    simulation.tick()
    simulation.clear()
    return [*simulation.end(), Bookmarked(simulation.now + MS, name)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three calls, of which the second breaks what is planted."""
    (tmp_path / "calls").mkdir()
    for name in ("alpha", "broken", "gamma"):
        write(tmp_path / "calls" / f"{name}.jsonl", call(PLANT if name == "broken" else name))
    return tmp_path / "calls"


def planted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    """Lets a step of the way fail for the trace with the bookmark."""
    step: Callable[..., Any] = getattr(module, name)

    def breaks(first: Any, *rest: Any, **given: Any) -> Any:
        ledger = getattr(first, "ledger", first)
        trace = getattr(ledger, "trace", ledger)
        if any(isinstance(e, Bookmarked) and e.name == PLANT for e in trace.events):
            raise IndexError("planted\nin two lines")
        return step(first, *rest, **given)

    monkeypatch.setattr(module, name, breaks)


STEPS: dict[str, tuple[Any, str]] = {
    "ledger": (reports.attempt, "balance"),
    "rules": (reports.analysis, "judge"),
    "timeline": (reports.timeline, "lay_out"),
}
TAKEN = [
    (step, name)
    for step in STEPS
    for name, form in FORMS.items()
    if not form.single and (step != "timeline" or "timelines" in form.takes)
]


@pytest.mark.parametrize(("step", "form"), TAKEN)
def test_the_others_of_a_folder_are_reported_whole(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    step: str,
    form: str,
) -> None:
    out = folder.parent / f"report.{form}"
    arguments = ["report", str(folder), "--format", form, "-o", str(out)]
    if form == "parquet":
        pytest.importorskip("pyarrow")
    if form in ("csv", "parquet"):
        arguments += ["--table", "segments"]
    assert main(arguments) == 0
    sound = out.read_bytes()
    capsys.readouterr()

    planted(monkeypatch, *STEPS[step])
    assert main(arguments) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"sinkprobe: {folder / 'broken.jsonl'}: {SAID} in two lines (")
    assert err.count("\n") == 1
    CHECKS[form](sound, out.read_bytes())


def plain(text: str) -> str:
    """What is to be read, in one line."""
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def texts(sound: bytes, found: bytes) -> None:
    """A place of its own for the trace that broke, and every line about the others."""
    after = plain(found.decode())
    assert "NOT ANALYSED" in after
    assert SAID in after
    for name in ("alpha", "gamma"):
        lines = [plain(line) for line in sound.decode().splitlines() if name in line]
        assert any(len(line) > 2 * len(name) for line in lines)
        assert not [line for line in lines if line not in after]


def documents(sound: bytes, found: bytes) -> None:
    before, after = json.loads(sound), json.loads(found)
    one, broken, other = after["analyses"]
    assert [one, other] == [before["analyses"][0], before["analyses"][2]]
    assert broken["balanced"] is None
    assert broken["trace"]["complete"] is False
    assert broken["segments"] == []
    assert SAID in broken["trace"]["incomplete_because"][0]
    assert [problem["kind"] for problem in broken["trace"]["problems"]] == ["unanalysed"]


def tables(sound: bytes, found: bytes) -> None:
    before, after = sound.decode().splitlines(), found.decode().splitlines()
    assert len(before) == len(after) == 4
    assert [after[0], after[1], after[3]] == [before[0], before[1], before[3]]
    assert after[2].split(",")[0].endswith("broken.jsonl")
    assert set(after[2].split(",")[3:]) == {""}


def columns(sound: bytes, found: bytes) -> None:
    import io

    from pyarrow import parquet

    before, after = (parquet.read_table(io.BytesIO(data)).to_pylist() for data in (sound, found))
    assert [after[0], after[2]] == [before[0], before[2]]
    assert after[1]["trace"].endswith("broken.jsonl")
    assert after[1]["captured.samples"] is None


CHECKS: dict[str, Callable[[bytes, bytes], None]] = {
    "terminal": texts,
    "markdown": texts,
    "html": texts,
    "json": documents,
    "csv": tables,
    "parquet": columns,
}


def test_every_form_of_several_traces_is_looked_at() -> None:
    assert set(CHECKS) == {name for name, form in FORMS.items() if not form.single}


@pytest.mark.parametrize("form", ["terminal", "markdown", "html", "json"])
def test_the_others_of_a_folder_are_compared(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    other = folder.parent / "other"
    other.mkdir()
    write(other / "d.jsonl", call("d"))
    planted(monkeypatch, *STEPS["rules"])

    assert main(["compare", str(folder), str(other), "--format", form]) == 1
    said = capsys.readouterr()
    assert said.err.count(SAID) == 1
    assert SAID in plain(said.out)
    assert "broken.jsonl" in said.out
    if form == "json":
        (table,) = json.loads(said.out)["tables"]
        first, second = (column["summary"] for column in table["columns"])
        assert (first["count"], second["count"]) == (2, 1)
        (apart,) = first["set_apart"]
        assert apart["reason"].startswith(SAID)


def test_a_setting_that_can_not_be_had_is_no_traces_fault(folder: Path) -> None:
    trace = read_trace(folder / "alpha.jsonl")

    def impossible(ledger: Ledger) -> object:
        return analyze(ledger, settings={"no-such-rule": {"ms": 1}})

    with pytest.raises(SettingError):
        attempted(trace, impossible)


def test_a_trace_that_breaks_nothing_is_worked_on_once(folder: Path) -> None:
    seen: list[Ledger] = []
    made, why = attempted(
        read_trace(folder / "alpha.jsonl"), lambda ledger: seen.append(ledger) or 5
    )
    assert (made, why) == (5, None)
    assert len(seen) == 1
