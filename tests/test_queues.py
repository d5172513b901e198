"""How much a source holds is what its maker asked for, or not known; never what code looks like."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("livekit.rtc")
from livekit import rtc

from probe.taps import queues  # needs livekit, which may be missing


class FakeSource:
    """Takes what an `rtc.AudioSource` takes, without the native library."""

    def __init__(
        self, sample_rate: int, num_channels: int, queue_size_ms: int = 1000, loop: Any = None
    ) -> None:
        if sample_rate <= 0:
            raise ValueError("no such rate")


class Derived(FakeSource):
    """A source of the user's own, that leaves nothing of the arguments to be read in its code."""

    def __init__(self, queue: dict[str, int]) -> None:
        super().__init__(24_000, 1, **queue)


@pytest.fixture(autouse=True)
def sizes(monkeypatch: pytest.MonkeyPatch) -> queues._QueueSizes:
    monkeypatch.setattr(rtc, "AudioSource", FakeSource)
    return queues._QueueSizes()


def test_the_size_is_the_one_that_was_passed_however_it_was(sizes: Any) -> None:
    with sizes.looking():
        made = [
            FakeSource(24_000, 1),
            FakeSource(24_000, 1, 60),
            FakeSource(24_000, 1, queue_size_ms=200),
            Derived({"queue_size_ms": 350}),
        ]
    assert [sizes.of(source) for source in made] == [1000, 60, 200, 350]


def test_of_a_source_that_nobody_saw_being_made_nothing_is_known(sizes: Any) -> None:
    before = FakeSource(24_000, 1, queue_size_ms=200)
    with sizes.looking():
        assert sizes.of(before) is None
    assert sizes.of(FakeSource(24_000, 1, 200)) is None


def test_the_class_is_left_as_it_was_by_the_last_of_those_who_look_on(sizes: Any) -> None:
    constructor = FakeSource.__init__
    with sizes.looking():
        with sizes.looking():
            pass
        assert sizes.of(FakeSource(24_000, 1, 70)) == 70
    assert FakeSource.__init__ is constructor


def test_what_the_constructor_raises_reaches_its_caller(sizes: Any) -> None:
    with sizes.looking():
        with pytest.raises(ValueError, match="no such rate"):
            FakeSource(0, 1)
        with pytest.raises(TypeError):
            FakeSource(24_000)  # type: ignore[call-arg]  # that is the point


def test_a_constructor_that_is_not_known_gives_no_size(
    sizes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other:
        def __init__(self, rate: int) -> None:
            self.rate = rate

    monkeypatch.setattr(rtc, "AudioSource", Other)
    with sizes.looking():
        source: Any = Other(24_000)
    assert source.rate == 24_000
    assert sizes.of(source) is None


def test_a_class_that_takes_nothing_new_is_left_alone_and_nobody_counted(
    sizes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rtc, "AudioSource", int)
    with pytest.raises(TypeError), sizes.looking():
        pass
    monkeypatch.setattr(rtc, "AudioSource", FakeSource)
    constructor = FakeSource.__init__
    with sizes.looking():
        assert sizes.of(FakeSource(24_000, 1, 70)) == 70
    assert FakeSource.__init__ is constructor
