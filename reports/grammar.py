"""The grammar of ``--expect``, ``--fail-on`` and scenario files: text to a tree of Python's own.

What is written is turned into a Python expression, whose tree Python's parser makes::

    last_sent - verdict <= 20ms     last_sent - verdict <= 20 * ms
    no push after verdict           no(push, after=verdict)
    no late-frames                  no(late_frames)
    outcome == hung-up              outcome == hung_up
    new:late-frames                 new(late_frames)

Python evaluates nothing. What names there are, and what goes together, is for whoever reads the
tree; a name that is missing is one that there is not.
"""

from __future__ import annotations

import ast
import keyword
import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import Final, Literal

__all__ = ["Expression", "GrammarError", "Quantity", "Token", "expected", "read", "terms"]

LONGEST: Final = 1000
"""Characters of the longest text that is looked at."""

_TOKEN: Final = re.compile(
    r"(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<word>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?)"
    r"|(?P<operator><=|>=|==|!=|[<>+-])"
    r"|(?P<other>[#:%])",
    re.ASCII,
)
_KEBAB: Final = re.compile(r"[a-z]+(?:-[a-z]+)+", re.ASCII)

_Unit = Literal["ns", "samples", "%"]
_UNITS: Final[dict[str, tuple[_Unit, int]]] = {
    "ms": ("ns", 1_000_000),
    "s": ("ns", 1_000_000_000),
    "sample": ("samples", 1),
    "samples": ("samples", 1),
    "%": ("%", 1),
}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text."""

    kind: str
    text: str
    """Empty: the end of the text."""
    at: int
    column: int = 0
    """Where it stands in the Python expression."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit. Without one it is a count, and zero is zero of anything."""

    value: Fraction
    """Nanoseconds where it is a length of time."""
    unit: _Unit | None


class GrammarError(ValueError):
    """A text says nothing that is understood."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position
        """Index of the character it went wrong at."""
        self.message = message
        """What was expected there, and what was found."""


def expected(what: str, found: Token, known: Iterable[str] = ()) -> GrammarError:
    """The error that something else is needed; of the known words it names what is most alike."""
    alike = get_close_matches(found.text, [*known], 1) if found.kind == "word" else []
    hint = f" ({alike[0]}?)" if alike else ""
    said = repr(found.text) if found.text else "the end"
    return GrammarError(found.at, f"expected {what}, found {said}{hint}")


@dataclass(frozen=True, slots=True)
class Expression:
    """A text that was read."""

    text: str
    tree: ast.expr
    selector: Token | None
    """What follows a ``#`` in front; ``None``: there is none."""
    tokens: Sequence[Token]
    """Of the tree, in order, and the first that is not in it: the end of the text, or what does not
    go there."""

    def first(self, node: ast.expr | ast.keyword) -> Token:
        """The token a node begins with: that of its name, if it is one."""
        return self.tokens[self._index(node.col_offset)]

    def before(self, node: ast.expr) -> Token:
        """The token before a node that is not the first."""
        return self.tokens[self._index(node.col_offset) - 1]

    def said(self, node: ast.expr) -> str:
        """A node as it was written, with single spaces."""
        last = self.tokens[self._index(node.end_col_offset or 0) - 1]
        return " ".join(self.text[self.first(node).at : last.at + len(last.text)].split())

    def _index(self, column: int) -> int:
        return bisect_left(self.tokens, column, key=lambda token: token.column)

    def quantity(self, node: ast.expr) -> Quantity | None:
        """The number that a node is, exactly as it was written; ``None``: it is a name or a sum.

        Raises:
            GrammarError: its unit is none.
        """
        match node:
            case ast.Constant():
                return Quantity(Fraction(self.first(node).text), None)
            case ast.BinOp(left=number, op=ast.Mult(), right=unit):
                token = self.first(unit)
                if token.text not in _UNITS:
                    raise expected("a unit (ms, s or samples)", token)
                name, factor = _UNITS[token.text]
                return Quantity(Fraction(self.first(number).text) * factor, name)
        return None


def terms(node: ast.expr) -> list[tuple[Literal[1, -1], ast.expr]]:
    """What a sum adds up, with the sign of each; of anything else itself."""
    found: list[tuple[Literal[1, -1], ast.expr]] = []
    while isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Mult):
        found.append((1 if isinstance(node.op, ast.Add) else -1, node.right))
        node = node.left
    return [(1, node), *reversed(found)]


# --- Reading a text ------------------------------------------------------------------------------


def read(text: str, kebab: Container[str], opens: Container[str]) -> Expression:
    """The expression that a text is.

    Args:
        text: of any content.
        kebab: words with hyphens in them, where those are no minus. After ``no`` none is.
        opens: what it may begin with: ``#``, ``no``, ``not``, ``new``.

    Raises:
        GrammarError: it is none, whatever its names mean.
    """
    if len(text) > LONGEST:
        raise GrammarError(0, f"expected at most {LONGEST} characters, found {len(text)}")
    tokens = [*_tokens(text, kebab)]
    selector = None
    if tokens[0].text == "#" and "#" in opens:
        selector, tokens = tokens[1], tokens[2:] or tokens[-1:]
    written = _as_python(tokens, opens)
    tree = ast.parse(written.python.rstrip(), mode="eval").body
    return Expression(text, tree, selector, written.tokens)


def _tokens(text: str, kebab: Container[str]) -> Iterator[Token]:
    at, last = 0, ""
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            raise expected("a name, a number or a comparison", Token("other", text[at], at))
        kind, last_but_one, last = match.lastgroup or "", last, match.group()
        hyphened = _KEBAB.match(text, at)
        if hyphened is not None and (last_but_one == "no" or hyphened.group() in kebab):
            last = hyphened.group()
        yield Token(kind, last, at)
        at += len(last)
    yield Token("end", "", len(text))


class _Writer:
    """A Python expression under way, and every token with its column in it."""

    def __init__(self) -> None:
        self.python = ""
        self.tokens: list[Token] = []

    def put(self, token: Token, piece: str, before: str = " ") -> None:
        self.python += before if self.python else ""
        self.tokens.append(replace(token, column=len(self.python)))
        self.python += piece


_OPENED: Final = {"no": "no(", "not": "not", "new": "new("}


def _as_python(tokens: Sequence[Token], opens: Container[str]) -> _Writer:
    """As far as names and numbers take turns with operators, so that Python can parse it; the token
    that comes then is the last."""
    out = _Writer()
    opened = tokens[0].text if tokens[0].text in opens else ""
    if opened not in _OPENED or (opened == "new" and tokens[1].text != ":"):
        opened = ""
    if opened:
        out.put(tokens[0], _OPENED[opened])
        tokens = tokens[2:] if opened == "new" else tokens[1:]
    due, sided = True, opened != "no"
    for token in tokens:
        if due:
            due = False
            if token.kind in ("number", "word"):
                out.put(token, _operand(token))
                continue
            out.put(token, "_")
        if out.tokens[-1].kind == "number" and (token.kind == "word" or token.text == "%"):
            out.put(replace(token, kind="unit"), _operand(token), " * ")
        elif not sided and token.text in ("after", "before"):
            out.put(token, f"{token.text}=", ", ")
            due = sided = True
        elif token.kind == "operator" and not opened:
            out.put(token, token.text)
            due = True
        else:
            break
    out.python += ")" if opened in ("no", "new") else ""
    out.put(token, "")
    return out


def _operand(token: Token) -> str:
    """A token as Python reads it as one name or number, at no other length than it needs."""
    if token.kind == "number":
        return token.text.lstrip("0") or "0"
    if token.text == "%" or any(keyword.iskeyword(part) for part in token.text.split(".")):
        return "_"
    return token.text.replace("-", "_")
