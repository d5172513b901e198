"""The tap on ``session.output``: the sink that is set there is handed out behind a probe."""

from __future__ import annotations

import weakref
from time import monotonic_ns
from typing import Any

from probe import compat
from probe.taps.calls import STAMP_NS, Put
from probe.taps.guard import Fault, Guard
from probe.taps.numbers import Numbers
from probe.taps.patches import Patches
from probe.taps.sink import ProbeAudioOutput, lead_through
from probe.taps.sources import SourceTaps
from probe.trace.events import Tapped, Untapped

__all__ = ["OutputTap"]

_TAP = "_sinkprobe_tap"
"""Attribute of ``session.output`` that leads to the tap while it is on."""


class OutputTap:
    """Stands before the sink of one session, whichever it is.

    While it is on, reading ``session.output.audio`` gives a `ProbeAudioOutput` in front of the sink
    that is set, which itself stays as it is. So whatever the session, a room or a user sets is
    recorded from its first frame, and nothing has to be put back afterwards. A reply that already
    holds the sink when the probe comes is recorded on that very object.
    """

    def __init__(
        self,
        session: Any,
        put: Put,
        put_frame: Put,
        fault: Fault,
        sources: SourceTaps,
        sinks: Numbers,
        *,
        name: str = "",
    ) -> None:
        """``put_frame`` takes the records of frames, ``name`` says which recording this is for."""
        self.name = name
        self._session = session
        self._speaking = compat.speaking(session)
        self._put = put
        self._put_frame = put_frame
        self._fault = fault
        self._guard = Guard(fault)
        self._sources = sources
        self._sinks = sinks
        self._probe: ProbeAudioOutput | None = None
        self._probes: weakref.WeakSet[ProbeAudioOutput] = weakref.WeakSet()
        self._attributes = 0
        self._led: Patches | None = None
        """What leads the sink of a running reply through its probe."""
        self._tapped = False
        self._removed = False

    @staticmethod
    def on(session: Any) -> OutputTap | None:
        """The tap that is on the session's output, if there is one."""
        tap: OutputTap | None = vars(session.output).get(_TAP)
        return tap

    # -- on and off --

    def install(self) -> None:
        """Put it on. Does nothing where the release hands out its sink in another way."""
        output = self._session.output
        if not compat.output_is_tappable(output):
            return
        sink = output.audio
        speaking = self._session.current_speech is not None
        if sink is not None and compat.started(self._session):
            # a sink that takes no attributes: the running reply is missed, the next one is not
            self._led = self._guard.attempt("running sink", lead_through, self._probe_for(sink))
        vars(output)[_TAP] = self
        try:
            output.__class__ = _tapped_class(type(output))
        except TypeError as error:
            del vars(output)[_TAP]
            self._guard.failed("output", error)
            return
        if sink is not None:
            self._set(sink, mid_speech=speaking)

    def remove(self) -> None:
        """Take it off; idempotent, from any thread."""
        if self._removed:
            return
        self._removed = True
        for step in (self._restore, self._let_go_of_reply, self._retire):
            self._guard.attempt(step.__name__, step)

    def _restore(self) -> None:
        output = self._session.output
        if vars(output).pop(_TAP, None) is not None:
            output.__class__ = type(output).__bases__[0]
        if self._tapped:
            self._put(Untapped(monotonic_ns(), "captured", reason="detached"))

    def _let_go_of_reply(self) -> None:
        led, self._led = self._led, None
        if led is not None:
            led.undo()

    def _retire(self) -> None:
        self._probe = None
        for probe in list(self._probes):
            probe._probe_retire()

    # -- what it is told --

    def follow(self) -> None:
        """Tap the source that the sink plays into by now."""
        probe = self._probe
        if probe is not None and not self._removed:
            self._sources.follow(probe.next_in_chain)

    def frames_to(self, target: Put) -> None:
        """Have the records of frames go to ``target`` from now on."""
        self._put_frame = target
        for probe in list(self._probes):
            probe._probe_frames_to(target)

    # -- the sink, as session.output hands it out --

    def head(self, sink: Any) -> Any:
        """What reading ``session.output.audio`` gives while ``sink`` is set."""
        if sink is None or self._removed:
            return sink
        probe = self._probe
        if probe is None or probe._probe_next is not sink:
            try:
                return self._set(sink)
            except Exception as error:
                self._guard.failed("sink", error)
                return sink
        if _attribute_count(sink) != self._attributes:
            self._attributes = _attribute_count(sink)
            probe._probe_adopt()
        return probe

    def _set(self, sink: Any, *, mid_speech: bool = False) -> ProbeAudioOutput:
        probe = self._probe = self._probe_for(sink)
        self._attributes = _attribute_count(sink)
        self._tapped = True
        self._put(
            Tapped(
                monotonic_ns(),
                "captured",
                rate_hz=sink.sample_rate,
                resolution_ns=STAMP_NS,
                mid_speech=mid_speech,
            )
        )
        self._sources.follow(sink, mid_speech=mid_speech, wait=not mid_speech)
        return probe

    def _probe_for(self, sink: Any) -> ProbeAudioOutput:
        """The probe that stands before ``sink``; one each, or its events would be heard twice."""
        for known in self._probes:
            if known._probe_next is sink:
                return known
        probe = ProbeAudioOutput(
            sink,
            self._put,
            put_frame=self._put_frame,
            session=self._speaking,
            number=lambda: self._sinks.of(compat.leaf(sink)),
            on_segment=lambda: self._sources.settle(sink),
            fault=self._fault,
        )
        self._probes.add(probe)
        return probe

    def bare(self, sink: Any) -> Any:
        """``sink`` as it would be without a probe: none in front of it and none inside.

        A wrapper made around ``session.output.audio`` holds our probe; it is given the sink behind
        it, or audio would be counted twice.
        """
        try:
            return self._bare(sink)
        except Exception as error:
            self._guard.failed("sink", error)
            return sink

    def _bare(self, sink: Any) -> Any:
        while isinstance(sink, ProbeAudioOutput):
            sink = sink.next_in_chain
        for link in compat.chain(sink):
            for name, value in list(getattr(link, "__dict__", {}).items()):
                if isinstance(value, ProbeAudioOutput):
                    setattr(link, name, value.next_in_chain)
            following = link.next_in_chain
            if isinstance(following, ProbeAudioOutput):
                # kept where it can't be reached: it stays, as a plain pass-through
                following._probe_retire()
        led = self._led
        behind = compat.chain(sink.next_in_chain) if sink is not None else ()
        if led is not None and any(link is led.owner for link in behind):
            self._let_go_of_reply()
        return sink


def _attribute_count(sink: Any) -> int:
    return len(getattr(sink, "__dict__", ()))


_TAPPED_CLASSES: dict[type, type] = {}


def _tapped_class(base: Any) -> type:
    """A subclass of the class of ``session.output`` that hands out the probe; made once a class."""
    made = _TAPPED_CLASSES.get(base)
    if made is not None:
        return made
    inherited: Any = base.audio

    def read(self: Any) -> Any:
        sink = inherited.fget(self)
        tap: OutputTap | None = self.__dict__.get(_TAP)
        return sink if tap is None else tap.head(sink)

    def write(self: Any, sink: Any) -> None:
        tap: OutputTap | None = self.__dict__.get(_TAP)
        if tap is not None:
            sink = tap.bare(sink)
        inherited.fset(self, sink)
        if tap is not None:
            tap.head(sink)

    def replace_audio_tail(self: Any, sink: Any) -> None:
        tap: OutputTap | None = self.__dict__.get(_TAP)
        if tap is not None:
            sink = tap.bare(sink)
        base.replace_audio_tail(self, sink)
        if tap is not None:
            tap.follow()

    namespace: dict[str, Any] = {
        "audio": property(read, write, doc=inherited.__doc__),
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
    }
    if hasattr(base, "replace_audio_tail"):
        namespace["replace_audio_tail"] = replace_audio_tail
    made = type(base.__name__, (base,), namespace)
    _TAPPED_CLASSES[base] = made
    return made
