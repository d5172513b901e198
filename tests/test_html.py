"""The HTML report: one file, whole in itself, in which nothing from a trace is markup or script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probe.cli.main import main
from probe.trace.events import Event, RunSent, SpeechDone
from probe.trace.reader import read_trace
from reports import analyze
from reports.results import Analysis
from reports.show import html
from reports.show.wording import shown
from reports.timeline import Frames, Timeline, lay_out
from reports.units import time_ms
from tests.html_calls import (
    HOSTILE,
    HOSTILE_SHOWN,
    clean,
    hostile_trace,
    leaking,
    page,
    read,
    swallowing,
    with_a_model,
)
from tests.report_traces import MS, write, write_hour
from tests.test_terminal_report import came_late


class Markup(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.told: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag
        if tag not in ("bdi", "b", "span"):
            self.told.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        texts = {"script": self.scripts, "style": self.styles}.get(self.inside, self.told)
        texts.append(data)

    def tags(self, name: str) -> list[dict[str, str | None]]:
        return [attrs for tag, attrs in self.elements if tag == name]

    @property
    def text(self) -> str:
        return " ".join("".join(self.told).split())


def markup(path: Path) -> Markup:
    return Markup(path.read_text(encoding="utf-8"))


def rendered(analysis: Analysis, timeline: Timeline) -> Markup:
    return Markup(html.render([analysis], [timeline]))


def drawn(page: Markup, number: int = 0) -> dict[str, Any]:
    """What the script of a page draws from."""
    scripts = [attrs.get("id") for attrs in page.tags("script")]
    packed = page.scripts[scripts.index(f"call-{number}")]
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return data


# --- One file, and nothing in it but itself ------------------------------------------------------


def test_a_page_fetches_nothing_and_forbids_the_rest(tmp_path: Path) -> None:
    found = markup(page(tmp_path, leaking()))
    for _, attrs in found.elements:
        assert not {"src", "srcset", "data", "action", "background", "poster"} & set(attrs)
        assert (attrs.get("href") or "#").startswith("#")
        assert "style" not in attrs
        assert not [name for name in attrs if name.startswith("on")]
    (style,) = found.styles
    assert "url(" not in style
    assert "@import" not in style
    (policy,) = [a["content"] or "" for a in found.tags("meta") if "http-equiv" in a]
    script = found.scripts[-1]
    for kind, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_nothing_from_a_trace_is_markup(tmp_path: Path) -> None:
    """The elements of a page are the same, whatever the names in a trace are."""
    analysis, timeline = read(hostile_trace(tmp_path / "call.jsonl"))
    found = rendered(analysis, timeline)
    tame = json.dumps(HOSTILE)[1:-1]
    lines = (tmp_path / "call.jsonl").read_text(encoding="utf-8")
    (tmp_path / "call.jsonl").write_text(lines.replace(tame, "tame"), encoding="utf-8")
    same = rendered(*read(tmp_path / "call.jsonl"))
    assert [tag for tag, _ in found.elements] == [tag for tag, _ in same.elements]
    assert not found.tags("img")
    assert len(found.tags("script")) == 3


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    """Markup as text; what would be invisible, or would turn the line around, spelled out."""
    found = rendered(*read(hostile_trace(tmp_path / "call.jsonl")))
    assert f"label {HOSTILE_SHOWN}" in found.text
    assert f"bookmark: {HOSTILE_SHOWN}" in found.text
    assert f"fault of the probe: write_slow, 1x, first at 320.0 ms {HOSTILE_SHOWN}" in found.text
    assert f"{HOSTILE_SHOWN}s1" in found.text
    text = html.render(*([one] for one in read(tmp_path / "call.jsonl")))
    assert not set(text) & {"\x07", "\u202e", "\0"}
    data = drawn(found)
    assert data["segments"][0]["speech"] == f"{HOSTILE_SHOWN}s1"
    assert any(HOSTILE_SHOWN in mark["text"] for mark in data["lanes"]["marks"])


# --- What it says --------------------------------------------------------------------------------


def test_the_key_figure_comes_first(tmp_path: Path) -> None:
    text = markup(page(tmp_path, leaking())).text
    assert "200.0 ms leaked after the verdict (200.0 ms (4800 samples) sent, 0.0 ms" in text
    assert text.index("leaked after the verdict") < text.index("Findings")
    assert text.index("Findings") < text.index("Where every sample went (balances)")
    for words in (
        "leak-after-verdict",
        "queue-played-on",
        "pause: the gate is closed = the verdict",
        "counted at captured, pushed, sent ±10 ms",
        "livekit-agents 1.8.9, livekit 1.1.21",
    ):
        assert words in text


def test_swallowed_audio_is_a_figure_of_its_own(tmp_path: Path) -> None:
    found = markup(page(tmp_path, swallowing()))
    assert "200.0 ms swallowed: lost, and nobody had interrupted" in found.text
    (lost,) = drawn(found)["lanes"]["lost"]
    assert lost["kind"] == "swallowed"
    assert lost["label"] == "200.0 ms swallowed"
    assert "200.0 ms (4800 samples)" in lost["text"]


def test_the_red_spans_are_those_of_the_analysis(tmp_path: Path) -> None:
    analysis, timeline = read(write(tmp_path / "call.jsonl", leaking()))
    leak = (analysis.barge_ins[0].leaked or {})["sent"]
    assert leak is not None
    spans = drawn(rendered(analysis, timeline))["lanes"]["leaks"]
    assert [(s["from"], s["to"], s["lane"]) for s in spans] == [
        (round(time_ms(span.start_ns) * 1000), round(time_ms(span.stop_ns) * 1000), "sent")
        for span in leak.spans
    ]
    assert spans[0]["label"] == "200.0 ms leaked"


def test_a_finding_leads_to_its_moment(tmp_path: Path) -> None:
    analysis, timeline = read(write(tmp_path / "call.jsonl", leaking()))
    found = rendered(analysis, timeline)
    moments = analysis.findings[0].evidence.moments
    buttons = [a for a in found.tags("button") if "data-goto" in a]
    begins = {a["data-from"] for a in buttons}
    assert {str(round(time_ms(moment.at_ns) * 1000)) for moment in moments} <= begins


def cut(folder: Path) -> tuple[Analysis, Timeline]:
    path = write(folder / "call.jsonl", leaking(), trailer=False)
    path.write_text(path.read_text()[:-40])
    return read(path)


def unbalanced(folder: Path) -> tuple[Analysis, Timeline]:
    events = [e for e in clean() if not (isinstance(e, RunSent) and e.start_sample)]
    return read(write(folder / "call.jsonl", events))


def untapped(folder: Path) -> tuple[Analysis, Timeline]:
    def is_of_the_wire(event: Event) -> bool:
        return event.NAME in ("sent", "inserted") or getattr(event, "boundary", "") == "sent"

    events = [e for e in leaking() if not is_of_the_wire(e)]
    return read(write(folder / "call.jsonl", events))


def realtime(folder: Path) -> tuple[Analysis, Timeline]:
    analysis, timeline = read(write(folder / "call.jsonl", leaking()))
    return with_a_model(analysis), timeline


def of(*events: Event) -> Any:
    return lambda folder: read(write(folder / "call.jsonl", list(events)))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (of(), "no barge-in in this trace"),
        (of(*clean()), "Nothing that the rules look for was found."),
        (of(*came_late()), "segment 1 was under way when the probe came"),
        (cut, "INCOMPLETE TRACE: no balance can be given"),
        (unbalanced, "DOES NOT BALANCE"),
        (untapped, "sent (never tapped)"),
        (realtime, "server only"),
    ],
    ids=["empty", "clean", "partial", "cut", "unbalanced", "untapped", "realtime"],
)
def test_every_kind_of_call_is_told(tmp_path: Path, make: Any, words: str) -> None:
    found = rendered(*make(tmp_path))
    assert words in found.text
    assert "None" not in found.text
    assert "nan" not in found.text.split()
    assert "duration" in drawn(found)


def test_a_boundary_that_was_not_tapped_is_no_zero(tmp_path: Path) -> None:
    analysis, timeline = untapped(tmp_path)
    found = rendered(analysis, timeline)
    assert "– leaked after the verdict (– sent, 0.0 ms (0 samples) pushed)" in found.text
    assert drawn(found)["untapped"] == ["sent", "depth"]


def test_what_makes_the_figures_doubtful_comes_before_them(tmp_path: Path) -> None:
    text = rendered(*cut(tmp_path)).text
    assert text.index("INCOMPLETE TRACE") < text.index("leaked after the verdict")


def test_several_calls_begin_with_a_table_worst_first(tmp_path: Path) -> None:
    made = [
        read(write(tmp_path / f"{name}.jsonl", make()))
        for name, make in (("quiet", clean), ("swallowed", swallowing), ("leaky", leaking))
    ]
    found = Markup(html.render([a for a, _ in made], [t for _, t in made]))
    links = [a["href"] for a in found.tags("a") if (a.get("href") or "").startswith("#call-")]
    assert links == ["#call-0-title", "#call-1-title", "#call-2-title"]
    ids = [attrs.get("id") for _, attrs in found.elements]
    assert {"call-0-title", "call-1-title", "call-2-title"} <= set(ids)
    assert [drawn(found, n)["lanes"].get("leaks") is not None for n in range(3)] == [
        True,
        False,
        False,
    ]


def test_several_barge_ins_are_listed_and_told_behind_a_click(tmp_path: Path) -> None:
    found = markup(_long_page(tmp_path, minutes=14))
    assert "Barge-ins, worst first" in found.text
    assert "and 4 more" in found.text
    assert "Every barge-in in full" in found.text
    view = drawn(found)["view"]
    assert view[0] > 59_000_000, "a long call begins at its worst barge-in"


def test_expectations_are_told(tmp_path: Path) -> None:
    trace = write(tmp_path / "call.jsonl", leaking())
    out = tmp_path / "out.html"
    arguments = ["report", str(trace), "--format", "html", "-o", str(out)]
    code = main([*arguments, "--expect", "verdict < commit", "--expect", "leaked.sent <= 20ms"])
    assert code == 3
    text = markup(out).text
    assert "holds verdict < commit" in text
    assert "fails leaked.sent <= 20ms" in text


def test_the_command_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = write(tmp_path / "call.jsonl", leaking())
    assert main(["report", str(trace), "--format", "html"]) == 0
    out = capsys.readouterr()
    assert out.err == ""
    analysis, timeline = read(trace)
    assert out.out == html.render([analysis], [timeline])


# --- Long calls ----------------------------------------------------------------------------------


def _long_page(folder: Path, minutes: int) -> Path:
    trace = write_hour(folder / "long.jsonl", minutes)
    analysis, timeline = read(trace)
    path = folder / "long.html"
    path.write_text(html.render([analysis], [timeline]), encoding="utf-8")
    return path


def _uneven(frames: Frames, spread_ns: int, seed: int) -> Frames:
    """The same lane with stamps as a live call has them: no two steps alike."""
    chance = np.random.default_rng(seed)
    late = chance.integers(0, spread_ns, len(frames))
    at = np.sort(frames.at_ns + late)
    took = chance.integers(20_000, spread_ns, len(frames))
    return replace(frames, at_ns=at, until_ns=at + took)


def test_an_hour_is_less_than_five_megabytes(tmp_path: Path) -> None:
    analysis, timeline = read(write_hour(tmp_path / "hour.jsonl"))
    (depth,) = timeline.depth
    late = np.random.default_rng(3).integers(0, 20 * MS, len(depth.at_ns))
    timeline = replace(
        timeline,
        captured=_uneven(timeline.captured, 19 * MS, 1),
        pushed=_uneven(timeline.pushed, 45 * MS, 2),
        depth=(replace(depth, at_ns=np.sort(depth.at_ns + late)),),
    )
    assert len(timeline.captured) == 180_000
    assert len(html.render([analysis], [timeline]).encode()) < 5_000_000


def test_a_call_of_very_many_segments_stays_small(tmp_path: Path) -> None:
    analysis, timeline = read(write(tmp_path / "call.jsonl", leaking()))
    many = replace(
        analysis,
        segments=tuple(replace(analysis.segments[0], index=n + 1) for n in range(5000)),
        barge_ins=analysis.barge_ins * 2000,
        findings=analysis.findings * 3000,
    )
    text = html.render([many], [timeline])
    assert len(text.encode()) < 5_000_000
    found = Markup(text)
    assert "and 2995 more" in found.text
    assert "4999 more segments" in found.text
    assert "and 4699 more (--format json)" in found.text


def test_a_page_costs_little_beside_the_analysis(tmp_path: Path) -> None:
    """Reading and analysing an hour takes 3 s, so that a page of it takes less than 5."""
    path = write_hour(tmp_path / "long.jsonl", minutes=20)
    html.render(*([one] for one in read(write(tmp_path / "warm.jsonl", clean()))))

    def measured() -> float:
        begun = time.process_time()
        trace = read_trace(path)
        analysis = analyze(trace)
        analysed = time.process_time()
        html.render([analysis], [lay_out(trace)])
        return (time.process_time() - analysed) / (analysed - begun)

    assert min(measured() for _ in range(3)) < 1


def test_the_columns_come_back_as_they_were(tmp_path: Path) -> None:
    """Decoded here as the script does it: seconds and microseconds, differences, int32."""
    analysis, timeline = read(write(tmp_path / "call.jsonl", leaking()))
    found = rendered(analysis, timeline)
    rows = drawn(found)["dense"]["captured"][0]["rows"]
    scripts = [attrs.get("id") for attrs in found.tags("script")]
    packed = zlib.decompress(base64.b64decode(found.scripts[scripts.index("columns-0")]))
    numbers = np.frombuffer(packed, "<i4").astype(np.int64)
    columns = numbers[: rows * 11].reshape(11, rows)
    at = np.cumsum(columns[0] * 1_000_000 + columns[1])
    assert at.tolist() == (timeline.captured.at_ns // 1000).tolist()
    assert np.cumsum(columns[4]).tolist() == timeline.captured.start_sample.tolist()
    assert columns[5].tolist() == timeline.captured.samples.tolist()


def test_a_call_of_weeks_keeps_its_times(tmp_path: Path) -> None:
    """Steps of more than 35 minutes are more microseconds than 32 bits hold."""
    weeks = 2_000_000 * 1000 * MS
    events = [*clean(), SpeechDone(weeks, "s9")]
    data = drawn(rendered(*read(write(tmp_path / "call.jsonl", events))))
    assert data["duration"] == weeks // 1000


def test_text_is_spelled_out_only_where_it_has_to_be() -> None:
    assert shown("Grüße, 世界 – ok") == "Grüße, 世界 – ok"
    assert shown("a\nb\u200bc") == "a\\u000ab\\u200bc"
    assert re.fullmatch(r"\\ud800", shown("\ud800"))
