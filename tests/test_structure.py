"""The structure of the code itself: what may not hold another, and what results are made of."""

from __future__ import annotations

import ast
import dataclasses
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reports.results import Analysis, Figure, InForce, Run

ROOT = Path(__file__).resolve().parent.parent
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("probe", "reports")
    for path in sorted((ROOT / package).rglob("*.py"))
}


def imported(module: str, path: Path) -> Iterator[str]:
    """Modules of ours that a module imports when it is itself imported, those it only takes types
    from included. What a function imports when it is called ties nothing at import."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    nodes: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                deeper = f"{base}.{alias.name}"
                yield deeper if deeper in MODULES else base


def test_no_module_is_imported_by_what_it_imports() -> None:
    graph = {
        module: {name for name in imported(module, path) if name in MODULES and name != module}
        for module, path in MODULES.items()
    }
    done: set[str] = set()
    circles: list[str] = []

    def visit(module: str, above: tuple[str, ...]) -> None:
        if module in above:
            circles.append(" -> ".join([*above[above.index(module) :], module]))
            return
        if module in done:
            return
        for name in sorted(graph[module]):
            visit(name, (*above, module))
        done.add(module)

    for module in graph:
        visit(module, ())
    assert circles == []


def parts(hint: Any) -> Iterator[Any]:
    """A type and everything it is made of."""
    yield hint
    for inner in typing.get_args(hint):
        yield from parts(inner)


def results(kind: type) -> dict[type, dict[str, Any]]:
    """Every type of result that one holds, itself included, with the types of its fields."""
    found: dict[type, dict[str, Any]] = {}
    waiting = [kind]
    while waiting:
        one = waiting.pop()
        if one in found or not dataclasses.is_dataclass(one):
            continue
        found[one] = typing.get_type_hints(one)
        for hint in found[one].values():
            waiting += [part for part in parts(hint) if isinstance(part, type)]
    return found


FLOATS = {(Figure, "exact"), (InForce, "value"), (InForce, "default"), (Run, "at")}
"""A share in percent, a user's own threshold in a user's unit, and a place as a script gave it."""


def test_results_hold_integers_until_they_are_shown() -> None:
    held = results(Analysis)
    assert len(held) > 25
    floats = {
        (kind, name) for kind, hints in held.items() for name, hint in hints.items()
        if float in parts(hint)
    }  # fmt: skip
    assert floats == FLOATS
    in_ms = [
        (kind, name) for kind, hints in held.items() for name in hints if "ms" in name.split("_")
    ]
    assert in_ms == []


@pytest.mark.parametrize("package", ["account", "findings", "verdicts", "realtime"])
def test_no_rule_reads_a_rounded_figure(package: str) -> None:
    """A length in milliseconds is for the reader; what is compared is samples or nanoseconds."""
    for module, path in MODULES.items():
        if not module.startswith(f"reports.{package}"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare | ast.BinOp):
                rounded = [
                    inner.attr for inner in ast.walk(node)
                    if isinstance(inner, ast.Attribute) and inner.attr in ("ms", "value")
                ]  # fmt: skip
                texts = any(isinstance(inner, ast.JoinedStr) for inner in ast.walk(node))
                ofnone = isinstance(node, ast.Compare) and isinstance(
                    node.ops[0], ast.Is | ast.IsNot
                )
                assert texts or ofnone or not rounded, (module, node.lineno)
