"""A whole call that knows the truth: a sink over sources, and what is read back of them.

It makes the raw records that the taps would have made (as `tests.conformance.run` has them), and
says of every value pushed where it was captured, of every value sent where it was pushed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.call_audio import Range, Row, Span, cut, length, ranges
from tests.call_queue import Journal, QueueModel
from tests.conformance.content import Audio, Piece
from tests.conformance.run import Case, Record

STEP_US = 1_000
HABITS = ("softer", "louder", "fade", "dither", "add", "skip", "repeat")


class CallModel:
    """One call, told step by step.

    Args:
        chunk: samples a sink hands on at a time; None: as they were captured.
        every_tick: whether a source yields a block with every tick.
        queue_ms: how much a source holds. A longer frame goes in piece by piece.
        batched: whether an assembler sees the records of 50 ms at once.
        inherited: values the first source holds when the probe comes, the agent being mid-speech.
    """

    def __init__(
        self,
        *,
        chunk: int | None = None,
        every_tick: bool = True,
        rate: int = 24_000,
        channels: int = 1,
        queue_ms: int = 200,
        batched: bool = False,
        inherited: int = 0,
    ) -> None:
        self.journal = Journal()
        self.origins: dict[int, list[Range]] = {}
        self.refused: list[int] = []
        self.captured = self.pushed = 0
        self.paused = False
        self.habit: str | None = None
        """What the sink does to what is captured now: `HABITS`."""
        self._batched = batched
        self._rate, self._channels = rate, channels
        self._chunk = None if chunk is None else chunk * channels
        self._queue_ms = queue_ms
        self._stereo: Record = {} if channels == 1 else {"channels": channels}
        self._queue = {
            "block": rate // 100 * channels,
            "capacity": queue_ms * rate // 1000 * channels,
            "every_tick": every_tick,
            "about": self._stereo,
        }
        self._seed = 0
        self._made: list[Piece] = []
        self._buffer = Row()
        self._ready: list[list[Span]] = []
        self._capture: str | None = None
        self._sources: list[QueueModel] = []
        self.swap(mid_speech=inherited > 0)
        if inherited:
            self._source.inside.spans.append(Span(["noise", 0, 0, inherited]))

    @property
    def _source(self) -> QueueModel:
        return self._sources[-1]

    # --- what happens -------------------------------------------------------------------------

    def swap(self, *, mid_speech: bool = False) -> None:
        """The sink pushes to another source from now on; the old one plays on."""
        number = len(self._sources) + 1
        self._sources.append(QueueModel(self.journal, number, **self._queue))
        about = {"source": number, "rate_hz": self._rate, "channels": self._channels}
        if mid_speech:
            about["mid_speech"] = True
        block = {"block_samples": self._rate // 100, "grouped": self._queue["every_tick"]}
        self.journal.tapped({"boundary": "pushed", **about, "queue_ms": self._queue_ms})
        self.journal.tapped({"boundary": "sent", **about, **block})

    def content(self, kind: str, samples: int) -> Audio:
        """New audio of a kind: noise, quiet, silence, constant, or what was made before."""
        values = samples * self._channels
        if kind == "silence":
            return [["silence", values]]
        if kind == "constant":
            return [["constant", 1234, values]]
        if kind == "again" and self._made:
            again = self._made[-1]
            return [cut(again, 0, min(values, length(again)))]
        self._seed += 1
        self._made.append(["quiet" if kind == "quiet" else "noise", self._seed, 0, values])
        return [self._made[-1]]

    def capture(self, audio: Audio) -> None:
        """A frame enters the sink, once the one before it is through."""
        self._wait(lambda: self._capture is None)
        name = self.journal.begin({"capture": audio, **self._stereo})
        spans = []
        for piece in audio:
            spans.append(Span(piece, self.captured))
            self.captured += length(piece)
        self._capture = name
        if not self.paused:
            self._buffer.spans += self._treated(spans)
            chunk = self._chunk or self._buffer.values
            while chunk and self._buffer.values >= chunk:
                self._ready.append(self._buffer.take(chunk))
        self._pump()

    def flush(self) -> None:
        """What is left in the sink's buffer is handed on."""
        self._wait(lambda: self._capture is None)
        self.journal.note({"mark": "flush"})
        if self._buffer.values:
            self._ready.append(self._buffer.take(self._buffer.values))
        self._pump()

    def foreign(self, audio: Audio) -> None:
        """The sink hands on audio of its own."""
        self._wait(lambda: self._capture is None)
        self._ready.append([Span(piece) for piece in audio])
        self._pump()

    def pause(self) -> None:
        """The gate closes, or opens again; what is captured meanwhile is dropped."""
        self.paused = not self.paused
        self.journal.note({"mark": "pause" if self.paused else "resume"})

    def clear(self, leaked: int = 0) -> None:
        """The sink is cleared, and its source; ``leaked`` chunks are handed on all the same."""
        self.journal.note({"mark": "clear"})
        self._source.clear()
        self._buffer.spans.clear()
        del self._ready[leaked:]
        self._pump()

    def refuse(self, audio: Audio, *, rate: int | None = None) -> None:
        """Another task of the sink hands a frame over, at another rate or while one waits."""
        spans = [Span(piece) for piece in audio]
        if rate is None and not self._source.waiting:
            self._hand_over(spans)
            return
        more: Record = {} if rate is None else {"rate": rate}
        record = {"push": audio, "source": self._source.number, **self._stereo, **more}
        name = self.journal.begin(record)
        self.origins[len(self.origins) + 1] = ranges(spans)
        self.refused.append(len(self.origins))
        self.journal.end(name, {"as": "raised", "error": "RtcError"})

    def run(self, ms: int) -> None:
        """Time passes."""
        for _ in range(ms):
            self._step()

    def case(self, name: str) -> Case:
        """The call so far, ended; no event expected yet."""
        self._wait(lambda: self._capture is None and not self._source.waiting)
        self.run(300)
        for source in self._sources:
            source.read()
        self.journal.arrive(self.journal.now_us + 1_000_000)
        records = self.journal.records
        case: Case = {"name": name, "rate": self._rate, "finish": records[-1]["at"] + 100}
        if self._batched:
            case["batched"] = True
        return {**case, "truth": self.truth(), "records": records}

    def truth(self) -> dict[str, Any]:
        """Per push where its samples were captured; per source what left it, inserted silence as
        ``"inserted"``; in samples."""
        return {
            "pushed": {str(push): self._samples(parts) for push, parts in self.origins.items()},
            "refused": self.refused,
            "sent": {str(source.number): self._left(source) for source in self._sources},
        }

    # --- how --------------------------------------------------------------------------------

    def _samples(self, parts: list[Range]) -> list[list[Any]]:
        n = self._channels
        return [[None if start is None else start // n, values // n] for start, values in parts]

    def _left(self, source: QueueModel) -> list[list[Any]]:
        """What left a source, joined where it goes on."""
        found: list[list[Any]] = []
        for kind, span in source.sent:
            start: Any = kind if kind == "inserted" else span.origin
            before = found[-1] if found else ["nothing", 0]
            expected = before[0] + before[1] if isinstance(before[0], int) else before[0]
            if start == expected:
                before[1] += span.values
            else:
                found.append([start, span.values])
        n = self._channels
        return [[at // n if isinstance(at, int) else at, values // n] for at, values in found]

    def _treated(self, spans: list[Span]) -> list[Span]:
        """What the sink makes of a frame."""
        if self.habit == "skip":
            return [span for span in spans if span.piece[0] != "silence"]
        if self.habit == "add":
            return [*spans, Span(["silence", 160 * self._channels])]
        if self.habit == "repeat":
            return [*spans, *(Span(span.piece) for span in spans)]
        return [replace(span, piece=self._changed(span.piece)) for span in spans]

    def _changed(self, piece: Piece) -> Piece:
        if self.habit == "dither":
            return ["dither", self.journal.calls, [piece]]
        if self.habit == "softer":
            return ["gain", 0.4, 0.4, [piece]]
        if self.habit == "louder":
            return ["gain", 3, 3, [piece]]
        if self.habit == "fade":
            return ["gain", 1, 0.5, [piece]]
        return piece

    def _pump(self) -> None:
        """Hand on what is ready, one push at a time; end the capture that waits for it."""
        while self._ready and not self._source.waiting:
            self._hand_over(self._ready.pop(0))
        if not self._ready and not self._source.waiting and self._capture is not None:
            name, self._capture = self._capture, None
            self.journal.end(name)

    def _hand_over(self, spans: list[Span]) -> None:
        self.origins[len(self.origins) + 1] = ranges(spans)
        placed = []
        for span in spans:
            placed.append(span.placed(self.pushed))
            self.pushed += span.values
        self._source.push(placed)

    def _step(self) -> None:
        journal = self.journal
        until_us = (journal.now_us // STEP_US + 1) * STEP_US
        for source in self._sources:
            source.run(until_us)
        journal.now_us = max(journal.now_us, until_us)
        journal.arrive(journal.now_us)
        for source in self._sources:
            source.take_in()
        self._pump()

    def _wait(self, until: Callable[[], bool]) -> None:
        for _ in range(20_000):
            if until():
                return
            self._step()
        raise AssertionError("expected a call that goes on")


def call_actions(
    kinds: list[str], habits: tuple[str, ...] = (), late_ms: tuple[int, ...] = ()
) -> st.SearchStrategy[list[Any]]:
    """What may happen in a call, with content of these kinds, sinks of these habits, and readings
    that come so late from then on."""
    samples = st.integers(40, 1500)
    options: list[st.SearchStrategy[Any]] = [
        st.tuples(st.just("capture"), st.sampled_from(kinds), samples),
        st.tuples(st.just("run"), st.integers(1, 150)),
        st.tuples(st.just("clear"), st.integers(0, 2)),
        st.tuples(st.just("flush")),
        st.tuples(st.just("pause")),
        st.tuples(st.just("foreign"), samples),
        st.tuples(st.just("refuse"), samples, st.sampled_from([None, 16_000])),
        st.tuples(st.just("swap")),
    ]
    if habits:
        options.append(st.tuples(st.just("habit"), st.sampled_from([None, *habits])))
    if late_ms:
        options.append(st.tuples(st.just("late"), st.sampled_from(late_ms)))
    return st.lists(st.one_of(options), max_size=25)


def play(model: CallModel, actions: list[Any]) -> None:
    """Lets it happen."""
    for verb, *told in actions:
        if verb == "capture":
            model.capture(model.content(*told))
        elif verb == "foreign":
            model.foreign(model.content("noise", told[0]))
        elif verb == "refuse":
            model.refuse(model.content("noise", told[0]), rate=told[1])
        elif verb == "habit":
            model.habit = told[0]
        elif verb == "late":
            model.journal.late_us = told[0] * 1000
        else:
            getattr(model, verb)(*told)
