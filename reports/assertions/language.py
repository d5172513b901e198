"""What an assertion can say, and what its parts are.

`reports.grammar` makes its tree; here it is looked at for sense. A sum has a type: instants differ
by a length, and a length shifts an instant; nothing else is added up. Compared are sums of one
type, and an amount of audio with samples or with its length.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from probe.errors import UsageError
from reports.assertions.reading import Name, Type
from reports.assertions.vocabulary import (
    AUDIO_EVENTS,
    AUDIO_INSTANTS,
    EVENTS,
    MARKS,
    NAMES,
    WORDS,
)
from reports.findings import RULES
from reports.grammar import Expression, GrammarError, Quantity, Token, expected, read, terms

__all__ = [
    "Absence",
    "Assertion",
    "AssertionSyntaxError",
    "Sum",
    "absence_of",
    "name_of",
    "parse",
    "sum_of",
    "word_of",
]

_KEBAB: Final = {word for words in (RULES, *WORDS.values()) for word in words if "-" in word}
_CHOSEN: Final = (*WORDS["kind"], *WORDS["outcome"])
"""Which barge-ins can be chosen, beside numbers."""

_ALLOWED: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "amount": ("ms, s or samples", ("ns", "samples")),
    "length": ("ms or s", ("ns",)),
    "unaccounted": ("samples", ("samples",)),
}
"""Units a number may have, by the type or the name of what it is held against."""
_ARTICLES: Final[dict[Type, str]] = {
    "instant": "an instant",
    "length": "a length of time",
    "amount": "an amount of audio",
    "count": "a number",
    "word": "a word",
    "flag": "a yes or no",
}
_ADDED: Final[dict[tuple[Type, int, Type], Type]] = {
    ("instant", -1, "instant"): "length",
    ("instant", -1, "length"): "instant",
    ("instant", 1, "length"): "instant",
    ("length", 1, "length"): "length",
    ("length", 1, "instant"): "instant",
    ("length", -1, "length"): "length",
}
"""What comes of what is added to what."""


class AssertionSyntaxError(UsageError):
    """An assertion is not one. One line: the text, the column, what was expected and found."""

    def __init__(self, text: str, position: int, message: str) -> None:
        shown = text if len(text) <= 80 else f"{text[:79]}…"
        super().__init__(f"assertion {shown!r}, column {position + 1}: {message}")
        self.text = text
        self.position = position
        """Index of the character it went wrong at."""


@dataclass(frozen=True, slots=True)
class Sum:
    """Names and numbers, added up."""

    terms: tuple[tuple[Literal[1, -1], Name | Quantity], ...]
    type: Type
    text: str

    @property
    def literal(self) -> Quantity | None:
        """The number it consists of, if it is one."""
        (_, term), *more = self.terms
        return term if not more and isinstance(term, Quantity) else None

    @property
    def names(self) -> tuple[Name, ...]:
        return tuple(term for _, term in self.terms if isinstance(term, Name))


@dataclass(frozen=True, slots=True)
class Absence:
    """Something did not happen, at all or on one side of an instant."""

    event: str
    """A mark, audio that crosses a boundary, an instant, or a rule that fires."""
    side: str = ""
    """``after`` or ``before``; empty: at all."""
    instant: str = ""


@dataclass(frozen=True, slots=True)
class Assertion:
    """What must hold."""

    text: str
    selector: int | str | None
    """Which barge-ins it is about: a number from 1, a kind or an outcome; ``None``: all."""
    expression: Expression
    per_barge_in: bool
    """Whether it is judged barge-in by barge-in, or once for the trace."""


def parse(text: str) -> Assertion:
    """The assertion a text stands for.

    Raises:
        AssertionSyntaxError: it stands for none.
    """
    try:
        expression = read(text, _KEBAB, opens=("#", "no", "not"))
        selector = _selector(expression.selector)
        per_barge_in = _is_per_barge_in(expression, chosen=selector is not None)
        if selector is not None and not per_barge_in:
            raise GrammarError(
                text.index("#"),
                "expected no barge-in to be chosen: this is about the whole trace",
            )
    except GrammarError as error:
        raise AssertionSyntaxError(text, error.position, error.message) from None
    return Assertion(text.strip(), selector, expression, per_barge_in)


def _selector(token: Token | None) -> int | str | None:
    if token is None:
        return None
    if token.text.isdigit() and 0 < int(token.text) < 10**6:
        return int(token.text)
    if token.text not in _CHOSEN:
        known = ", ".join(_CHOSEN)
        raise expected(f"the number of a barge-in from 1, or one of {known}", token, _CHOSEN)
    return token.text


# --- Claims --------------------------------------------------------------------------------------


def _is_per_barge_in(e: Expression, *, chosen: bool) -> bool:
    """Whether a claim is about single barge-ins.

    Raises:
        GrammarError: it makes no sense.
    """
    first, following, last = NAMES.get(e.tokens[0].text), e.tokens[1], e.tokens[-1]
    per_barge_in = False
    about: Sequence[Name] = ()
    rest = "the end"
    match e.tree:
        case ast.Call() as call:
            absence = absence_of(e, call)
            if absence.event in MARKS and not absence.side:
                rest = "after, before or the end"
            per_barge_in = absence.event not in RULES and (bool(absence.side) or chosen)
        case ast.UnaryOp(operand=ast.expr() as node):
            flags = [name.name for name in NAMES.values() if name.type == "flag"]
            if e.first(node).text not in flags:
                raise expected(f"one of {', '.join(flags)}", e.first(node), flags)
            about = [name_of(e, node)]
        case _ if first is not None and first.type == "flag":
            if following.text:
                raise expected("the end", following)
            about = [first]
        case ast.Compare() if first is not None and first.type == "word":
            word_of(e)
            about = [first]
        case ast.Compare() as compare:
            about = [name for sum_ in _sums(e, compare) for name in sum_.names]
        case node:
            if first is not None and first.type == "word":
                raise expected("== or !=", following)
            sum_of(e, node)
            raise expected("a comparison (< <= > >= == !=)", last)
    if last.text:
        raise expected(rest, last)
    return per_barge_in or any(name.per == "barge-in" for name in about)


def name_of(e: Expression, node: ast.expr) -> Name:
    """The name that a node is, which there is."""
    return NAMES[e.first(node).text]


def absence_of(e: Expression, call: ast.Call) -> Absence:
    """What must not come.

    Raises:
        GrammarError: nothing is looked for in that way.
    """
    node, event = call.args[0], e.first(call.args[0])
    side = next(iter(call.keywords), None)
    instants = [name.name for name in NAMES.values() if name.type == "instant"]
    known = (*EVENTS, *(name for name in instants if name not in MARKS))
    if "-" in event.text and event.text not in RULES:
        raise expected("a rule", event, RULES)
    if event.text not in known and event.text not in RULES:
        raise expected(f"a rule or one of {', '.join(known)}", event, known)
    if side is None:
        if event.text in AUDIO_EVENTS:
            raise expected("after and an instant", e.after(node))
        return Absence(event.text)
    if event.text not in EVENTS:
        raise expected("the end", e.first(side))
    if event.text in AUDIO_EVENTS and side.arg == "before":
        raise expected("after: audio is looked for from an instant on", e.first(side))
    allowed = [*AUDIO_INSTANTS] if event.text in AUDIO_EVENTS else instants
    instant = e.first(side.value)
    if instant.text not in allowed:
        raise expected(f"one of {', '.join(allowed)}", instant, allowed)
    return Absence(event.text, side.arg or "", instant.text)


def word_of(e: Expression) -> str:
    """The word that another is, or is not.

    Raises:
        GrammarError: it can't be that.
    """
    if e.tokens[1].text not in ("==", "!="):
        raise expected("== or !=", e.tokens[1])
    word, words = e.tokens[2], WORDS[e.tokens[0].text]
    if word.text not in words:
        raise expected(f"one of {', '.join(words)}", word, words)
    if e.tokens[3].text:
        raise expected("the end", e.tokens[3])
    return word.text


# --- Sums ----------------------------------------------------------------------------------------


def _sums(e: Expression, compare: ast.Compare) -> list[Sum]:
    """What is compared, one with the next."""
    nodes = [compare.left, *compare.comparators]
    sums: list[Sum] = []
    for node in nodes:
        sums.append(sum_of(e, node))
        if sums[1:]:
            _check_comparable(sums[-2], sums[-1], e.first(node).at)
    if not any(sum_.names for sum_ in sums):
        raise GrammarError(0, "expected a name on one side of the comparison, found only numbers")
    return sums


def sum_of(e: Expression, node: ast.expr) -> Sum:
    """The sum that a node is; that of a single name or number is itself.

    Raises:
        GrammarError: there is no such name, or these are not added up.
    """
    added: list[tuple[Literal[1, -1], Name | Quantity]] = []
    found: Type | None = None
    for sign, part in terms(node):
        term, kind = _term(e, part)
        added.append((sign, term))
        found = kind if found is None else _sum_type(e, found, sign, kind, part)
    assert found is not None
    return Sum(tuple(added), found, e.said(node))


def _term(e: Expression, node: ast.expr) -> tuple[Name | Quantity, Type]:
    quantity = e.quantity(node)
    if quantity is not None:
        if quantity.unit == "%":
            raise GrammarError(e.first(node).at, "expected a unit (ms, s or samples), found '%'")
        kinds: dict[str | None, Type] = {"ns": "length", "samples": "amount", None: "count"}
        return quantity, kinds[quantity.unit]
    token = e.first(node)
    name = NAMES.get(token.text)
    if name is None:
        groups = sorted(known for known in NAMES if known.startswith(f"{token.text}."))
        if groups:
            raise expected(f"one of {', '.join(groups)}", token)
        raise expected("a name or a number with its unit", token, NAMES)
    if name.type in ("word", "flag"):
        raise GrammarError(token.at, f"{name.name} is {_ARTICLES[name.type]}: it stands alone")
    return name, name.type


def _sum_type(e: Expression, left: Type, sign: int, right: Type, node: ast.expr) -> Type:
    """What comes of adding a node to what stands before it."""
    found = _ADDED.get((left, sign, right))
    if found is not None:
        return found
    operator = e.before(node)
    wanted = [_ARTICLES[one] for (to, by, one) in _ADDED if (to, by) == (left, sign)]
    if not wanted:
        raise GrammarError(operator.at, f"{_ARTICLES[left]} is not added up; expected a comparison")
    raise GrammarError(
        e.first(node).at,
        f"expected {' or '.join(wanted)} after {operator.text!r}, found {_ARTICLES[right]}",
    )


def _check_comparable(left: Sum, right: Sum, at: int) -> None:
    number = right.literal or left.literal
    if number is not None:
        _check_fits(left if right.literal else right, number, at)
    elif left.type != right.type or not (left.names or right.names):
        raise GrammarError(
            at,
            f"{left.text} is {_ARTICLES[left.type]}: expected another, "
            f"found {_ARTICLES[right.type]}, {right.text}",
        )


def _check_fits(sum_: Sum, number: Quantity, at: int) -> None:
    """Whether a number can be held against a sum."""
    if sum_.type == "count":
        fits = number.unit is None and number.value.denominator == 1
        message = f"{sum_.text} is counted: expected a whole number without a unit"
    elif sum_.type == "instant":
        fits = False
        message = f"{sum_.text} is an instant: expected another, or a difference of two"
    else:
        units, allowed = _ALLOWED.get(sum_.text) or _ALLOWED[sum_.type]
        if number.unit is None:
            fits = number.value == 0
            message = f"expected a unit ({units}) with the number {sum_.text} is held against"
        else:
            fits = number.unit in allowed
            message = f"{sum_.text} is {_ARTICLES[sum_.type]}: expected a number in {units}"
    if not fits:
        raise GrammarError(at, message)
