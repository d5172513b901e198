"""Attributes put on one instance and taken off again, leaving it as it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["InstancePatch", "Patches"]

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


class Patches:
    """Several attributes of one instance, replaced together."""

    __slots__ = ("_patches", "owner")

    def __init__(self, owner: Any, replacements: Mapping[str, Any] = {}) -> None:  # only read
        """Put all of them on, or none.

        Raises:
            AttributeError: the instance takes no attributes.
        """
        self.owner = owner
        self._patches: list[InstancePatch] = []
        try:
            for name, replacement in replacements.items():
                self.put(name, replacement)
        except BaseException:
            self.undo()
            raise

    def put(self, name: str, replacement: Any) -> None:
        """Put one more on.

        Raises:
            AttributeError: the instance takes no attributes.
        """
        self._patches.append(InstancePatch(self.owner, name, replacement))

    def undo(self) -> None:
        """Take all of them off, the last one first; idempotent. What somebody else has replaced
        since is left to them."""
        patches, self._patches = self._patches, []
        for patch in reversed(patches):
            patch.undo()
