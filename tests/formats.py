"""Calls of every kind that a report has to show, and readable dumps of what is no text."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from probe.trace.events import Event, RunSent
from reports import Analysis, analyze
from reports.account.source import ledger_of
from reports.compare import Comparison
from reports.show.wording import shown
from reports.timeline import Timeline, lay_out
from tests.findings_calls import clean_call
from tests.html_calls import clean, hostile_trace, leaking, swallowing
from tests.realtime_traces import Provider
from tests.report_traces import header, write
from tests.test_compare import Builds

__all__ = ["CALLS", "Call", "compact", "comparison", "page_text", "parquet_dump", "perfetto_dump"]


@dataclass(frozen=True)
class Call:
    """What a report is made of."""

    analyses: Sequence[Analysis]
    timelines: Sequence[Timeline]


def _read(path: Path) -> Call:
    """As if the trace lay in a folder of calls, wherever it was written."""
    ledger = ledger_of(path)
    return Call([_moved(analyze(ledger), path.parent.name)], [lay_out(ledger)])


def _moved(analysis: Analysis, folder: str) -> Analysis:
    name = Path(analysis.trace.path).name
    return replace(analysis, trace=replace(analysis.trace, path=f"calls/{folder}/{name}"))


def _of(*events: Event, **options: Any) -> Callable[[Path], Call]:
    return lambda folder: _read(write(folder / "call.jsonl", list(events), **options))


def _cut(folder: Path) -> Call:
    """Killed in the middle of a line."""
    path = write(folder / "call.jsonl", leaking(), trailer=False)
    path.write_text(path.read_text(encoding="utf-8")[:-40], encoding="utf-8")
    return _read(path)


def _unbalanced(folder: Path) -> Call:
    """A run in the middle is missing, and the trace says nothing of a fault."""
    events = leaking()
    lost = [event for event in events if isinstance(event, RunSent)][1]
    return _read(write(folder / "call.jsonl", [e for e in events if e is not lost]))


def _untapped(folder: Path) -> Call:
    """Nobody read the wire."""

    def is_of_the_wire(event: Event) -> bool:
        return event.NAME in ("sent", "inserted") or getattr(event, "boundary", "") == "sent"

    events = [event for event in leaking() if not is_of_the_wire(event)]
    head = header(boundaries=["captured", "pushed"], missing={"sent": "no track was published"})
    return _read(write(folder / "call.jsonl", events, head=head))


def _ghost(folder: Path) -> Call:
    """Of two messages one is cut; the other is never played, and stays on the server."""
    provider = Provider()
    provider.server["hello"] = "user"
    provider.remember("hello", "user")
    provider.respond()
    provider.create("m1")
    provider.pull("m1")
    provider.opens("m1")
    provider.generate("m1", 12_000)
    provider.play("m1", 7200)
    provider.sim.tick(20)
    provider.create("m2")
    provider.interrupt()
    provider.sim.clear()
    provider.sim.tick(3)
    provider.generate("m2", 2400)
    provider.end()
    provider.cancel()
    provider.truncate("m1", 200)
    provider.remember("m1")
    provider.done()
    return _read(write(folder / "call.jsonl", provider.finish()))


def _hostile(folder: Path) -> Call:
    return _read(hostile_trace(folder / "call.jsonl"))


def _several(folder: Path) -> Call:
    """Three calls in files of one name, and one that was cut."""
    calls = []
    for name, make in (("quiet", clean), ("swallowed", swallowing), ("leaky", leaking)):
        (folder / name).mkdir()
        calls.append(_read(write(folder / name / "call.jsonl", make())))
    (folder / "cut").mkdir()
    calls.append(_cut(folder / "cut"))
    return Call(
        [analysis for call in calls for analysis in call.analyses],
        [timeline for call in calls for timeline in call.timelines],
    )


CALLS: Mapping[str, Callable[[Path], Call]] = {
    "empty": _of(),
    "clean": _of(*clean(), head=header(labels={"job": "j-1"})),
    "leaking": _of(*leaking()),
    "swallowing": _of(*swallowing()),
    "cut": _cut,
    "unbalanced": _unbalanced,
    "untapped": _untapped,
    "realtime": _ghost,
    "hostile": _hostile,
    "several": _several,
}
"""By name; each makes its trace in a folder of its own."""


def comparison(folder: Path) -> Comparison:
    """Two builds that differ in one call, and a run of the second that is no result."""
    builds = Builds(folder)
    builds.leaks("livekit-agents==1.6.5", 40, 50, 60, 50, 40, 60)
    builds.leaks("livekit-agents==1.8.9", 160, 200, 180, 170, 190, 200)
    builds.fails("livekit-agents==1.8.9", "the session never started")
    quiet = {"scenario": "no-barge-in", "pacing": "burst", "frame_ms": 20.0}
    for build in ("livekit-agents==1.6.5", "livekit-agents==1.8.9"):
        for _ in range(6):
            builds.add(build, clean_call(), run=quiet)
    for build, results in builds.runs.items():
        builds.runs[build] = [
            replace(result, analysis=result.analysis and _moved(result.analysis, build))
            for result in results
        ]
    return builds.compared()


# --- Dumps ---------------------------------------------------------------------------------------


def compact(value: Any, indent: str = "", width: int = 100) -> str:
    """JSON with what fits into a line on one line."""
    flat = json.dumps(value)
    if len(indent) + len(flat) <= width or not isinstance(value, (dict, list)) or not value:
        return flat
    inner = indent + " "
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(k)}: {compact(v, inner, width)}" for k, v in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + compact(v, inner, width) for v in value) + f"\n{indent}]"


class _PageText(HTMLParser):
    """The text of a page, a line for each block or row."""

    BLOCKS = frozenset(
        {"body", "canvas", "details", "div", "dl", "dt", "footer", "h1", "h2", "h3", "h4"}
        | {"header", "li", "main", "ol", "output", "p", "section", "summary", "table", "tbody"}
        | {"thead", "title", "tr", "ul"}
    )
    CELLS = frozenset({"td", "th", "dd"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines: list[str] = [""]
        self._hidden = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self._hidden = tag
        elif tag in self.BLOCKS:
            self.lines.append("#" * int(tag[1]) + " " if tag in ("h1", "h2", "h3", "h4") else "")
        elif tag in self.CELLS:
            self.lines[-1] += " | " if self.lines[-1] else ""
        elif dict(attrs).get("class") == "small" or tag == "br":
            self.lines[-1] += " "

    def handle_endtag(self, tag: str) -> None:
        if tag == self._hidden:
            self._hidden = ""
        elif tag in self.BLOCKS:
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.lines[-1] += data


def page_text(page: str) -> str:
    """What a page says, without its style, script and picture."""
    lines = (" ".join(line.split()) for line in _PageText(page).lines)
    return "\n".join(line for line in lines if line and line.strip("# |")) + "\n"


def parquet_dump(data: bytes) -> str:
    """Every column of a Parquet file as it is read back: name, type and values."""
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(data))
    lines = [f"{table.num_rows} rows"]
    for field in table.schema:
        values = table.column(field.name).to_pylist()
        lines.append(f"{field.name}: {field.type} {json.dumps(values)}")
    return "\n".join(lines) + "\n"


def perfetto_dump(data: bytes) -> str:
    """The tracks of a Perfetto file in their order, and what lies on each, in microseconds."""
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = protos.Trace.FromString(data)
    names: dict[int, str] = {}
    told: dict[int, list[str]] = {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            unit = f" ({track.counter.unit_name})" if track.HasField("counter") else ""
            names[track.uuid] = track.name + unit
            told[track.uuid] = []
        else:
            told[packet.track_event.track_uuid] += _event(protos, packet)
    lines = []
    for uuid, name in names.items():
        lines += [f"{uuid} {name}", *(f"  {line}" for line in told[uuid])]
    return "\n".join(lines) + "\n"


def _event(protos: Any, packet: Any) -> Iterator[str]:
    event = packet.track_event
    at = f"{packet.timestamp / 1000:12.1f}"
    kinds = protos.TrackEvent
    if event.type == kinds.TYPE_COUNTER:
        yield f"{at} = {event.double_counter_value:g}"
        return
    mark = {kinds.TYPE_SLICE_BEGIN: "[", kinds.TYPE_SLICE_END: "]", kinds.TYPE_INSTANT: "!"}
    notes = [f"{n.name}={_value(n)}" for n in event.debug_annotations]
    yield " ".join([at, mark[event.type], event.name, *notes]).rstrip()


def _value(note: Any) -> object:
    value = getattr(note, note.WhichOneof("value"))
    return shown(value) if isinstance(value, str) else value
