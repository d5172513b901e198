"""What an analysis consists of. Field names are the keys of the JSON report, in its order.

Units
    ``_samples`` are samples per channel, exact integers, and the only amounts that are ever added
    up. ``ms`` beside them is derived for display from the integer and the rate; it is ``None``
    where audio of several rates is in the one amount. ``_ms`` alone is an instant: milliseconds
    since the trace began, on the monotonic clock.

Missing
    ``None`` means that the trace cannot tell: the boundary was not tapped, the trace was cut, or
    it did not happen (said at each field). Zero means that it was looked at and there was none.

Positions (``start_sample``, ``stop_sample``, half open) count over the whole trace at their
boundary: captured positions for what was captured or dropped; pushed positions for what was pushed,
sent or cleared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

__all__ = [
    "Amount",
    "Analysis",
    "BargeIn",
    "Cancel",
    "Cause",
    "Control",
    "ConversationItem",
    "Evidence",
    "Fault",
    "Figure",
    "Finding",
    "Gap",
    "GenerationStop",
    "Geometry",
    "InForce",
    "Leak",
    "LeakCause",
    "LeakSurvival",
    "Loss",
    "LossCause",
    "Mark",
    "Moment",
    "NotJudged",
    "Outcome",
    "Part",
    "Problem",
    "Range",
    "Realtime",
    "RealtimeMessage",
    "Response",
    "Run",
    "Segment",
    "Severity",
    "Sound",
    "Span",
    "Stall",
    "Survivor",
    "Totals",
    "TraceFacts",
    "Unit",
    "Unseen",
    "VerdictKind",
]

SCHEMA = 1
"""Number of the JSON report. It grows when a script written for the older one would misread it."""

VerdictKind = Literal["overlap", "activity", "transcript", "programmatic"]
Outcome = Literal["committed", "resumed", "finished", "ignored"]
LeakCause = Literal["not-stopped", "queue-played-on", "clear-pending", "after-clear", "resumed"]
Severity = Literal["info", "warning", "error"]
Unit = Literal["ms", "samples", "%", "count"]
Unseen = Literal["under-way", "bounded", "unread"]
"""Why the wire does not tell: the probe came when the audio was in the source already, the file had
reached its bound, or nobody read the wire."""

LeakSurvival = Literal["survived-clear", "pushed-late", "rest-of-long-frame"]
LossCause = Literal[
    "refused", "skipped", "raised", "cancelled", "clear", "pause", "source-cleared", "source-closed"
]


@dataclass(frozen=True, slots=True)
class Amount:
    """Audio that crossed a boundary. Exact."""

    frames: int
    """Frames of which a sample crossed; at *sent* these are pushed frames."""
    samples: int
    ms: float | None
    """Derived from the samples; ``None``: of several rates."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of audio without a hole, in samples and, at *sent*, in time as well."""

    start_ms: float
    """When its first sample crossed."""
    stop_ms: float
    """Captured and pushed: when its last frame crossed. Sent: when its last block had been sent."""
    start_sample: int
    stop_sample: int
    """Positions at its boundary over the whole trace, half open."""


@dataclass(frozen=True, slots=True)
class Leak:
    """Audio of one speech that crossed a boundary from an instant on.

    Exact in samples; which side of the instant a sample falls on is as exact as the boundary's
    ``resolution_ms``.
    """

    frames: int
    samples: int
    ms: float | None
    spans: tuple[Span, ...]
    """Where it is, in order. Their samples add up to ``samples``."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a part of a leak was sent.

    ``not-stopped``: no pause and no clear had come yet. ``queue-played-on``: the gate was closed,
    the source's queue was not cleared. ``clear-pending``: the sink was cleared, the source not yet.
    ``after-clear``: sent although the source had been cleared. ``resumed``: sent after a resume.
    The samples of all causes of a barge-in add up to its leak at *sent*.
    """

    cause: LeakCause
    samples: int
    ms: float | None


@dataclass(frozen=True, slots=True)
class Survivor:
    """Leaked audio that was sent after the source had been cleared, and how that came.

    ``survived-clear``: pushed before the clear or while it ran, and not taken by it.
    ``pushed-late``: pushed after the clear. ``rest-of-long-frame``: of a push longer than the
    queue, which the source takes in pieces.
    """

    how: LeakSurvival
    samples: int
    ms: float | None


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark of the sink: ``pause``, ``resume``, ``clear`` or ``flush``."""

    mark: str
    at_ms: float


@dataclass(frozen=True, slots=True)
class Gap:
    """Over 15 ms between a segment's first and last sent sample in which nothing of it was sent."""

    at_ms: float
    ms: float


@dataclass(frozen=True, slots=True)
class Loss:
    """A stretch of lost audio, its cause and its place.

    Causes of ``dropped`` (captured, never pushed): ``refused`` by the source, ``raised`` or
    ``cancelled`` captures, a ``clear`` of the sink, a ``pause`` with frames at the gate, a cleared
    source (``source-cleared``) or a closed one (``source-closed``). Causes of ``cleared`` (pushed,
    never sent): ``clear`` of the source's queue, or ``source-closed``.
    """

    what: Literal["dropped", "cleared"]
    cause: LossCause
    samples: int
    ms: float | None
    start_sample: int
    stop_sample: int
    """Positions at *captured* for what was dropped, at *pushed* for what was cleared."""
    at_ms: float
    """When that which lost it happened."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Rate and channels of the frames at a boundary; several where they change in a segment."""

    rate_hz: int
    channels: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Audio from the first captured frame after a flush or clear to the next, with its balance.

    ``captured = pushed + dropped + held`` and ``pushed = sent + cleared + queued``, in samples;
    what does not add up is in ``unaccounted_samples``. Fields of a boundary that was not tapped
    are ``None``.
    """

    index: int
    """From 1."""
    speech_id: str | None
    """``None`` where code feeds the sink itself."""
    message_id: str | None
    """Message of a realtime model it plays; ``None``: no realtime model, or it can't be told."""
    partial: bool
    """Whether it was under way when the probe came."""
    balanced: bool | None
    """``None``: the trace is incomplete or a boundary is missing."""
    captured: Amount | None
    """Entered the sink."""
    pushed: Amount | None
    """Of it, accepted by the source."""
    sent: Amount | None
    """Of it, left the source's queue, in this segment or later."""
    cleared_samples: int | None
    """Discarded from the source's queue."""
    dropped_samples: int | None
    """Captured and never pushed; ``losses`` says why."""
    held_samples: int | None
    """At the end of the trace inside the sink."""
    queued_samples: int | None
    """At the end of the trace in the source, the tail included."""
    inherited_samples: int
    """Inside sink or source when the probe came; in none of the other figures."""
    inserted_samples: int | None
    """Silence the source put out between the segment's first and last sent sample."""
    tail_samples: int | None
    """Rest shorter than a block that stayed in the source. Part of queued, of cleared, or of what
    was sent in a later segment; in no sum of its own."""
    ambiguous_samples: int
    """Placed by order and time because their content could not tell."""
    unaccounted_samples: int | None
    """``None``: the trace is incomplete, see ``unknown_samples``."""
    unknown_samples: int
    """Samples whose fate the trace does not show: it is damaged or cut, or nobody read the wire of
    their source until they were out."""
    swallowed_samples: int | None
    """Lost although nobody interrupted the speech and it was said to be done; ``None`` as above.
    Zero for an interrupted speech. Neither the tail nor what is still queued is in it."""
    sent_in_later_segments_samples: int | None
    """Sent after the first frame of the next segment was captured."""
    started_ms: float
    """Its first frame was captured."""
    finished_ms: float | None
    """The sink reported it as finished; ``None``: it did not."""
    interrupted: bool | None
    """As the sink reported it, or whether the speech was committed where it reported nothing."""
    claimed_position_ms: float | None
    """How much the framework says was played; ``None``: it said nothing."""
    sent_position_ms: float | None
    """How much was sent."""
    last_sent_position_ms: float | None
    """Place of the last sent sample in the captured audio; ``None``: nothing was sent."""
    geometry: Mapping[str, tuple[Geometry, ...]]
    """By boundary, ``captured`` and ``pushed``."""
    geometry_differs: bool
    """Captured and pushed geometry differ: samples are counted as the sink handed them on."""
    resampled: bool
    """The sink changed the rate: what became of a captured sample can't be told."""
    order: tuple[Mark, ...]
    """Marks of the sink in order of time."""
    gaps: tuple[Gap, ...]
    """Holes in what was sent; ``order`` and ``losses`` may tell why."""
    losses: tuple[Loss, ...]
    """Everything dropped or cleared, stretch by stretch."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened around a barge-in, for the story."""

    event: str
    at_ms: float
    verdict: bool = False
    """Whether this was the verdict."""


@dataclass(frozen=True, slots=True)
class BargeIn:
    """One attempt to interrupt one speech, and what it let through."""

    segment: int | None
    """Segment under way; ``None``: nothing had been captured of the speech yet."""
    speech_id: str | None
    """``None``: code feeds the sink itself."""
    partial: bool
    """Whether the speech was under way when the probe came. Audio of it that was in the source
    already can be counted but not placed: where it went on, ``leaked["sent"]`` is ``None``."""
    onset_ms: float | None
    """The caller started to speak; ``None``: the trace shows no onset for it."""
    pause_ms: float | None
    """The sink's gate was closed on suspicion; ``None``: it was not."""
    verdict_ms: float | None
    """``None``: no verdict came."""
    verdict_kind: VerdictKind | None
    """Who decided; ``None``: no verdict came."""
    commit_ms: float | None
    """The speech became interrupted; ``None``: it did not."""
    clear_ms: float | None
    """The sink was cleared."""
    source_clear_ms: float | None
    """The source's queue was cleared for the first time since the pause or the verdict."""
    resume_ms: float | None
    """The gate was opened again; ``None``: it was not."""
    last_sent_ms: float | None
    """When the last sample of the speech left the source, before its next barge-in."""
    stop_ms: float | None
    """A length: from the verdict to the last sent sample, 0 where nothing was sent after it;
    ``None``: no verdict, or not tapped."""
    outcome: Outcome | None
    """``None``: not decided when the trace ended."""
    leaked: Mapping[str, Leak | None] | None
    """By boundary (``captured``, ``pushed``, ``sent``), from the verdict to the speech's next
    verdict; ``None``: no verdict came."""
    after_onset: Mapping[str, Leak | None] | None
    """The same from the onset on; audio, not leak. ``None``: no onset."""
    after_pause: Mapping[str, Leak | None] | None
    """The same from the pause on."""
    after_commit: Mapping[str, Leak | None] | None
    """The same from the commit on; *captured* is what was still made of a speech already over."""
    after_clear: Mapping[str, Leak | None] | None
    """The same from the clear of the sink on."""
    after_source_clear: Mapping[str, Leak | None] | None
    """The same from the clear of the source on."""
    after_resume: Mapping[str, Leak | None] | None
    """The same from the resume on."""
    over_caller: Mapping[str, Leak | None] | None
    """The same while the caller was speaking, from the onset to the end of the caller's speech."""
    remaining: Amount | None
    """Captured audio of the speech, also what was captured later, that had not been sent at the
    verdict; ``None``: no verdict, or not tapped."""
    causes: tuple[Cause, ...] | None
    """``None``: *sent* was not tapped, or there was no verdict."""
    survivors: tuple[Survivor, ...] | None
    """How the samples of the cause ``after-clear`` escaped the clear; they add up to it. ``None``
    as at ``causes``."""
    stalled_ms: float
    """Longest stall of the session's loop around it: its times are late by up to that."""
    story: tuple[Moment, ...]
    """What happened around it, in order of time."""
    explanation: str
    """What happened, in words."""
    unseen: Unseen | None = None
    """Why it is not known what was sent after the verdict; ``None``: it is, or no verdict came."""


@dataclass(frozen=True, slots=True)
class Sound:
    """Audio on the model's side, before any resampling towards the sink. Exact."""

    samples: int
    rate_hz: int | None
    """``None``: there was none, so no rate was seen."""
    ms: float | None


@dataclass(frozen=True, slots=True)
class RealtimeMessage:
    """A message of a realtime model: what the server made, what the agent did with it."""

    id: str
    response: int | None
    """Number of its response; ``None``: not seen."""
    speech_id: str | None
    """Speech that plays it; ``None``: nobody, or it can't be told."""
    created_ms: float | None
    """When the server had it; ``None``: not seen."""
    created_by: str | None
    """``event``, ``context`` or ``stream``; the last two are late."""
    pulled_ms: float | None
    """When the agent took it from the response's stream; ``None``: never."""
    opened_ms: float | None
    """When the agent asked for its audio; ``None``: never."""
    first_audio_ms: float | None
    last_audio_ms: float | None
    """First and last frame the agent read."""
    generated: Sound | None
    """Read, and what lay unread when it was last counted; ``None`` where that can't be asked."""
    read: Sound
    """What the agent took of its audio."""
    segments: tuple[int, ...]
    """Numbers of the segments that play it."""
    captured: Amount | None
    """``None``: not tapped, or its speech has audio of which it can't be told whose it is."""
    sent: Amount | None
    """``None`` as at ``captured``."""
    truncated_to_ms: float | None
    """Position it was truncated at last; ``None``: it was not, or the call raised."""
    truncated_ms: float | None
    """When."""
    sent_position_ms: float | None
    """Sent of it, as the truncation should have said; ``None`` as at ``sent``."""
    on_server: bool | None
    """At the last look; ``None``: nobody looked after it was created."""
    in_history: bool | None
    """The same of the local history."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response of a realtime model."""

    number: int
    """Counted by the probe, from 1."""
    id: str | None
    """The provider's name for it; ``None``: it gave none."""
    speech_id: str | None
    """``None``: no speech took it."""
    user_initiated: bool | None
    """As the plugin says; ``None``: it says nothing."""
    created_ms: float
    ended_ms: float | None
    """``None``: not seen."""
    ended_by: str | None
    cancelled: bool | None
    """What the plugin's metrics say."""
    cancel_ms: float | None
    """The first cancel that hit it."""
    messages: tuple[str, ...]
    """Their ids, in the order they were created."""
    generated: Sound | None
    """Audio of all its messages; ``None`` where that can't be asked."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """A cancel sent to a realtime model. A call that raised is none."""

    at_ms: float
    speech_id: str | None
    hits: tuple[int, ...]
    """Numbers of the responses under way."""


@dataclass(frozen=True, slots=True)
class GenerationStop:
    """How the generation of one interrupted speech was stopped, or was not."""

    speech_id: str
    responses: tuple[int, ...]
    """Numbers of the responses the speech played."""
    interrupt_ms: float
    """When the speech became interrupted."""
    under_way: bool | None
    """Whether a response of it was being generated then; ``None``: its end can't be seen."""
    ended_ms: float | None
    """When the last of its responses ended; ``None``: not seen."""
    cancel_ms: float | None
    """The cancel sent for it: the first of this speech, or one that hit its response; ``None``:
    none was."""
    cancel_after_interrupt_ms: float | None
    """Negative: the cancel came first. ``None``: there was none."""
    cancel_after_end_ms: float | None
    """Negative: in time. ``None``: no cancel, or the end of its responses was not seen."""
    hit: tuple[int, ...]
    """Responses that cancel hit, others' too."""
    generated_after: Sound | None
    """Audio generated after the interrupt; ``None``: can't be asked on this plugin."""
    generating_ms: float | None
    """How long the generation went on after the interrupt; 0: it had ended; ``None``: not seen."""


@dataclass(frozen=True, slots=True)
class ConversationItem:
    """One row of the conversation, as both sides hold it at the end of the trace."""

    id: str
    role: str
    """``user``, ``assistant``, ``system``, ``function_call`` …"""
    server: bool | None
    local: bool | None
    """Whether each side holds it; ``None``: nobody looked at that side."""
    message: RealtimeMessage | None
    """``None``: not of the assistant, or from before the probe."""
    difference: str
    """``""``, ``server only``, ``history only`` or ``neither`` (there once, gone now)."""


@dataclass(frozen=True, slots=True)
class Realtime:
    """The second ledger: what the provider holds as against what was played."""

    model: str
    """As its plugin names it."""
    responses: tuple[Response, ...]
    messages: tuple[RealtimeMessage, ...]
    cancels: tuple[Cancel, ...]
    stops: tuple[GenerationStop, ...]
    """One for each speech that was interrupted."""
    conversation: tuple[ConversationItem, ...]
    """Both sides beside each other, in the order of the server."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something the probe or the reader failed at."""

    kind: str
    count: int
    first_ms: float | None
    """``None``: it has no place in time."""
    detail: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the trace file that is not as it should be."""

    line: int
    kind: str
    text: str
    count: int


@dataclass(frozen=True, slots=True)
class Stall:
    """The session's loop did not run."""

    at_ms: float
    ms: float


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What was recorded, with what, and how far it can be trusted."""

    path: str
    complete: bool
    """Closed, readable to the end, and recorded without a loss."""
    incomplete_because: tuple[str, ...]
    """Why it is not complete, one line each."""
    duration_ms: float
    runtime: Mapping[str, str]
    """What ran: ``language``, and the versions of ``livekit``, ``livekit_agents`` …"""
    boundaries: tuple[str, ...]
    """Boundaries that were tapped, in flow order."""
    missing: Mapping[str, str]
    """Boundary that was not tapped to the reason."""
    resolution_ms: Mapping[str, float | None]
    """How exact times at a boundary are; ``None``: the trace does not say."""
    labels: Mapping[str, str]
    """As the user gave them."""
    options: Mapping[str, Any]
    """Of the session, as far as they bear on interruptions."""
    problems: tuple[Problem, ...]
    """What is wrong with the file; empty for a sound one."""
    stalls: tuple[Stall, ...]
    """When the session's loop did not run; stamps taken on it are late by that."""
    bookmarks: tuple[Moment, ...]
    """What the user marked."""


@dataclass(frozen=True, slots=True)
class Control:
    """The reply after the interrupted one, which has to arrive whole up to its tail."""

    segment: int | None
    """Its first segment; ``None``: nothing of it reached the sink."""
    captured_samples: int | None
    sent_samples: int | None
    whole: bool | None
    """``None``: *sent* was not tapped or the trace is incomplete."""


@dataclass(frozen=True, slots=True)
class Run:
    """Of a scripted call: what was scripted."""

    scenario: str | None
    pacing: str | None
    frame_ms: float | None
    rate_hz: int | None
    reply_ms: float | None
    at: str | float | None
    """When the caller barges in, as it was scripted."""
    control: Control | None
    """``None``: the call has no reply after the interrupted one."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The whole trace, in samples; a boundary that was not tapped is ``None``."""

    captured_frames: int | None
    captured_samples: int | None
    pushed_frames: int | None
    pushed_samples: int | None
    sent_samples: int | None
    dropped_samples: int | None
    held_samples: int | None
    cleared_samples: int | None
    queued_samples: int | None
    inherited_samples: int
    inserted_samples: int | None
    ambiguous_samples: int
    swallowed_samples: int | None
    unknown_samples: int


@dataclass(frozen=True, slots=True)
class Figure:
    """The number a finding is about; ``--fail-on RULE>VALUE`` compares with it."""

    value: float
    unit: Unit


@dataclass(frozen=True, slots=True)
class Range:
    """Samples a finding is about, half open, counted over the whole trace at their boundary."""

    boundary: str
    start_sample: int
    stop_sample: int
    start_ms: float | None
    """When its first sample crossed; ``None``: it never did."""
    stop_ms: float | None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a finding's samples and what took or sent it; all parts add up to the whole."""

    cause: str
    samples: int
    ms: float | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a finding rests on. Exact in samples; instants as exact as their boundary."""

    figure: Figure
    samples: int | None
    """Audio the finding is about; ``None``: it is not about an amount of audio."""
    parts: tuple[Part, ...]
    """What took or sent the samples, where that can be told apart."""
    ranges: tuple[Range, ...]
    """Where the audio is; empty: it is not about a place."""
    moments: tuple[Moment, ...]
    """Marks, events and instants in their order; repeated marks are one, with a count."""
    stalls: tuple[Stall, ...]
    """Stalls of the session's loop that one of the moments lies in: its time may be late."""
    facts: Mapping[str, Any]
    """What else the rule looked at: its reason, claims, options."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that fired."""

    rule: str
    """Its name, as ``--fail-on`` and ``thresholds`` take it."""
    severity: Severity
    segment: int | None
    """``None``: it is about none in particular."""
    message: str
    """One plain sentence."""
    evidence: Evidence
    cause: str = ""
    """What brought it about, as far as the trace tells; else what usually does."""
    remedy: str = ""
    """What to do about that."""


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A rule the trace gives no ground to judge by."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class InForce:
    """A threshold as it was applied."""

    rule: str
    name: str
    value: float
    unit: Unit
    default: float


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything a trace says, ready to be rendered.

    A notebook shows it as HTML, without the timeline, which needs the trace; ``rich.print`` shows
    the report of the terminal.
    """

    schema: int
    trace: TraceFacts
    run: Run | None
    """``None``: the call was not scripted."""
    balanced: bool | None
    """True: every sample has its place. False: some do not. ``None``: it can't be known, because
    the trace is incomplete or a boundary was not tapped."""
    unaccounted_samples: int | None
    """``None``: the trace is incomplete."""
    unaccounted_because: tuple[str, ...]
    """What did not add up, one line each, with the place."""
    faults: tuple[Fault, ...]
    """What the probe failed at; empty for a sound trace."""
    totals: Totals
    """The balance of the whole trace."""
    segments: tuple[Segment, ...]
    """In the order of their first frames."""
    barge_ins: tuple[BargeIn, ...]
    """In order of time."""
    realtime: Realtime | None
    """``None``: no session of a realtime model was seen."""
    findings: tuple[Finding, ...]
    """Worst first: by severity, then by rule, then in time."""
    not_judged: tuple[NotJudged, ...]
    """Rules that could not be judged, and why."""
    thresholds: tuple[InForce, ...]
    """Every threshold the rules were applied with."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """The terminal's report, as wide as the console, down to 60 columns."""
        from rich.text import Text

        from reports.show import terminal

        report = terminal.render([self], width=options.max_width, colour=True)
        for line in report.splitlines():
            yield Text.from_ansi(line, no_wrap=True, overflow="ellipsis")

    def _repr_html_(self) -> str:
        """A piece of HTML for a notebook, whole in itself; nothing from a trace is markup in it."""
        from reports.show import notebook

        return notebook.render(self)
