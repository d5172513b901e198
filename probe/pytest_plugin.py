"""The pytest plugin: a fixture that records sessions made in a test, and asserts about them.

    async def test_it_stops(sinkprobe):
        async with AgentSession(...) as session:
            call = sinkprobe.attach(session)
            ...
        assert call.verdict < call.clear < call.resume
        assert call.leaked.sent <= "20ms"

Installing sinkprobe loads it. It imports neither livekit nor the reports before a test uses it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from probe.attach import Recording
    from probe.testing.recorded import RecordedCall

__all__ = ["SessionProbe", "sinkprobe"]

_RECORDED: pytest.StashKey[SessionProbe] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("sinkprobe").addoption(
        "--sinkprobe-dir",
        metavar="DIR",
        type=Path,
        help="keep the traces of failing tests in this folder",
    )


class SessionProbe:
    """What the fixture gives: `attach` records a session for the length of the test."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.calls: list[RecordedCall] = []
        """Every call recorded so far, in the order they were attached to."""

    def attach(self, session: Any, **options: Any) -> RecordedCall:
        """Record a session, from now until its figures are first asked for, or the test is over.

        Args:
            session: the `AgentSession`, started or not.
            options: those of `probe.attach`.

        Raises:
            ProbeError: not a session, or recorded already.
        """
        import probe
        from probe.testing.recorded import RecordedCall

        recording: Recording = probe.attach(session, self._directory / "call.jsonl", **options)
        self.calls.append(RecordedCall(recording))
        return self.calls[-1]

    def close(self) -> None:
        """End every recording; idempotent."""
        for call in self.calls:
            call.close()


@pytest.fixture
def sinkprobe(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionProbe]:
    """Records `AgentSession`s: ``call = sinkprobe.attach(session)``, then assert about ``call``."""
    probe = SessionProbe(tmp_path)
    request.node.stash[_RECORDED] = probe
    try:
        yield probe
    finally:
        probe.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    probe = item.stash.get(_RECORDED, None)
    if probe is None or report.when != "call" or not report.failed:
        return report
    probe.close()
    directory: Path | None = item.config.getoption("--sinkprobe-dir")
    kept = [_kept(recorded.path, item, directory) for recorded in probe.calls]
    if kept:
        report.sections.append(("sinkprobe traces", "\n".join(map(str, kept)) + "\n"))
    return report


def _kept(trace: Path, item: pytest.Item, directory: Path | None) -> Path:
    """Where a failing test's trace is to be found: copied to ``directory`` if there is one."""
    if directory is None:
        return trace
    directory.mkdir(parents=True, exist_ok=True)
    test = re.sub(r"[^\w.\-]+", "_", item.nodeid).strip("_")
    target = directory / f"{test}-{trace.name}"
    shutil.copyfile(trace, target)
    return target


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    if not any(type(side).__module__.startswith("reports.") for side in (left, right)):
        return None
    from reports.assertions.terms import why

    return why(op, left, right)
