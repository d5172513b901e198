"""The HTML report in a real browser: what is drawn, where, and how it is moved and asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reports.results import Analysis, Span
from reports.show import html
from reports.units import time_ms
from tests.html_calls import (
    HOSTILE_SHOWN,
    clean,
    hostile_trace,
    leaking,
    page,
    read,
    save,
    swallowing,
)
from tests.report_traces import write, write_hour

pytestmark = pytest.mark.browser


class Window:
    """A page that was opened, and everything it complained about or asked for."""

    def __init__(self, browser: Any, path: Path, width: int = 1280, **settings: Any) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector(".timeline[data-ready]", state="attached")
        self.timeline = self.page.locator(".timeline").first
        self.frame = self.timeline.locator(".frame")

    def state(self, name: str) -> float:
        """What the timeline says of itself: the view in microseconds, the plot in pixels."""
        return float(self.timeline.get_attribute(f"data-{name}") or "nan")

    def view(self) -> tuple[float, float]:
        return self.state("from"), self.state("to")

    def x(self, ms: float) -> float:
        begin, end = self.view()
        left, right = self.state("left"), self.state("right")
        return left + (ms * 1000 - begin) / (end - begin) * (right - left)

    def press(self, *keys: str) -> None:
        self.frame.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def told(self) -> str:
        return str(self.timeline.locator("output").inner_text())

    def colours(self, xs: list[float], y: float) -> list[tuple[int, int, int]]:
        """Colours of the canvas at these places."""
        return [
            tuple(rgb)
            for rgb in self.page.evaluate(
                """([xs, y]) => {
                    const canvas = document.querySelector("canvas.lanes");
                    const scale = canvas.width / canvas.clientWidth;
                    const g = canvas.getContext("2d");
                    return xs.map((x) => [...g.getImageData(
                        Math.round(x * scale), Math.round(y * scale), 1, 1).data].slice(0, 3));
                }""",
                [xs, y],
            )
        ]

    def scrolls_sideways(self) -> bool:
        return bool(
            self.page.evaluate(
                "document.documentElement.scrollWidth > document.documentElement.clientWidth"
            )
        )

    def close(self) -> None:
        self.context.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    windows: list[Window] = []

    def open_page(path: Path, width: int = 1280, **settings: Any) -> Window:
        windows.append(Window(browser, path, width, **settings))
        return windows[-1]

    yield open_page
    for window in windows:
        window.close()


def is_red(colour: tuple[int, int, int]) -> bool:
    red, green, blue = colour
    return red > 180 and green < 100 and blue < 110


def leak_of(analysis: Analysis) -> Span:
    leak = (analysis.barge_ins[0].leaked or {})["sent"]
    assert leak is not None
    (span,) = leak.spans
    return span


# --- It renders ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("make", [leaking, swallowing, clean], ids=["leak", "swallow", "clean"])
def test_a_page_opens_without_a_complaint_and_fits(
    tmp_path: Path, opened: Any, make: Any, width: int, scheme: str
) -> None:
    window = opened(page(tmp_path, make()), width, color_scheme=scheme)
    assert window.complaints == []
    assert all(url.startswith("file:") for url in window.requests)
    assert len(window.requests) == 1
    assert not window.scrolls_sideways()
    height = window.timeline.locator("canvas.lanes").bounding_box()["height"]
    assert height > 300


def test_hostile_names_are_shown_as_text(tmp_path: Path, opened: Any) -> None:
    analysis, timeline = read(hostile_trace(tmp_path / "call.jsonl"))
    window = opened(save(tmp_path / "call.html", html.render([analysis], [timeline])))
    assert window.complaints == []
    assert window.page.evaluate("window.pwned") is None
    assert HOSTILE_SHOWN in window.page.locator("dl.facts").inner_text()
    assert window.page.locator("img").count() == 0
    window.press("ArrowDown", *["."] * 30)
    seen = {window.told() for _ in range(30) if window.press(",") is None}
    assert any(f"bookmark at 500.0 ms, {HOSTILE_SHOWN}" in text for text in seen)
    assert window.page.evaluate("window.pwned") is None


def test_a_page_without_a_script_tells_everything_in_tables(tmp_path: Path, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page(tmp_path, leaking()).as_uri())
    text = tab.locator("main").inner_text()
    assert "200.0 ms (4800 samples)" in text
    assert "The timeline is drawn by a script of this page." in text
    context.close()


# --- The red area --------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1280, 400])
def test_the_red_area_is_where_the_analysis_says(tmp_path: Path, opened: Any, width: int) -> None:
    path = page(tmp_path, leaking())
    span = leak_of(read(tmp_path / "call.jsonl")[0])
    window = opened(path, width)
    y = window.state("sent-y") + 4
    start, stop = window.x(time_ms(span.start_ns)), window.x(time_ms(span.stop_ns))
    assert stop - start > 10
    inside = [start + 2, (start + stop) / 2, stop - 2]
    outside = [start - 3, stop + 3]
    assert [is_red(c) for c in window.colours(inside, y)] == [True] * 3
    assert [is_red(c) for c in window.colours(outside, y)] == [False] * 2


def test_the_edge_stays_in_its_place_when_zoomed(tmp_path: Path, opened: Any) -> None:
    path = page(tmp_path, leaking())
    span = leak_of(read(tmp_path / "call.jsonl")[0])
    window = opened(path)
    window.page.evaluate(
        "us => { const b = document.createElement('button'); b.dataset.goto = 0;"
        "b.dataset.from = b.dataset.to = us; document.body.append(b); b.click(); b.remove(); }",
        time_ms(span.stop_ns) * 1000,
    )
    window.press("+", "+", "+", "+", "+")
    begin, end = window.view()
    assert begin < time_ms(span.stop_ns) * 1000 < end
    assert end - begin < 20_000
    y, edge = window.state("sent-y") + 4, window.x(time_ms(span.stop_ns))
    before, after = window.colours([edge - 4, edge + 6], y)
    assert is_red(before)
    assert not is_red(after)


def test_a_call_without_a_leak_has_no_red(tmp_path: Path, opened: Any) -> None:
    window = opened(page(tmp_path, swallowing()))
    xs = [window.state("left") + x for x in range(0, 1000, 3)]
    assert not any(is_red(c) for c in window.colours(xs, window.state("sent-y") + 19))


# --- Moving and asking ---------------------------------------------------------------------------


def test_keys_zoom_and_pan(tmp_path: Path, opened: Any) -> None:
    window = opened(page(tmp_path, leaking()))
    begin, end = window.view()
    window.press("+")
    near = window.view()
    assert near[1] - near[0] == pytest.approx((end - begin) / 2)
    window.press("ArrowRight")
    assert window.view()[0] == pytest.approx(near[0] + (near[1] - near[0]) / 10)
    window.press("ArrowLeft", "-")
    assert window.view() == pytest.approx((begin, end))
    window.press(*["+"] * 40)
    least = window.view()
    assert least[1] - least[0] == pytest.approx(100), "down to a tenth of a millisecond"
    window.press("0")
    assert window.view() == pytest.approx((begin, end))
    window.press("-", "ArrowLeft", "Home", "End")
    assert window.view() == pytest.approx((begin, end)), "there is nothing beyond the call"


def test_keys_reach_every_frame_and_say_what_it_is(tmp_path: Path, opened: Any) -> None:
    window = opened(page(tmp_path, leaking()))
    window.press("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown")
    assert window.told().startswith("captured: frame captured: 20.0 ms (480 samples)")
    first = window.told()
    assert "segment 1, s1, positions 0 to 480" in first
    window.press(".")
    assert "positions 480 to 960" in window.told()
    window.press("Shift+ArrowRight")
    assert "positions 960 to 1440" in window.told()
    window.press(",", ",")
    assert window.told() == first
    window.press("Enter")
    begin, end = window.view()
    assert end - begin < 10_000
    window.press("n")
    assert window.told().startswith("leaked: 200.0 ms (4800 samples) sent after the verdict, 440.0")
    window.press("Escape")
    assert window.told() == "Point at anything to see what it is."


def test_the_timeline_is_reached_without_a_mouse(tmp_path: Path, opened: Any) -> None:
    window = opened(page(tmp_path, leaking()))
    reached = []
    for _ in range(12):
        window.page.keyboard.press("Tab")
        reached.append(
            window.page.evaluate("document.activeElement.className || document.activeElement.id")
        )
    assert "frame" in reached
    for name in ("role", "aria-label", "aria-describedby"):
        assert window.frame.get_attribute(name)


def test_pointing_says_what_is_there_in_ms_and_samples(tmp_path: Path, opened: Any) -> None:
    window = opened(page(tmp_path, leaking()))
    box = window.timeline.locator("canvas.lanes").bounding_box()
    y = box["y"] + window.state("sent-y") + 10
    window.page.mouse.move(box["x"] + window.x(540), y)
    tip = window.timeline.locator(".tip")
    assert "200.0 ms (4800 samples) sent after the verdict" in tip.inner_text()
    window.page.mouse.move(box["x"] + window.x(250), y)
    assert "run sent: 200.0 ms (4800 samples)" in tip.inner_text()
    window.page.mouse.move(box["x"] + window.x(700), y)
    assert "silence inserted by the source" in tip.inner_text()
    window.page.mouse.click(box["x"] + window.x(540), y)
    assert window.told().startswith("leaked: 200.0 ms (4800 samples)")


def test_the_mouse_drags_and_zooms(tmp_path: Path, opened: Any) -> None:
    window = opened(page(tmp_path, leaking()))
    window.press("+", "+")
    begin, end = window.view()
    box = window.timeline.locator("canvas.lanes").bounding_box()
    x, y = box["x"] + 600, box["y"] + 200
    window.page.mouse.move(x, y)
    window.page.mouse.down()
    window.page.mouse.move(x - 100, y, steps=4)
    window.page.mouse.up()
    window.page.wait_for_function(
        "was => Number(document.querySelector('.timeline').dataset.from) > was", arg=begin
    )
    moved = window.view()
    assert moved[1] - moved[0] == pytest.approx(end - begin)
    under = (100 / (window.state("right") - window.state("left"))) * (end - begin)
    assert moved[0] - begin == pytest.approx(under)
    window.page.mouse.wheel(0, -200)
    window.page.wait_for_function(
        "was => { const d = document.querySelector('.timeline').dataset;"
        " return d.to - d.from < was; }",
        arg=(moved[1] - moved[0]) * 0.9,
    )


def test_the_wheel_scrolls_the_page_while_the_timeline_has_no_focus(
    tmp_path: Path, opened: Any
) -> None:
    window = opened(page(tmp_path, leaking()))
    before = window.view()
    box = window.timeline.locator("canvas.lanes").bounding_box()
    window.page.mouse.move(box["x"] + 600, box["y"] + 100)
    window.page.mouse.wheel(0, 300)
    window.page.wait_for_function("() => window.scrollY > 0")
    assert window.view() == before


def test_a_finding_leads_to_its_moment(tmp_path: Path, opened: Any) -> None:
    path = page(tmp_path, leaking())
    analysis = read(tmp_path / "call.jsonl")[0]
    window = opened(path)
    window.press(*["+"] * 8, "End")
    moment = analysis.findings[0].evidence.moments[0]
    assert not window.view()[0] < time_ms(moment.at_ns) * 1000 < window.view()[1]
    window.page.locator(".finding button.at", has_text="show").first.click()
    assert window.view()[0] < time_ms(moment.at_ns) * 1000 < window.view()[1]
    assert window.page.evaluate("document.activeElement.className") == "frame"


def test_buttons_do_what_keys_do(tmp_path: Path, opened: Any) -> None:
    window = opened(page(tmp_path, leaking()))
    whole = window.view()
    window.timeline.get_by_role("button", name="next leak").click()
    begin, end = window.view()
    assert begin < 440_000 < 640_000 < end
    assert end - begin < whole[1] - whole[0]
    window.timeline.get_by_role("button", name="whole call").click()
    assert window.view() == pytest.approx(whole)
    window.timeline.get_by_role("button", name="zoom in").click()
    assert window.view()[1] - window.view()[0] == pytest.approx((whole[1] - whole[0]) / 2)


# --- Paper, and long calls -----------------------------------------------------------------------


def test_on_paper_it_is_light_and_without_buttons(tmp_path: Path, opened: Any) -> None:
    window = opened(page(tmp_path, leaking()), color_scheme="dark")
    y = window.state("sent-y") + 4
    ground = window.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert ground == "rgb(20, 23, 27)"
    window.page.emulate_media(media="print")
    assert not window.timeline.locator(".bar").is_visible()
    printed = window.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert printed == "rgb(255, 255, 255)"
    window.page.wait_for_function("() => document.querySelector('canvas.lanes').width >= 3 * 400")
    assert is_red(window.colours([window.x(540)], y)[0])
    assert window.complaints == []


def test_a_long_call_is_drawn_in_few_strokes_and_down_to_frames(
    tmp_path: Path, opened: Any
) -> None:
    """Whole or near, what is painted is bounded by what can be seen, not by the call's length."""
    trace = write_hour(tmp_path / "long.jsonl", minutes=20)
    analysis, timeline = read(trace)
    assert len(timeline.captured) == 60_000
    window = opened(save(tmp_path / "long.html", html.render([analysis], [timeline])))
    counted = window.page.evaluate(
        """() => {
            let strokes = 0;
            const kind = CanvasRenderingContext2D.prototype;
            for (const name of ["fillRect", "lineTo", "strokeRect", "fillText"]) {
                const plain = kind[name];
                kind[name] = function (...args) { strokes++; return plain.apply(this, args); };
            }
            const frame = document.querySelector(".frame");
            const key = (name) => {
                strokes = 0;
                frame.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
                return strokes;
            };
            const counts = [key("0")];
            for (let i = 0; i < 24; i++) counts.push(key("+"));
            return counts;
        }"""
    )
    assert max(counted) < 12 * 1280
    window.press("0", "n")
    assert "370.0 ms (8880 samples) sent after the verdict" in window.told()
    window.press("ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "Enter")
    assert "frame captured: 20.0 ms (480 samples)" in window.told()
    begin, end = window.view()
    assert end - begin < 20_000
    assert window.complaints == []


def test_several_calls_each_have_their_timeline(tmp_path: Path, opened: Any) -> None:
    made = [
        read(write(tmp_path / f"{name}.jsonl", make()))
        for name, make in (("quiet", clean), ("leaky", leaking))
    ]
    text = html.render([a for a, _ in made], [t for _, t in made])
    window = opened(save(tmp_path / "both.html", text))
    window.page.wait_for_function("document.querySelectorAll('.timeline[data-ready]').length === 2")
    leaky, quiet = (window.page.locator(".timeline").nth(n) for n in range(2))
    before = quiet.get_attribute("data-from")
    window.page.locator("section").nth(0).locator("button.at").first.click()
    assert quiet.get_attribute("data-from") == before
    assert float(leaky.get_attribute("data-from") or 0) > 0
    assert window.complaints == []
