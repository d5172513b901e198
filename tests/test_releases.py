"""The oldest supported release records what the newest does, as far as it can.

The environment comes from the package registry and is kept; what the release can't run at all says
so in a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from probe.errors import ScenarioError
from probe.scenarios import CATALOGUE, Outcome, run_in_child
from reports import analyze
from tests.releases import OLDEST, python_with
from tests.test_scenarios_calls import PROMISES, check

pytestmark = [pytest.mark.livekit, pytest.mark.registry]

NEEDS_MODEL = {"barge-in", "barge-in-no-transcript", "barge-in-model"}

Calls = dict[str, "Future[Outcome]"]


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calls]:
    python = str(python_with(OLDEST))

    def call(name: str, folder: Path) -> Outcome:
        return run_in_child(CATALOGUE[name], folder, python=python)

    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(call, name, tmp_path_factory.mktemp("call")) for name in CATALOGUE}


@pytest.mark.parametrize("name", sorted(PROMISES.keys() - NEEDS_MODEL))
def test_the_oldest_release_goes_the_same_way(calls: Calls, name: str) -> None:
    analysis = check(name, calls[name].result().trace, PROMISES[name])
    assert analysis.trace.runtime["livekit_agents"] == OLDEST
    assert analysis.trace.boundaries == ("captured", "pushed", "sent")


@pytest.mark.parametrize("name", sorted(NEEDS_MODEL))
def test_a_verdict_of_the_model_is_refused_in_a_line_where_there_is_no_model(
    calls: Calls, name: str
) -> None:
    with pytest.raises(ScenarioError, match=f"can't run on livekit-agents {OLDEST}") as refused:
        calls[name].result()
    assert len(str(refused.value).splitlines()) == 1


def test_an_interrupted_greeting_nobody_heard_still_balances(calls: Calls) -> None:
    assert analyze(calls["interrupted-before-subscribed"].result().trace).balanced is True
