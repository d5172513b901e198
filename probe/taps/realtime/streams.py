"""Streams of a realtime model with somebody looking on: each item is handed on as it came.

A stream may be anything that can be iterated over, and whoever holds it may use more of it than
that: close it, ask its length, receive without waiting. So what stands in its place has the
attributes of that very stream and no others, and answers like it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["StreamWatch", "watch_of", "watched"]


class StreamWatch(Protocol):
    """Who looks on. None of these may raise."""

    def opened(self) -> None:
        """Somebody asks for an iterator, to read with it."""

    def reading(self) -> None:
        """Somebody begins to wait for an item; `passed` or `stopped` follows."""

    def passed(self, item: Any) -> None:
        """An item is handed on."""

    def stopped(self, error: BaseException) -> None:
        """Reading raised: the stream ended, or who waited for it gave up."""


def watched(stream: Any, watch: StreamWatch) -> Any:
    """What to put in the place of ``stream``; reads nothing by itself."""
    return _class_for(type(stream))(stream, watch)


def watch_of(stream: Any) -> StreamWatch | None:
    """Who looks on, or None where ``stream`` is a plain one."""
    if not isinstance(stream, _Watched):
        return None
    watch: StreamWatch = object.__getattribute__(stream, "_probe_watch")
    return watch


class _Watched:
    """Base of the classes made below, one for each class of streams."""

    __slots__ = ("__weakref__", "_probe_stream", "_probe_watch")

    _probe_stream: Any
    _probe_watch: StreamWatch

    def __init__(self, stream: Any, watch: StreamWatch) -> None:
        object.__setattr__(self, "_probe_stream", stream)
        object.__setattr__(self, "_probe_watch", watch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._probe_stream, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._probe_stream, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._probe_stream, name)


def _iterate(self: _Watched) -> Any:
    stream, watch = self._probe_stream, self._probe_watch
    watch.opened()
    iterator = aiter(stream)
    return self if iterator is stream else watched(iterator, watch)


def _waiting(name: str) -> Callable[..., Any]:
    async def receive(self: _Watched, *args: Any, **kwargs: Any) -> Any:
        watch = self._probe_watch
        watch.reading()
        try:
            item = await getattr(self._probe_stream, name)(*args, **kwargs)
        except BaseException as error:
            watch.stopped(error)
            raise
        watch.passed(item)
        return item

    receive.__name__ = name
    return receive


def _at_once(name: str) -> Callable[..., Any]:
    def receive(self: _Watched, *args: Any, **kwargs: Any) -> Any:
        watch = self._probe_watch
        watch.reading()
        try:
            item = getattr(self._probe_stream, name)(*args, **kwargs)
        except BaseException as error:
            watch.stopped(error)
            raise
        watch.passed(item)
        return item

    receive.__name__ = name
    return receive


def _delegated(name: str) -> property:
    return property(lambda self: getattr(self._probe_stream, name))


_READING: dict[str, Callable[..., Any]] = {
    "__aiter__": _iterate,
    "__anext__": _waiting("__anext__"),
    "asend": _waiting("asend"),
    "recv": _waiting("recv"),
    "recv_nowait": _at_once("recv_nowait"),
}
"""The ways to read from a stream: iteration, that of generators, that of LiveKit's channels."""

_LANGUAGE = ("__aenter__", "__aexit__", "__bool__", "__contains__", "__len__", "__repr__")
"""What the language looks up on the class, where a stream has it."""

_MADE: weakref.WeakKeyDictionary[type, type[_Watched]] = weakref.WeakKeyDictionary()


def _class_for(cls: type) -> type[_Watched]:
    """A class with the attributes of ``cls``, on the class itself: some callers look there, and
    find out that way whether a stream wants to be closed."""
    made = _MADE.get(cls)
    if made is None:
        names = [
            name
            for name in dir(cls)
            if name in _LANGUAGE or not name.startswith(("__", *_Watched.__slots__))
        ]
        namespace: dict[str, Any] = {name: _delegated(name) for name in names}
        namespace |= {name: read for name, read in _READING.items() if hasattr(cls, name)}
        namespace |= {
            "__slots__": (),
            "__class__": property(lambda self: type(self._probe_stream)),
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
        }
        made = _MADE[cls] = type(cls.__name__, (_Watched,), namespace)
    return made
