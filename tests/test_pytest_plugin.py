"""The pytest plugin, in the pytest of a user: tests that record a session and assert about it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reports import analyze
from reports.assertions.language import AssertionSyntaxError
from reports.assertions.terms import Words, why
from tests.test_assertions import Calls

pytest_plugins = ["pytester"]

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def words(tmp_path: Path) -> Words:
    analysis = Calls(tmp_path)()
    return Words(lambda: analysis)


def test_a_comparison_of_words_is_the_assertion_of_the_language(words: Words) -> None:
    assert words.pause <= words.verdict < words.clear
    assert not words.clear < words.verdict
    assert words.last_sent - words.verdict <= "10s"
    assert words.leaked.sent >= "0ms"
    assert words.outcome == "committed"
    assert words.barge_in(1).kind != "overlap"
    assert words.barge_ins == 1
    assert words.balanced


def test_a_comparison_that_fails_tells_the_marks_around_it(words: Words) -> None:
    told = why("<", words.clear, words.verdict)
    assert told is not None
    assert told[0] == "clear < verdict"
    assert any("<- clear" in line for line in told)
    assert why(">", "1ms", words.stop) == why("<", words.stop, "1ms")
    assert why("in", words.clear, words.verdict) is None
    assert why("<", 1, 2) is None


def test_what_is_no_word_is_no_attribute(words: Words) -> None:
    for of in (words, words.leaked):
        with pytest.raises(AttributeError):
            of.nonsense  # noqa: B018
    with pytest.raises(AssertionSyntaxError):
        assert words.leaked.sent <= words.verdict
    with pytest.raises(ValueError, match="same barge-in"):
        assert words.barge_in(1).clear < words.barge_in(2).clear


def test_what_the_trace_cannot_tell_is_no_pass_and_no_plain_failure(tmp_path: Path) -> None:
    analysis = Calls(tmp_path)(untapped="sent")
    words = Words(lambda: analysis)
    with pytest.raises(AssertionError, match="not judged"):
        assert words.leaked.sent <= "20ms"
    with pytest.raises(AssertionError, match="not judged"):
        assert not words.balanced


def _example() -> str:
    """The complete test that README shows."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (example,) = [block for block in blocks if "sinkprobe.attach(session)" in block]
    return example


@pytest.mark.livekit
def test_the_test_in_readme_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_example())
    _run(pytester).stdout.fnmatch_lines(["*1 passed*"])


@pytest.mark.livekit
def test_it_goes_with_the_frameworks_own_way_of_testing_agents(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from livekit import rtc
        from livekit.agents import Agent, AgentSession

        from probe.scenarios.models import ScriptedLLM
        from probe.testing import ReferenceAudioOutput


        class Humming(Agent):
            async def tts_node(self, text, model_settings):
                async for _ in text:
                    yield rtc.AudioFrame(b"\\1\\2" * 4800, 24_000, 1, 4800)


        @pytest.mark.asyncio
        async def test_an_answer_is_played_whole(sinkprobe):
            async with AgentSession(llm=ScriptedLLM(lambda: None)) as session:
                session.output.audio = ReferenceAudioOutput(24_000, 1)
                call = sinkprobe.attach(session)
                await session.start(Humming(instructions="Hum."))
                result = await session.run(user_input="hello")
                result.expect.next_event().is_message(role="assistant")
            assert call.barge_ins == 0
            assert call.swallowed == 0
            assert call.analysis.totals.captured_samples > 0
        """
    )
    _run(pytester).stdout.fnmatch_lines(["*1 passed*"])


@pytest.mark.livekit
def test_a_failing_test_shows_the_leak_and_keeps_its_trace(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_example() + "    assert call.clear < call.verdict\n")
    result = _run(pytester, "--sinkprobe-dir", "kept")
    result.stdout.fnmatch_lines(
        [
            "*assert clear < verdict",
            "*verdict is * before clear",
            "*<- verdict",
            "*<- clear",
            "*sinkprobe traces*",
            "*1 failed*",
        ]
    )
    (kept,) = (pytester.path / "kept").iterdir()
    assert analyze(kept).barge_ins


@pytest.mark.livekit
def test_a_passing_test_keeps_nothing_and_leaves_the_session_untapped(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        from livekit.agents import AgentSession


        def test_two_in_one(sinkprobe):
            sessions = AgentSession(), AgentSession()
            before = [(type(s.output), dict(vars(s.output))) for s in sessions]
            first, second = map(sinkprobe.attach, sessions)
            assert first.path != second.path
            sinkprobe.close()
            assert [(type(s.output), dict(vars(s.output))) for s in sessions] == before
        """
    )
    _run(pytester, "--sinkprobe-dir", "kept").stdout.fnmatch_lines(["*1 passed*"])
    assert not (pytester.path / "kept").exists()


def test_a_run_that_records_nothing_imports_no_livekit(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys


        def test_clean():
            assert not [name for name in sys.modules if name.split(".")[0] in ("livekit", "numpy")]
        """
    )
    _run(pytester).stdout.fnmatch_lines(["*1 passed*"])


def _run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    # The exit code is no evidence: livekit's native library may take the process down at its end.
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments, timeout=120)
