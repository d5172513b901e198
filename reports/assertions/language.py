"""Text to assertion. Errors say the column, what was expected there and what was found.

The grammar, which is all there is::

    assertion  = [ "#" ( NUMBER | WORD ) ] claim
    claim      = "no" EVENT [ ( "after" | "before" ) INSTANT ]
               | "no" ( INSTANT | RULE )
               | [ "not" ] FLAG
               | ( "kind" | "outcome" ) ( "==" | "!=" ) WORD
               | sum COMPARE sum { COMPARE sum }
    sum        = term { ( "+" | "-" ) term }
    term       = NAME | NUMBER [ "ms" | "s" | "samples" ]
    COMPARE    = "<" | "<=" | ">" | ">=" | "==" | "!="

A sum has a type. Instants differ by a length, and a length shifts an instant; nothing else is added
up. Compared are sums of one type, and an amount of audio with samples or with its length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Final, Literal

from probe.errors import UsageError
from reports.assertions.vocabulary import (
    AUDIO_EVENTS,
    AUDIO_INSTANTS,
    EVENTS,
    MARKS,
    NAMES,
    WORDS,
    Name,
    Type,
)
from reports.findings import RULES

__all__ = [
    "Absence",
    "Assertion",
    "AssertionSyntaxError",
    "Chain",
    "Choice",
    "Claim",
    "Flag",
    "Number",
    "Sum",
    "Unfound",
    "parse",
]

Compare = Literal["<", "<=", ">", ">=", "==", "!="]
COMPARES: Final[tuple[Compare, ...]] = ("<=", ">=", "==", "!=", "<", ">")

LONGEST: Final = 1000
"""Characters of the longest assertion that is looked at."""


class AssertionSyntaxError(UsageError):
    """An assertion is not one. One line: the text, the column, what was expected and found."""

    def __init__(self, text: str, position: int, message: str) -> None:
        shown = text if len(text) <= 80 else f"{text[:79]}…"
        super().__init__(f"assertion {shown!r}, column {position + 1}: {message}")
        self.text = text
        self.position = position
        """Index of the character it went wrong at."""


@dataclass(frozen=True, slots=True)
class Number:
    """A literal. Without a unit it is a count, and zero is zero of anything."""

    value: Fraction
    unit: Literal["ns", "samples"] | None


@dataclass(frozen=True, slots=True)
class Sum:
    """Names and literals, added up."""

    terms: tuple[tuple[Literal[1, -1], Name | Number], ...]
    type: Type
    text: str

    @property
    def literal(self) -> Number | None:
        """The literal it consists of, if it is one."""
        term = self.terms[0][1]
        return term if len(self.terms) == 1 and isinstance(term, Number) else None

    @property
    def names(self) -> tuple[Name, ...]:
        return tuple(term for _, term in self.terms if isinstance(term, Name))


@dataclass(frozen=True, slots=True)
class Chain:
    """``a < b <= c``: each neighbour compared with the next."""

    sums: tuple[Sum, ...]
    compares: tuple[Compare, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A word is one of a few, or is not."""

    name: Name
    word: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Flag:
    """Something is so, or is not."""

    name: Name
    negated: bool


@dataclass(frozen=True, slots=True)
class Absence:
    """Something did not happen, at all or on one side of an instant."""

    event: str
    side: Literal["after", "before"] | None
    instant: str | None


@dataclass(frozen=True, slots=True)
class Unfound:
    """A rule of `reports.findings` did not fire, at any severity."""

    rule: str


Claim = Chain | Choice | Flag | Absence | Unfound


@dataclass(frozen=True, slots=True)
class Assertion:
    """What must hold."""

    text: str
    selector: int | str | None
    """Which barge-ins it is about: a number from 1, a kind or an outcome; ``None``: all."""
    claim: Claim
    per_barge_in: bool
    """Whether it is judged barge-in by barge-in, or once for the trace."""


def parse(text: str) -> Assertion:
    """The assertion a text stands for.

    Raises:
        AssertionSyntaxError: it stands for none.
    """
    return _Parser(text).assertion()


_TOKEN: Final = re.compile(
    r"(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?)"
    r"|(?P<compare><=|>=|==|!=|<|>)"
    r"|(?P<sign>[+-])"
    r"|(?P<hash>#)"
)
_RULE: Final = re.compile(r"[a-z]+(?:-[a-z]+)+", re.ASCII)
_UNITS: Final = {"ms": 1_000_000, "s": 1_000_000_000}
_ALLOWED: Final = {
    "ms, s or samples": ("ns", "samples"),
    "ms or s": ("ns",),
    "samples": ("samples",),
}
_ARTICLES: Final[dict[Type, str]] = {
    "instant": "an instant",
    "length": "a length of time",
    "amount": "an amount of audio",
    "count": "a number",
    "word": "a word",
    "flag": "a yes or no",
}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > LONGEST:
            raise self._error(0, f"expected at most {LONGEST} characters, found {len(text)}")
        self.tokens = self._tokens()
        self.next = 0

    def _tokens(self) -> list[_Token]:
        tokens = []
        at = 0
        while at < len(self.text):
            if self.text[at].isspace():
                at += 1
                continue
            match = _TOKEN.match(self.text, at)
            if match is None or not match.group().isascii():
                raise self._error(
                    at, f"expected a name, a number or a comparison, {self._found_at(at)}"
                )
            tokens.append(_Token(match.lastgroup or "", match.group(), at))
            at = match.end()
        tokens.append(_Token("end", "", len(self.text)))
        return tokens

    def _found_at(self, at: int) -> str:
        return f"found {self.text[at]!r}"

    def _error(self, at: int, message: str) -> AssertionSyntaxError:
        return AssertionSyntaxError(self.text, at, message)

    def _expected(self, what: str, known: tuple[str, ...] = ()) -> AssertionSyntaxError:
        token = self.token
        found = f"found {token.text!r}" if token.kind != "end" else "found the end"
        alike = get_close_matches(token.text, known, 1) if token.kind == "name" else []
        return self._error(
            token.at, f"expected {what}, {found}" + (f" ({alike[0]}?)" if alike else "")
        )

    @property
    def token(self) -> _Token:
        return self.tokens[self.next]

    def _take(self) -> _Token:
        token = self.token
        self.next += 1
        return token

    def _is(self, *texts: str) -> bool:
        return self.token.text in texts and self.token.kind != "end"

    # --- The grammar -----------------------------------------------------------------------------

    def assertion(self) -> Assertion:
        at = self.token.at
        selector = self._selector() if self.token.kind == "hash" else None
        claim = self._claim()
        if self.token.kind != "end":
            raise self._expected("the end")
        per_barge_in = _per_barge_in(claim, selector)
        if selector is not None and not per_barge_in:
            raise self._error(
                at, "expected no barge-in to be chosen: this is about the whole trace"
            )
        return Assertion(self.text.strip(), selector, claim, per_barge_in)

    def _selector(self) -> int | str:
        self._take()
        words = (*WORDS["kind"], *WORDS["outcome"])
        token = self.token
        if token.kind == "number" and token.text.isdigit() and 0 < int(token.text) < 10**6:
            return int(self._take().text)
        if token.text in words:
            return self._take().text
        raise self._expected(
            f"the number of a barge-in from 1, or one of {', '.join(words)}", words
        )

    def _claim(self) -> Claim:
        if self._is("no"):
            return self._absence()
        if self._is("not"):
            self._take()
            name = NAMES.get(self.token.text)
            flags = tuple(n.name for n in NAMES.values() if n.type == "flag")
            if name is None or name.type != "flag":
                raise self._expected(f"one of {', '.join(flags)}", flags)
            self._take()
            return Flag(name, negated=True)
        name = NAMES.get(self.token.text)
        if name is not None and name.type == "flag":
            self._take()
            return Flag(name, negated=False)
        if name is not None and name.type == "word":
            return self._choice(name)
        return self._chain()

    def _rule(self) -> Unfound | None:
        """A rule's name, whose hyphens are no minus; ``None``: there is none."""
        begin = self.token.at
        match = _RULE.match(self.text, begin)
        if match is None:
            return None
        rule = match.group()
        if rule not in RULES:
            alike = get_close_matches(rule, RULES, 1)
            hint = f" ({alike[0]}?)" if alike else ""
            raise self._error(begin, f"expected a rule, found {rule!r}{hint}")
        while self.token.kind != "end" and self.token.at < match.end():
            self._take()
        return Unfound(rule)

    def _absence(self) -> Absence | Unfound:
        self._take()
        rule = self._rule()
        if rule is not None:
            return rule
        instants = tuple(n.name for n in NAMES.values() if n.type == "instant")
        known = (*EVENTS, *(name for name in instants if name not in MARKS))
        event = self.token.text
        if event not in known:
            raise self._expected(f"a rule or one of {', '.join(known)}", known)
        self._take()
        if event not in EVENTS or not self._is("after", "before"):
            if event in AUDIO_EVENTS:
                raise self._expected("after and an instant")
            if self.token.kind != "end":
                raise self._expected(
                    "the end" if event not in EVENTS else "after, before or the end"
                )
            return Absence(event, None, None)
        if event in AUDIO_EVENTS and self._is("before"):
            raise self._expected("after: audio is looked for from an instant on")
        side: Literal["after", "before"] = "after" if self._take().text == "after" else "before"
        allowed = tuple(AUDIO_INSTANTS) if event in AUDIO_EVENTS else instants
        if self.token.text not in allowed:
            raise self._expected(f"one of {', '.join(allowed)}", allowed)
        return Absence(event, side, self._take().text)

    def _choice(self, name: Name) -> Choice:
        self._take()
        if not self._is("==", "!="):
            raise self._expected("== or !=")
        negated = self._take().text == "!="
        words = WORDS[name.name]
        if self.token.text not in words:
            raise self._expected(f"one of {', '.join(words)}", words)
        return Choice(name, self._take().text, negated)

    def _chain(self) -> Chain:
        sums = [self._sum()]
        compares: list[Compare] = []
        if self.token.kind != "compare":
            raise self._expected("a comparison (< <= > >= == !=)")
        while self.token.kind == "compare":
            compare = self._take()
            compares.append(next(c for c in COMPARES if c == compare.text))
            at = self.token.at
            sums.append(self._sum())
            self._comparable(sums[-2], sums[-1], at)
        if not any(s.names for s in sums):
            raise self._error(
                0, "expected a name on one side of the comparison, found only numbers"
            )
        return Chain(tuple(sums), tuple(compares))

    def _comparable(self, left: Sum, right: Sum, at: int) -> None:
        number = right.literal or left.literal
        other = left if right.literal is not None else right
        if number is not None:
            self._fits(other, number, at)
        elif left.type != right.type or (left.names == right.names == ()):
            raise self._differ(left, right, at)

    def _fits(self, sum_: Sum, number: Number, at: int) -> None:
        """Whether a literal can be held against a sum."""
        if sum_.type == "count":
            if number.unit is not None or number.value.denominator != 1:
                raise self._error(
                    at, f"{sum_.text} is counted: expected a whole number without a unit"
                )
            return
        units = {"amount": "ms, s or samples", "length": "ms or s"}.get(sum_.type)
        if units is None:
            raise self._error(
                at, f"{sum_.text} is an instant: expected another, or a difference of two"
            )
        if sum_.text == "unaccounted":
            units = "samples"
        if number.unit is None and number.value != 0:
            raise self._error(
                at, f"expected a unit ({units}) with the number {sum_.text} is held against"
            )
        if number.unit is not None and number.unit not in _ALLOWED[units]:
            raise self._error(
                at, f"{sum_.text} is {_ARTICLES[sum_.type]}: expected a number in {units}"
            )

    def _differ(self, left: Sum, right: Sum, at: int) -> AssertionSyntaxError:
        return self._error(
            at,
            f"{left.text} is {_ARTICLES[left.type]}: expected another, "
            f"found {_ARTICLES[right.type]}, {right.text}",
        )

    def _sum(self) -> Sum:
        begin = self.token.at
        terms: list[tuple[Literal[1, -1], Name | Number]] = []
        term, found = self._term()
        terms.append((1, term))
        while self.token.kind == "sign":
            sign = self._take()
            at = self.token.at
            term, other = self._term()
            terms.append((1 if sign.text == "+" else -1, term))
            found = self._added(found, sign, other, at)
        end = self.tokens[self.next - 1]
        text = self.text[begin : end.at + len(end.text)]
        return Sum(tuple(terms), found, " ".join(text.split()))

    def _added(self, left: Type, sign: _Token, right: Type, at: int) -> Type:
        if left == "length" and right == "length":
            return "length"
        if left == "instant" and right == "length":
            return "instant"
        if left == "instant" and right == "instant" and sign.text == "-":
            return "length"
        if left == "length" and right == "instant" and sign.text == "+":
            return "instant"
        if left not in ("instant", "length"):
            raise self._error(sign.at, f"{_ARTICLES[left]} is not added up; expected a comparison")
        wanted = "an instant or a length of time" if sign.text == "-" else "a length of time"
        if left == "length" and sign.text == "-":
            wanted = "a length of time"
        raise self._error(at, f"expected {wanted} after {sign.text!r}, found {_ARTICLES[right]}")

    def _term(self) -> tuple[Name | Number, Type]:
        token = self.token
        if token.kind == "number":
            return self._number()
        name = NAMES.get(token.text)
        if name is None:
            known = tuple(NAMES)
            groups = sorted(n for n in known if n.startswith(f"{token.text}."))
            if groups and token.kind == "name":
                raise self._expected(f"one of {', '.join(groups)}")
            raise self._expected("a name or a number with its unit", known)
        if name.type in ("word", "flag"):
            raise self._error(token.at, f"{name.name} is {_ARTICLES[name.type]}: it stands alone")
        self._take()
        return name, name.type

    def _number(self) -> tuple[Number, Type]:
        token = self._take()
        value = Fraction(token.text)
        if self.token.kind == "name" and self.token.text in _UNITS:
            return Number(value * _UNITS[self._take().text], "ns"), "length"
        if self._is("sample", "samples"):
            self._take()
            return Number(value, "samples"), "amount"
        if self.token.kind == "name":
            raise self._expected("a unit (ms, s or samples)")
        return Number(value, None), "count"


def _per_barge_in(claim: Claim, selector: int | str | None) -> bool:
    if isinstance(claim, Unfound):
        return False
    if isinstance(claim, Chain):
        return any(name.per == "barge-in" for s in claim.sums for name in s.names)
    if isinstance(claim, Absence):
        return claim.side is not None or selector is not None
    return claim.name.per == "barge-in"
