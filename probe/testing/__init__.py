"""The test kit: a sink that does everything right, sinks, frameworks and realtime models with one
defect each, and the scripted calls to try a sink of your own with.

    from probe.testing import check_sink

    def test_my_sink(tmp_path):
        for trial in check_sink("my_agent.sinks:make_sink", tmp_path):
            assert trial.analysis.balanced
            assert not trial.worse_than_reference

Importing it loads no livekit; a class does, when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from probe.testing.defects import DEFECTS, REFERENCE, Provocation
    from probe.testing.reference import ReferenceAudioOutput
    from probe.testing.trials import Trial, check_sink

__all__ = [
    "DEFECTS",
    "REFERENCE",
    "Provocation",
    "ReferenceAudioOutput",
    "Trial",
    "check_sink",
]

_CALLS: Final = ("probe.testing.defects", "probe.testing.trials")
"""Load no livekit, but what an environment that a call runs in may not have."""
_IN_CALL: Final = (
    "probe.testing.reference",
    "probe.testing.sinks",
    "probe.testing.drivers",
    "probe.testing.realtime",
)
"""Load livekit and nothing else."""


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    about_calls = name in __all__ and name != "ReferenceAudioOutput"
    for module in map(import_module, _CALLS if about_calls else _IN_CALL):
        if name in module.__all__:
            return getattr(module, name)
    raise AttributeError(f"module 'probe.testing' has no attribute {name!r}")
