"""A realtime model's conversation at a terminal: what is marked, what is a dash, what fits."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import reports
from probe.trace.events import Event
from reports.show import terminal
from reports.verdicts.explanations import explain_stop
from tests.realtime_traces import Provider
from tests.report_traces import Simulation, write
from tests.test_realtime_account import begun, cut_short

TABLE = "The conversation as either side holds it (ms of audio)\n"
STOPS = "How the generation of interrupted speeches was stopped\n"


def shown(tmp_path: Path, events: list[Event], width: int = 80) -> str:
    analysis = reports.analyze(write(tmp_path / "call.jsonl", events))
    text = terminal.render([analysis], width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    return text


def under(text: str, title: str) -> list[str]:
    return text.split(title, 1)[1].split("\n\n", 1)[0].splitlines()


def test_a_call_without_a_realtime_model_shows_nothing_of_one(tmp_path: Path) -> None:
    call = Simulation()
    call.capture(480)
    call.tick(3)
    text = shown(tmp_path, call.end())
    assert "realtime model" not in text
    assert TABLE not in text


def test_both_columns_stand_side_by_side_and_a_difference_is_marked(tmp_path: Path) -> None:
    provider = Provider()
    provider.server["hello"] = "user"
    provider.remember("hello", "user")
    provider.remember("note", "system")
    provider.server["call"] = provider.local["call"] = "function_call"
    table = under(shown(tmp_path, cut_short(provider).finish()), TABLE)
    rows = [" ".join(line.split()) for line in table]
    assert rows == [
        "server local generated captured sent",
        "user hello user hello",
        "≠ system note",
        "tool call call tool call call",
        "assistant m1 assistant m1 500.0 300.0 200.0",
        "assistant m2 ≠ 100.0 0.0 0.0",
        "≠ held by one side only",
        "m1: truncated at 200 ms, 200.0 ms sent",
        "m2: created at 200.0 ms, never pulled",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_figures_stand_below_their_names(tmp_path: Path, width: int) -> None:
    provider = Provider()
    provider.server["item_" + "x" * 60] = "function_call_output"
    head, *rows = under(shown(tmp_path, cut_short(provider).finish(), width), TABLE)
    (cut,) = [row for row in rows if " 300.0" in row]
    for name, figure in (("generated", "500.0"), ("captured", "300.0"), ("sent", "200.0")):
        assert head.index(name) + len(name) == cut.index(figure) + len(figure)
    assert head.index("local") == cut.rindex("assistant")


def test_what_the_trace_can_not_tell_is_a_dash(tmp_path: Path) -> None:
    provider = begun(Provider(askable=False))
    provider.interrupt()
    text = shown(tmp_path, provider.sim.end())
    (row,) = [line for line in under(text, TABLE) if "300.0" in line]
    assert row.split() == ["–", "–", "–", "300.0", "200.0"]
    assert re.search(r"generated after it +– ", text)
    assert re.search(r"generation went on +– ", text)
    assert "≠" not in text


def test_what_neither_side_holds_is_in_brackets(tmp_path: Path) -> None:
    provider = cut_short(Provider())
    del provider.server["m2"]
    table = under(shown(tmp_path, provider.finish()), TABLE)
    assert any(line.startswith("  (assistant m2)") for line in table)
    assert "  ( )  existed, and neither side holds it any more" in table
    assert not any("≠" in line for line in table)


def test_a_message_from_before_the_probe_has_no_figures(tmp_path: Path) -> None:
    provider = Provider()
    provider.server["old"] = "assistant"
    provider.remember("old")
    provider.respond()
    table = under(shown(tmp_path, provider.finish()), TABLE)
    assert table[1].split() == ["assistant", "old", "assistant", "old", "–", "–", "–"]


@pytest.mark.parametrize("evil", ["\x1b[31mred", "\u202eright to left", "\x9b2J", "a\nb\x00"])
def test_a_finding_about_a_hostile_id_shows_nothing_that_a_terminal_obeys(
    tmp_path: Path, evil: str
) -> None:
    provider = begun(Provider())
    provider.create(evil)
    provider.generate(evil, 4800)
    provider.interrupt()
    provider.cancel()
    provider.sim.clear()
    provider.end(cancelled=True)
    provider.truncate("m1", 200)
    provider.remember("m1")
    provider.done()
    provider.respond("s2")
    text = shown(tmp_path, provider.finish())
    assert "ghost-message" in text
    assert all(c.isprintable() for line in text.split("\n") for c in line)


def test_a_long_conversation_keeps_its_differences_and_its_end(tmp_path: Path) -> None:
    provider = Provider()
    provider.respond()
    for nth in range(100):
        provider.server[f"item{nth}"] = "user"
        if nth != 3:
            provider.remember(f"item{nth}", "user")
    table = under(shown(tmp_path, provider.finish()), TABLE)
    assert table[1].split() == ["user", "item3", "≠"]
    assert [line.split()[1] for line in table[2:25]] == [f"item{nth}" for nth in range(77, 100)]
    assert table[25].strip() == "and 76 more (--format json)"


def test_an_id_can_not_speak_to_the_terminal(tmp_path: Path) -> None:
    provider = Provider()
    evil = "\x1b[31mred\n"
    provider.server[evil] = "us\x1b[0mer"
    provider.respond("s\x1b[1m")
    provider.create(evil + "2")
    provider.interrupt("s\x1b[1m")
    text = shown(tmp_path, provider.finish())
    assert "\x1b" not in text


def test_a_segment_in_full_names_its_message(tmp_path: Path) -> None:
    path = write(tmp_path / "call.jsonl", cut_short(Provider()).finish())
    text = terminal.render([reports.analyze(path)], segment=1)
    assert "  plays message m1\n" in text


# --- Sentences -----------------------------------------------------------------------------------


def in_time(provider: Provider) -> None:
    cut_short(provider)


def missing(provider: Provider) -> None:
    begun(provider).interrupt()
    provider.sim.tick(10)
    provider.end()


def needless(provider: Provider) -> None:
    begun(provider).end()
    provider.interrupt()


def misdirected(provider: Provider) -> None:
    begun(provider).end()
    provider.respond("s2")
    provider.interrupt()
    provider.sim.tick(2)
    provider.cancel()


def too_wide(provider: Provider) -> None:
    begun(provider)
    provider.respond("s2")
    provider.interrupt()
    provider.cancel()
    provider.end(1)


def into_the_void(provider: Provider) -> None:
    begun(provider).end()
    provider.interrupt()
    provider.cancel()


def blind(provider: Provider) -> None:
    begun(provider)
    provider.cancel()
    provider.interrupt()


SENTENCES: dict[Callable[[Provider], None], str] = {
    in_time: "at 200.0 ms while response 1 (resp_1) was being generated. A cancel went out 0.0 ms "
    "after the interrupt, 30.0 ms before the response ended; it hit response 1 (resp_1).",
    missing: "while response 1 (resp_1) was being generated. No cancel was sent.",
    needless: "when response 1 (resp_1) was no longer being generated. No cancel was sent or "
    "needed.",
    misdirected: "no longer being generated. A cancel went out 20.0 ms after the interrupt, 20.0 "
    "ms after the response had ended; it hit response 2 (resp_2), not its own.",
    too_wide: "it hit responses 1 (resp_1) and 2 (resp_2), of which response 2 (resp_2) was not "
    "its own.",
    into_the_void: "0.0 ms after the response had ended; it hit nothing.",
    blind: "playing response 1 (resp_1); whether it was still being generated can't be seen. A "
    "cancel went out 0.0 ms before the interrupt, and no end of the response was seen; it hit "
    "response 1 (resp_1).",
}


@pytest.mark.parametrize("script", SENTENCES, ids=lambda script: script.__name__)
def test_how_generation_was_stopped_is_said_as_it_was(
    tmp_path: Path, script: Callable[[Provider], None]
) -> None:
    provider = Provider(askable=script is not blind)
    script(provider)
    analysis = reports.analyze(write(tmp_path / "call.jsonl", provider.finish()))
    assert analysis.realtime is not None
    said = explain_stop(analysis.realtime.stops[0], analysis.realtime)
    assert said.endswith(SENTENCES[script])
    assert said in " ".join(" ".join(under(terminal.render([analysis]), STOPS)).split())
