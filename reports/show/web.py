"""What every page has in common: templates that escape, one style, and a policy that trusts nobody.

A page is whole in itself. Its policy allows the one style and the one script that are in it, by
their digests, and nothing else: no request, no other script, whatever a trace may hold.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from reports.show.view.quantity import audio, time
from reports.show.wording import shown

__all__ = ["clock", "fill", "fragment"]


def fill(template: str, script: str | None = None, **values: Any) -> str:
    """A page from a template of this package.

    Args:
        template: name of its file.
        script: name of the file with its script; ``None``: it has none.
        values: what the template shows. Everything is escaped.
    """
    style = _file("style.css")
    code = "" if script is None else _file(script)
    return (
        _environment()
        .get_template(template)
        .render(
            style=style,
            script=code,
            policy="; ".join(
                [
                    "default-src 'none'",
                    f"style-src {_digest(style)}",
                    f"script-src {_digest(code) if code else _NOBODY}",
                    f"base-uri {_NOBODY}",
                    f"form-action {_NOBODY}",
                ]
            ),
            **values,
        )
    )


def fragment(template: str, **values: Any) -> str:
    """A piece of somebody else's page, from a template of this package. Everything is escaped."""
    return _environment().get_template(template).render(**values)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("reports.show", "html_page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        shown=shown,
        ns=lambda ns: time(ns).text,
        audio=audio,
        us=lambda ns: round(ns / 1000),
        clock=clock,
        setting=_setting,
    )
    return environment


_NOBODY = "'none'"


def _file(name: str) -> str:
    return (files("reports.show") / "html_page" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def clock(ns: int) -> str:
    """An instant: milliseconds, from a minute on minutes and seconds."""
    if abs(ns) < 60_000_000_000:
        return f"{ns / 1e6:.1f} ms"
    minutes, rest = divmod(ns, 60_000_000_000)
    return f"{minutes}:{rest / 1e9:06.3f}"


def _setting(value: object) -> str:
    """An option as the session has it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return shown(value)
