"""Objects are told apart by what they are, not by what they say they equal."""

from __future__ import annotations

import gc
import weakref

from probe.taps.numbers import Numbers


class Thing:
    """Equal to all of its kind, and without a hash."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing)


class Slotted:
    """Can't be referred to weakly."""

    __slots__ = ()


def test_things_are_numbered_in_order_of_appearance_and_keep_their_number() -> None:
    numbers = Numbers()
    first, second, third = Thing(), Slotted(), Thing()
    assert [numbers.of(thing) for thing in (first, second, first, third, second)] == [1, 2, 1, 3, 2]


def test_a_thing_in_the_place_of_one_that_is_gone_is_another() -> None:
    numbers = Numbers()
    assert [numbers.of(Thing()) for _ in range(50)] == list(range(1, 51))


def test_nothing_is_kept_alive() -> None:
    numbers = Numbers()
    thing = Thing()
    numbers.of(thing)
    gone = weakref.ref(thing)
    del thing
    gc.collect()
    assert gone() is None
