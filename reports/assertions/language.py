"""What an assertion can say, and what its parts are.

`reports.grammar` makes its tree; here it is looked at for sense. A sum has a type: instants differ
by a length, and a length shifts an instant; nothing else is added up. Compared are sums of one
type, and an amount of audio with samples or with its length.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from probe.errors import UsageError
from reports.assertions.judging import (
    Compare,
    Judge,
    Sum,
    judge_audio,
    judge_chain,
    judge_marks,
    judge_never,
    judge_rule,
    judge_trace,
    judge_value,
)
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

__all__ = ["Assertion", "AssertionSyntaxError", "parse"]

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
_LITERALS: Final[dict[str | None, Type]] = {"ns": "length", "samples": "amount", None: "count"}
"""Of numbers, by their unit."""
_INSTANTS: Final = [name.name for name in NAMES.values() if name.type == "instant"]
_COMPARES: Final[Mapping[type[ast.cmpop], Compare]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
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
class Assertion:
    """What must hold."""

    text: str
    selector: int | str | None
    """Which barge-ins it is about: a number from 1, a kind or an outcome; ``None``: all."""
    per_barge_in: bool
    """Whether it is judged barge-in by barge-in, or once for the trace."""
    judge: Judge


def parse(text: str) -> Assertion:
    """The assertion a text stands for.

    Raises:
        AssertionSyntaxError: it stands for none.
    """
    try:
        expression = read(text, _KEBAB, opens=("#", "no", "not"))
        selector = _selector(expression.selector)
        per_barge_in, judge = _claim(expression, chosen=selector is not None)
        if selector is not None and not per_barge_in:
            raise GrammarError(
                text.index("#"),
                "expected no barge-in to be chosen: this is about the whole trace",
            )
    except GrammarError as error:
        raise AssertionSyntaxError(text, error.position, error.message) from None
    return Assertion(text.strip(), selector, per_barge_in, judge)


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


def _claim(e: Expression, *, chosen: bool) -> tuple[bool, Judge]:
    """Whether it is about single barge-ins, and what judges it.

    Raises:
        GrammarError: it makes no sense.
    """
    first, following, last = NAMES.get(e.tokens[0].text), e.tokens[1], e.tokens[-1]
    names: Sequence[Name] = ()
    match e.tree:
        case ast.Call() as call:
            return _absence(e, call, chosen=chosen)
        case ast.UnaryOp(operand=ast.expr()):
            flags = [name.name for name in NAMES.values() if name.type == "flag"]
            if following.text not in flags:
                raise expected(f"one of {', '.join(flags)}", following, flags)
            names = [NAMES[following.text]]
            judge = partial(judge_value, names[0], True, False)
        case _ if first is not None and first.type == "flag":
            names, last = [first], following
            judge = partial(judge_value, first, True, True)
        case _ if first is not None and first.type == "word":
            names, last = [first], e.tokens[min(3, len(e.tokens) - 1)]
            judge = partial(judge_value, first, *_word(e, first))
        case ast.Compare() as compare:
            sums = _sums(e, compare)
            names = [name for sum_ in sums for name in sum_.names]
            judge = partial(judge_chain, sums, [_COMPARES[type(op)] for op in compare.ops])
        case node:
            _sum(e, node)
            raise expected("a comparison (< <= > >= == !=)", last)
    _check_end(last)
    return any(name.per == "barge-in" for name in names), judge


def _check_end(token: Token, what: str = "the end") -> None:
    if token.text:
        raise expected(what, token)


def _word(e: Expression, name: Name) -> tuple[str, bool]:
    """The word that another has to be, or not to be."""
    _, compare, *rest = e.tokens
    if compare.text not in ("==", "!="):
        raise expected("== or !=", compare)
    if rest[0].text not in WORDS[name.name]:
        raise expected(f"one of {', '.join(WORDS[name.name])}", rest[0], WORDS[name.name])
    return rest[0].text, compare.text == "=="


def _absence(e: Expression, call: ast.Call, *, chosen: bool) -> tuple[bool, Judge]:
    """What must not come."""
    _, event, following, *_ = e.tokens
    sides = {side.arg: e.first(side.value) for side in call.keywords}
    if "-" in event.text and event.text not in RULES:
        raise expected("a rule", event, RULES)
    known = [*EVENTS, *(instant for instant in _INSTANTS if instant not in MARKS)]
    if event.text not in known and event.text not in RULES:
        raise expected(f"a rule or one of {', '.join(known)}", event, known)
    if event.text in AUDIO_EVENTS and "after" not in sides:
        raise expected("after and an instant", following)
    if event.text not in EVENTS:
        _check_end(following)
    for instant in sides.values():
        allowed = [*AUDIO_INSTANTS] if event.text in AUDIO_EVENTS else _INSTANTS
        if instant.text not in allowed:
            raise expected(f"one of {', '.join(allowed)}", instant, allowed)
    _check_end(e.tokens[-1], "the end" if sides else "after, before or the end")
    if event.text in RULES:
        return False, partial(judge_rule, event.text)
    for side, instant in sides.items():
        if event.text in AUDIO_EVENTS:
            return True, partial(judge_audio, event.text, NAMES[instant.text])
        return True, partial(judge_marks, event.text, side, NAMES[instant.text])
    if not chosen:
        return False, partial(judge_trace, event.text)
    if event.text in MARKS:
        return True, partial(judge_marks, event.text, None, None)
    return True, partial(judge_never, NAMES[event.text])


# --- Sums ----------------------------------------------------------------------------------------


def _sums(e: Expression, compare: ast.Compare) -> list[Sum]:
    """What is compared, one with the next."""
    sums: list[Sum] = []
    for node in (compare.left, *compare.comparators):
        sums.append(_sum(e, node))
        if sums[1:]:
            _check_comparable(sums[-2], sums[-1], e.first(node).at)
    if not any(sum_.names for sum_ in sums):
        raise GrammarError(0, "expected a name on one side of the comparison, found only numbers")
    return sums


def _sum(e: Expression, node: ast.expr) -> Sum:
    """The sum that a node is; that of a single name or number is itself."""
    added: list[tuple[Literal[1, -1], Name | Quantity]] = []
    found: Type | None = None
    for sign, part in terms(node):
        term, kind = _term(e, part)
        added.append((sign, term))
        found = kind if found is None else _sum_type(e, found, sign, kind, part)
    assert found is not None
    return Sum(tuple(added), found, e.said(node))


def _term(e: Expression, node: ast.expr) -> tuple[Name | Quantity, Type]:
    quantity, token = e.quantity(node), e.first(node)
    if quantity is not None:
        if quantity.unit not in _LITERALS:
            raise GrammarError(token.at, "expected a unit (ms, s or samples), found '%'")
        return quantity, _LITERALS[quantity.unit]
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
    added = {one: found for (to, by, one), found in _ADDED.items() if (to, by) == (left, sign)}
    if right in added:
        return added[right]
    operator = e.before(node)
    if not added:
        message = f"{_ARTICLES[left]} is not added up; expected a comparison"
        raise GrammarError(operator.at, message)
    wanted = " or ".join(_ARTICLES[one] for one in added)
    found = f"found {_ARTICLES[right]}"
    raise GrammarError(e.first(node).at, f"expected {wanted} after {operator.text!r}, {found}")


def _check_comparable(left: Sum, right: Sum, at: int) -> None:
    number = right.literal or left.literal
    sum_ = left if right.literal or not number else right
    is_what = f"{sum_.text} is {_ARTICLES[sum_.type]}"
    if number is None:
        fits = left.type == right.type
        message = f"{is_what}: expected another, found {_ARTICLES[right.type]}, {right.text}"
    elif sum_.type == "count":
        fits = number.unit is None and number.value.denominator == 1
        message = f"{sum_.text} is counted: expected a whole number without a unit"
    elif sum_.type == "instant":
        fits, message = False, f"{is_what}: expected another, or a difference of two"
    else:
        units, allowed = _ALLOWED.get(sum_.text) or _ALLOWED[sum_.type]
        fits = number.unit in allowed or (number.unit is None and number.value == 0)
        message = f"{is_what}: expected a number in {units}"
        if number.unit is None:
            message = f"expected a unit ({units}) with the number {sum_.text} is held against"
    if not fits:
        raise GrammarError(at, message)
