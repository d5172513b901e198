"""Attributes put on one instance and taken off again, leaving it as it was."""

from __future__ import annotations

from typing import Any

__all__ = ["InstancePatch"]

_ABSENT: Any = object()


class InstancePatch:
    """One attribute of one instance, replaced.

    The class is never touched, so other instances, and other sessions, are not affected.
    """

    __slots__ = ("_name", "_owner", "_previous", "_replacement")

    def __init__(self, owner: Any, name: str, replacement: Any) -> None:
        """Put it on.

        Raises:
            AttributeError: the instance takes no attributes.
        """
        self._owner = owner
        self._name = name
        self._replacement = replacement
        self._previous = vars(owner).get(name, _ABSENT) if hasattr(owner, "__dict__") else _ABSENT
        setattr(owner, name, replacement)

    def undo(self) -> bool:
        """Take it off; False if somebody else has replaced it since, and theirs was left alone."""
        attributes = getattr(self._owner, "__dict__", {})
        if attributes.get(self._name, _ABSENT) is not self._replacement:
            return False
        if self._previous is _ABSENT:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._previous)
        return True
