"""Cases of the corpus, and the events that the two assemblers make of them.

A case holds raw records, in the order they were made, and the events they must give. Times are
milliseconds. Of a call that was simulated it says too what truly happened. A record is one of

``{"event": {…}}``            an event of the trace, handed through
``{"capture": audio}``        a frame entered the sink; ``speech``
``{"mark": name}``            ``speech``, ``sink``
``{"push": audio}``           a frame was handed to a source; ``open``: whether that was
``{"clear": source}``         the queue of a source was cleared
``{"blocks": audio}``         blocks were read back
``{"end": call}``             the call that was given this name has ended

with ``at``, and of a call that has ended by then ``ended``, ``as`` (`returned` unless said) and
``error``; one that ends later has a ``call`` of its own. ``source`` is 1, ``channels`` 1 and
``rate`` that of the case unless said. Between records an assembler is asked every 50 ms what is
due. Where the case is ``batched``, it sees the records of 50 ms at once, as a recorder's thread
does: what ended meanwhile has ended.
"""

from __future__ import annotations

import difflib
import json
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from probe.assemble.assembler import Assembler
from probe.taps import calls
from probe.taps.calls import Call
from probe.taps.failures import Failure
from probe.trace.events import EVENTS
from probe.trace.writer import encode
from tests.conformance.content import data_of

Case = dict[str, Any]
Record = dict[str, Any]
Found = dict[str, Any]

HERE = Path(__file__).resolve().parent
TICK_MS = 50


def corpus() -> Iterator[Case]:
    """Every case, with its name."""
    for path in sorted(HERE.glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8")):
            yield {**case, "name": f"{path.stem}: {case['name']}"}


def _ns(ms: float) -> int:
    return round(ms * 1e6)


def _raw(case: Case, record: Record) -> Any:
    """The record as the taps make it."""
    if "event" in record:
        told = {**record["event"]}
        return EVENTS[told.pop("event")](**told)
    at_ns = _ns(record["at"])
    kind = next(name for name in ("capture", "mark", "push", "clear", "blocks") if name in record)
    call: Call = [kind, at_ns, None, None]
    if kind in ("capture", "push", "blocks"):
        channels = record.get("channels", 1)
        data = data_of(record[kind])
        samples = len(data) // 2 // channels
        call.append(
            SimpleNamespace(
                data=data,
                sample_rate=record.get("rate", case["rate"]),
                num_channels=channels,
                samples_per_channel=samples,
            )
        )
    if kind == "capture":
        call[calls.AT] = at_ns / 1e9
        call.append(record.get("speech"))
    elif kind == "mark":
        call += [record["mark"], record.get("speech"), record.get("sink")]
    elif kind == "clear":
        call.append(record["clear"])
    else:
        call += [record.get("source", 1), record.get("open", True)][: 2 if kind == "push" else 1]
    if "ended" in record:
        _end(call, record["ended"], record)
    return call


def _end(call: Call, at_ms: float, record: Record) -> None:
    end = record.get("as", "returned")
    if end != "returned":
        call[calls.FAILURE] = Failure(end, record.get("error"), record.get("detail"))
    ended_ns = _ns(at_ms)
    call[calls.ENDED] = ended_ns / 1e9 if call[calls.KIND] == calls.CAPTURE else ended_ns


def in_python(case: Case) -> list[Found]:
    """The events of a case, made by the assembler of Python."""
    assembler = Assembler()
    running: dict[str, Call] = {}
    waiting: list[Any] = []
    events: list[Any] = []
    due = TICK_MS

    def accept() -> None:
        for raw in waiting:
            events.extend(assembler.accept(raw))
        waiting.clear()

    for record in case["records"]:
        while record["at"] >= due:
            accept()
            events.extend(assembler.tick(_ns(due)))
            due += TICK_MS
        if "end" in record:
            _end(running.pop(record["end"]), record["at"], record)
            continue
        raw = _raw(case, record)
        if "call" in record:
            running[record["call"]] = raw
        waiting.append(raw)
        if not case.get("batched"):
            accept()
    accept()
    events.extend(assembler.finish(_ns(case["finish"])))
    return [cast(Found, json.loads(encode(event))) for event in events]


class Node:
    """The assembler of Node, in a process of its own; a line in, a line out."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["node", str(HERE / "run.mjs")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def __call__(self, case: Case) -> list[Found]:
        """The events of a case."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "failed" not in answer, answer["failed"]
        return cast("list[Found]", answer["events"])

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()


# --- What two runtimes have to agree on ----------------------------------------------------------

FOLLOW_UPS = {"capture_ended": "captured", "push_ended": "pushed", "push_matched": "pushed"}
NUMBERS = {"captured": "frame", "pushed": "push"}
HANDED_THROUGH = {"tapped", "untapped", "source_closed"}
STAMPS = ("at_ns", "until_ns")
RESOLUTION_NS = 10_000_000
"""How far the two may stamp what left a source apart: each smooths out late readings in its way."""


def told(events: Iterable[Found]) -> list[Found]:
    """What events say, whenever it was written and however it was cut up: each call with its end
    and its origin, each source's audio in whole runs; what is of one kind in its own order."""
    found: list[Found] = []
    earlier: dict[tuple[str, int], Found] = {}
    runs: dict[int, Found] = {}
    for event in events:
        event = {key: value for key, value in event.items() if value is not None}
        kind = event["event"]
        if kind in FOLLOW_UPS:
            of = FOLLOW_UPS[kind]
            _follow_up(earlier[of, event[NUMBERS[of]]], event)
            continue
        if kind in HANDED_THROUGH:
            continue
        if kind in ("sent", "inserted"):
            run = runs.get(event["source"])
            if run is not None and _goes_on(run, event):
                _extend(run, event)
                continue
            runs[event["source"]] = event
        elif kind in NUMBERS:
            earlier[kind, event[NUMBERS[kind]]] = event
        elif kind == "fault":
            event = {key: event[key] for key in ("event", "kind", "count")}
        found.append(event)
    for event in found:
        if "captured" in event:
            event["captured"] = _whole(event["captured"])
    return sorted(found, key=_place)


def _place(event: Found) -> tuple[str, int]:
    kind = event["event"]
    if kind in ("sent", "inserted"):
        return "sent", event["source"]
    return kind, event[NUMBERS[kind]] if kind in NUMBERS else 0


def _follow_up(earlier: Found, event: Found) -> None:
    more = {key: value for key, value in event.items() if key not in ("event", "frame", "push")}
    at_ns = more.pop("at_ns")
    if event["event"] != "push_matched":
        more["ended_ns"] = at_ns
    earlier.update(more)


def _goes_on(run: Found, event: Found) -> bool:
    start = run.get("start_sample")
    expected = None if start is None else start + run["samples"]
    near = event["at_ns"] - run["until_ns"] < RESOLUTION_NS
    return bool(run["event"] == event["event"] and expected == event.get("start_sample") and near)


def _extend(run: Found, event: Found) -> None:
    run["samples"] += event["samples"]
    run["until_ns"] = event["until_ns"]
    doubt = run.get("ambiguous_samples", 0) + event.get("ambiguous_samples", 0)
    if doubt:
        run["ambiguous_samples"] = doubt


def _whole(parts: list[list[Any]]) -> list[list[Any]]:
    """Ranges that go on from one to the next as one."""
    whole: list[list[Any]] = []
    for start, samples in parts:
        if whole:
            before, length = whole[-1]
            if start == (None if before is None else before + length):
                whole[-1][1] += samples
                continue
        whole.append([start, samples])
    return whole


def differences(expected: list[Found], found: list[Found], late_ms: float = 0) -> list[str]:
    """Where what was told differs, a line each.

    Args:
        late_ms: how late the first readings of the call came, which neither can know.
    """
    allowed_ns = RESOLUTION_NS + _ns(late_ms)
    if len(expected) != len(found):
        lines = [json.dumps(event, sort_keys=True) for event in expected]
        others = [json.dumps(event, sort_keys=True) for event in found]
        return list(difflib.unified_diff(lines, others, "expected", "found", lineterm="", n=0))
    return [
        f"expected {one}, found {other}"
        for one, other in zip(expected, found, strict=True)
        if not _is_same(one, other, allowed_ns)
    ]


def _is_same(one: Found, other: Found, allowed_ns: int) -> bool:
    if one["event"] in ("sent", "inserted") and one["event"] == other["event"]:
        if any(abs(one[stamp] - other[stamp]) > allowed_ns for stamp in STAMPS):
            return False
        other = {**other, **{stamp: one[stamp] for stamp in STAMPS}}
    return one == other
