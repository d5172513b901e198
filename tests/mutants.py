"""Changes the account's code a little at a time, and lists the changes no test notices.

    python -m tests.mutants [--module 'reports/account/*'] [--minutes 60] [--jobs 2]

For developers, not for CI: needs the extra ``mutation`` (mutmut), which runs the fast tests that
call a changed function in a fork. It works on a copy (``--work``), so that the working tree stays
as it is; what was tried before, and whose code is the same, is not tried again. Module constants
and what is decorated are not changed.

A change that survives is either one nobody can see, or one a test is missing for.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("reports/account", "reports/verdicts", "probe/follow", "probe/assemble")
MUTMUT = str(Path(sys.executable).parent / "mutmut")
FAST = "not livekit and not registry and not browser"

UNFIT = "not test_a_page_balances_a_trace_once"
"""Tests that look at the code itself, which mutmut puts a step in front of."""

STATUS = {None: "not tried", 0: "survived", 1: "killed", 3: "killed", 33: "no test", 5: "no test"}
"""By exit code of the tests; any other is a call that did not end."""


def modules(patterns: Sequence[str]) -> list[str]:
    """Modules to change, as paths from the root; found anew each time, for files move."""
    every = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    names = [str(path.relative_to(ROOT)) for path in every]
    return [name for name in names if not patterns or any(fnmatch(name, p) for p in patterns)]


def imports(path: Path) -> Iterator[str]:
    """Names a file of tests imports itself."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def bearing_tests() -> list[str]:
    """Files of tests that call the modules themselves or through `reports.analyze`, and those that
    build on one."""
    called = ("reports.analyze", *(f"{folder.replace('/', '.')}." for folder in FOLDERS))
    files = {
        f"tests.{path.stem}.": tuple(imports(path))
        for path in sorted((ROOT / "tests").glob("test_*.py"))
    }
    bearing: tuple[str, ...] = ()
    for _ in range(2):
        bearing = tuple(
            name
            for name, names in files.items()
            if any(f"{each}.".startswith(called + bearing) for each in names)
        )
    return [f"{name.replace('.', '/').rstrip('/')}.py" for name in bearing]


def prepare(work: Path, mutated: Sequence[str], tests: Sequence[str]) -> None:
    """A copy of the working tree with mutmut's settings."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    files = [name for name in listed if (ROOT / name).is_file()]
    for old in work.iterdir():
        if old.name not in ("mutants", ".hypothesis"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    for name in files:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, work / name)
    options = {
        "source_paths": ["probe", "reports"],
        "only_mutate": list(mutated),
        "also_copy": sorted({name.split("/")[0] for name in files} - {"probe", "reports"}),
        # Found at random, a failing example would be kept and kill every mutant after it.
        "pytest_add_cli_args": [
            "-m",
            FAST,
            "-k",
            UNFIT,
            "-p",
            "no:cacheprovider",
            "--hypothesis-profile=ci",
        ],
        "pytest_add_cli_args_test_selection": list(tests),
    }
    with (work / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n[tool.mutmut]\nuse_git_change_detection = false\n")
        file.writelines(f"{name} = {json.dumps(value)}\n" for name, value in options.items())


def run(work: Path, jobs: int, minutes: float) -> int:
    """Let mutmut try what it has not tried yet, the quickest first, for so long."""
    command = [MUTMUT, "run", "--max-children", str(jobs)]
    with (work / "mutmut.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=work, stdout=log, stderr=log, start_new_session=True
        )
        try:
            return process.wait(minutes * 60)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            # With the forks that try mutants; what is known by then is on disk.
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            return 0


def results(work: Path, mutated: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """``(module, mutant, status)`` of each mutant."""
    for module in mutated:
        meta = work / "mutants" / f"{module}.meta"
        if meta.is_file():
            for mutant, code in json.loads(meta.read_text())["exit_code_by_key"].items():
                yield module, mutant, STATUS.get(code, "never ended")


def change(work: Path, module: str, mutant: str) -> str:
    """What a mutant changes, and where."""
    name = mutant.rpartition(".")[2].partition("__mutmut_")[0]
    # mutmut calls a function x_function, and a method xǁClassǁmethod.
    *above, function = name.split("ǁ")[1:] or [name.removeprefix("x_")]
    shown = subprocess.run(
        [MUTMUT, "show", mutant], cwd=work, check=True, capture_output=True, text=True
    ).stdout
    begun, hunk = re.split(r"^@@ -(\d+).*\n", shown, maxsplit=1, flags=re.MULTILINE)[1:]
    lines = hunk.splitlines()
    first = next(k for k, line in enumerate(lines) if line[:1] in "+-")
    body = ast.parse((work / module).read_text(encoding="utf-8")).body
    for class_name in above:
        body = next(n for n in body if isinstance(n, ast.ClassDef) and n.name == class_name).body
    at = next(n.lineno for n in body if isinstance(n, ast.FunctionDef) and n.name == function)
    changed = (f"    {line[0]} {line[1:].strip()}\n" for line in lines if line[:1] in "+-")
    place = f"{module}:{at + int(begun) - 1 + first} {'.'.join([*above, function])}"
    return f"{place} ({mutant})\n{''.join(changed)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--module", action="append", default=[], metavar="GLOB", help="path")
    parser.add_argument("--tests", nargs="+", default=None, metavar="FILE", help="instead of all")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after so long")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--work", type=Path, default=ROOT / ".cache" / "mutants")
    given = parser.parse_args()
    mutated, tests = modules(given.module), given.tests or bearing_tests()
    if not mutated:
        parser.error(f"no module of {', '.join(FOLDERS)} is called {' or '.join(given.module)}")
    given.work.mkdir(parents=True, exist_ok=True)
    prepare(given.work, mutated, tests)
    print(f"{len(mutated)} modules, {len(tests)} files of tests; log: {given.work / 'mutmut.log'}")
    code = run(given.work, given.jobs, given.minutes)
    if code:
        print("".join((given.work / "mutmut.log").read_text().splitlines(keepends=True)[-40:]))
        return code
    found = list(results(given.work, mutated))
    for module, mutant, status in found:
        if status not in ("killed", "not tried"):
            print(f"{status}: {change(given.work, module, mutant)}")
    for module in mutated:
        counts = Counter(status for name, _, status in found if name == module)
        print(f"{module}: {', '.join(f'{n} {s}' for s, n in sorted(counts.items())) or 'nothing'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
