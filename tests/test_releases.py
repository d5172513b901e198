"""The oldest supported release records what the newest does, as far as it can.

The environment comes from the package registry and is kept; what the release can't run at all says
so in a line.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from probe.errors import ScenarioError
from probe.scenarios import CATALOGUE, Outcome, run_in_child
from reports import analyze
from tests.ahead import Begun, starting
from tests.releases import OLDEST, python_with
from tests.test_scenarios_calls import PROMISES, check

pytestmark = [pytest.mark.livekit, pytest.mark.registry]

NEEDS_MODEL = {"barge-in", "barge-in-no-transcript", "barge-in-model"}


def _made(name: str, folder: Path) -> Outcome:
    with starting():
        return run_in_child(CATALOGUE[name], folder, python=str(python_with(OLDEST)))


AHEAD = {name: partial(_made, name) for name in (*PROMISES, "interrupted-before-subscribed")}
"""By the scenario's name."""


@pytest.mark.parametrize("name", sorted(PROMISES.keys() - NEEDS_MODEL))
def test_the_oldest_release_goes_the_same_way(begun: Begun, name: str) -> None:
    analysis = check(name, begun(name).trace, PROMISES[name])
    assert analysis.trace.runtime["livekit_agents"] == OLDEST
    assert analysis.trace.boundaries == ("captured", "pushed", "sent")


@pytest.mark.parametrize("name", sorted(NEEDS_MODEL))
def test_a_verdict_of_the_model_is_refused_in_a_line_where_there_is_no_model(
    begun: Begun, name: str
) -> None:
    with pytest.raises(ScenarioError, match=f"can't run on livekit-agents {OLDEST}") as refused:
        begun(name)
    assert len(str(refused.value).splitlines()) == 1


def test_an_interrupted_greeting_nobody_heard_still_balances(begun: Begun) -> None:
    assert analyze(begun("interrupted-before-subscribed").trace).balanced is True
