"""What several modules of tests share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.ahead import Begun, beginning
from tests.golden import Golden

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, started once a module; without it tests that open pages are skipped.

    No longer than a module: its loop runs as long as it does, and other tests need theirs.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser here: none of {', '.join(BROWSERS)}")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield started
        started.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files of the tests anew"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.config.getoption("--update-golden"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What was begun ahead is looked at last."""
    items.sort(key=_waits)


def _waits(item: pytest.Item) -> bool:
    return "begun" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session", autouse=True)
def _ahead(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Begun]]:
    # In the order of the tests, each once.
    waiting = dict.fromkeys(item.module for item in request.session.items if _waits(item))  # type: ignore[attr-defined]
    with beginning(waiting, tmp_path_factory.mktemp) as begun:
        yield begun


@pytest.fixture(scope="module")
def begun(request: pytest.FixtureRequest, _ahead: Mapping[str, Begun]) -> Begun:
    """What the module wanted to be made ahead, by name."""
    return _ahead[request.module.__name__]
