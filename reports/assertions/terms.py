"""The words of the language as Python objects, for plain ``assert`` statements in a test.

    call = Words(analysis)
    assert call.verdict < call.clear < call.resume
    assert call.leaked.sent <= "20ms"
    assert call.barge_in(2).outcome == "committed"

A comparison is the assertion of the language with the same words, held against every barge-in, and
gives its outcome as a bool. One that can't be judged raises, so that no test passes because nobody
looked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from reports.assertions.evaluation import Result, check
from reports.assertions.language import AssertionSyntaxError
from reports.assertions.text import lines
from reports.assertions.vocabulary import NAMES
from reports.results import Analysis

__all__ = ["Term", "Words", "why"]

_WIDTH: Final = 100


def _begins_a_name(text: str) -> bool:
    return any(name == text or name.startswith(f"{text}.") for name in NAMES)


class Term:
    """A figure of an analysis, or a sum of several; compared, it says whether that holds.

    The other side is another term, a number that needs no unit, or the language's own text for
    one: ``"20ms"``, ``"480 samples"``, ``"committed"``. A flag is its own assertion: ``assert
    call.balanced``.

    Raises:
        AssertionError: a comparison, or a flag, that the trace can't tell.
        AssertionSyntaxError: words that can't be compared with each other.
    """

    __slots__ = ("_analysis", "_selector", "_text")

    def __init__(self, analysis: Callable[[], Analysis], text: str, selector: str = "") -> None:
        self._analysis = analysis
        self._text = text
        self._selector = selector

    def __getattr__(self, name: str) -> Term:
        text = f"{self._text}.{name}"
        if name.startswith("_") or not _begins_a_name(text):
            raise AttributeError(f"`sinkprobe assertions` lists no {text!r}")
        return Term(self._analysis, text, self._selector)

    def __repr__(self) -> str:
        said = f"{self._selector} {self._text}".strip()
        try:
            (first, *_) = self._result().checks
        except AssertionSyntaxError:
            return said  # a figure: its value is in the explanation of the comparison
        return f"{said} ({first.reason})" if first.reason not in ("", said) else said

    def __add__(self, other: Term | str) -> Term:
        return self._joined("+", other)

    def __sub__(self, other: Term | str) -> Term:
        return self._joined("-", other)

    def __lt__(self, other: object) -> bool:
        return bool(self._joined("<", other))

    def __le__(self, other: object) -> bool:
        return bool(self._joined("<=", other))

    def __gt__(self, other: object) -> bool:
        return bool(self._joined(">", other))

    def __ge__(self, other: object) -> bool:
        return bool(self._joined(">=", other))

    def __eq__(self, other: object) -> bool:
        return bool(self._joined("==", other))

    def __ne__(self, other: object) -> bool:
        return bool(self._joined("!=", other))

    __hash__ = None  # type: ignore[assignment]  # what compares by an account of a call is no key

    def __bool__(self) -> bool:
        result = self._result()
        if result.holds is None:
            raise AssertionError("\n".join(["not judged", *lines(result, _WIDTH)]))
        return result.holds

    def held(self, compare: str, other: object) -> Result:
        """What came of the comparison, with the moments around it where it does not hold."""
        return self._joined(compare, other)._result()

    def _result(self) -> Result:
        return check(self._analysis(), f"{self._selector} {self._text}".strip())

    def _joined(self, sign: str, other: object) -> Term:
        selector, text = self._selector, str(other)
        if isinstance(other, Term):
            text = other._text
            if selector and other._selector not in ("", selector):
                raise ValueError(
                    "expected two figures of the same barge-in, "
                    f"found {selector} and {other._selector}"
                )
            selector = selector or other._selector
        return Term(self._analysis, f"{self._text} {sign} {text}", selector)


_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def why(compare: str, left: object, right: object) -> list[str] | None:
    """Why a comparison of terms does not hold: the values and the marks around the moment.

    ``None``: neither side is a term, or the comparison is none of the language's.
    """
    if compare not in _MIRRORED:
        return None
    if isinstance(left, Term):
        result = left.held(compare, right)
    elif isinstance(right, Term):
        result = right.held(_MIRRORED[compare], left)
    else:
        return None
    _, *details = lines(result, _WIDTH)
    return [result.assertion, *details]


class Words:
    """Every word of the language as an attribute; `sinkprobe assertions` lists them."""

    def __init__(self, analysis: Callable[[], Analysis], selector: str = "") -> None:
        """``analysis`` is asked for when a word is first compared."""
        self._analysis_of = analysis
        self._selector = selector

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not _begins_a_name(name):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return Term(self._analysis_of, name, self._selector)

    def barge_in(self, which: int | str) -> Words:
        """The words of one barge-in: its number from 1, or those of a kind or outcome."""
        return Words(self._analysis_of, f"#{which}")
