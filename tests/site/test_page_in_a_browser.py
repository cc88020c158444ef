"""The page in headless Chromium: it is drawn, answers, asks nobody, never scrolls sideways."""

import json

import pytest

from browser import CHROMIUM, browser
from drawn_report import drawn_report
from hpcgym.site.page import page_html

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")]

SIZES = [(1280, 800), (400, 800)]
INK = """(selector) => [...document.querySelectorAll(selector)].map((canvas) => {
  const { width, height } = canvas;
  const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const dots = copy.getImageData(0, 0, width, height).data;
  return new Set(new Uint32Array(dots.buffer)).size;
})"""
"""Colours of each canvas."""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page of a browser that all tests of this file share."""
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def year(tmp_path_factory):
    """The file of a year's report."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page_html(drawn_report()), encoding="utf-8")
    return path


def assert_quiet(page, path):
    """Fail on an error in the console, a request, or a page wider than its window."""
    assert page.errors == []
    assert page.requests == [path.as_uri()]
    wide, window = page.run("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window


def middle(page, selector):
    """Scroll to an element, and return where its middle is in the window."""
    return page.run(
        f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
        "e.scrollIntoView({block: 'center', behavior: 'instant'});"
        "const a = e.getBoundingClientRect(); return [a.x + a.width / 2, a.y + a.height / 2]; })()"
    )


def click(page, selector):
    """Click at the middle of an element."""
    page.click(*middle(page, selector))


def column(page, table, number):
    """Return the sorted-by values of a column."""
    return page.run(
        f"[...document.querySelectorAll('{table} tbody tr')]"
        f".map((r) => r.cells[{number}].dataset.v)"
    )


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_page_is_drawn_and_each_control_answers(page, year, width, height, dark):
    page.open(year, width=width, height=height, dark=dark)
    assert page.run("document.documentElement.dataset.ready") == "true"
    assert_quiet(page, year)
    assert all(n > 3 for n in page.run(f"({INK})('canvas')"))
    page.run("document.querySelectorAll('main button, summary').forEach((b) => b.click())")
    page.run(
        "document.querySelectorAll('main select').forEach((s) => [...s.options].forEach((o) => {"
        "s.value = o.value; s.dispatchEvent(new Event('change')); }))"
    )
    page.settle()
    assert all(n > 3 for n in page.run(f"({INK})('canvas')"))
    assert_quiet(page, year)


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_page_without_scripts_shows_every_table(page, year, width, height):
    page.open(year, width=width, height=height, scripts=False)
    assert_quiet(page, year)
    hidden = page.run(
        "[...document.querySelectorAll('table')].filter((t) => !t.closest('details')"
        " && !t.offsetHeight).length"
    )
    assert hidden == 0
    assert page.run("document.querySelectorAll('main button').length") == 0
    assert page.run("document.querySelectorAll('.panel > h3').length") == 5


def test_first_screen_holds_the_answer_the_trust_and_the_whole_table(page, year):
    page.open(year)
    bottom = page.run("document.querySelector('.main').getBoundingClientRect().bottom")
    assert bottom <= 800


def test_background_is_dark_where_the_reader_asks_for_dark(page, year):
    light, dark = (
        (page.open(year, dark=dark), page.run("getComputedStyle(document.body).backgroundColor"))[1]
        for dark in (False, True)
    )
    assert light != dark


def test_a_click_on_a_head_sorts_by_numbers_and_a_second_click_turns_round(page, year):
    page.open(year)
    jobs = "#group-user thead th:nth-child(2) button"
    click(page, jobs)
    values = [float(value) for value in column(page, "#group-user", 1)]
    assert values == sorted(values, reverse=True) and len(values) == 300
    click(page, jobs)
    assert [float(value) for value in column(page, "#group-user", 1)] == sorted(values)
    assert page.run("document.querySelector('#group-user th[aria-sort]').ariaSort") == "ascending"


def test_sorting_keeps_groups_of_options_together(page, year):
    page.open(year)
    before = page.run("[...document.querySelectorAll('#options tr.group')].map((r) => r.innerText)")
    click(page, "#options thead th:nth-child(2) button")
    heads = page.run(
        "[...document.querySelectorAll('#options tbody')].map((b) => b.rows[0].className)"
    )
    assert heads[: len(before)] == ["group"] * len(before)


def test_tabs_go_by_click_and_by_arrow_keys(page, year):
    page.open(year)
    visible = "[...document.querySelectorAll('.panel')].filter((p) => !p.hidden).map((p) => p.id)"
    assert page.run(visible) == ["group-user"]
    click(page, "[role=tab]")
    assert page.run(visible) == ["group-partition"]
    page.key("ArrowRight")
    assert page.run(visible) == ["group-account"]
    assert page.run("document.activeElement.getAttribute('aria-selected')") == "true"


def test_filter_leaves_rows_that_hold_the_text(page, year):
    page.open(year)
    page.run(
        "(() => { const i = document.querySelector('#group-user input'); i.value = 'A1';"
        "i.dispatchEvent(new Event('input')); })()"
    )
    names = page.run(
        "[...document.querySelectorAll('#group-user tbody tr')].filter((r) => !r.hidden)"
        ".map((r) => r.cells[0].innerText)"
    )
    assert 0 < len(names) < 300 and all("a1" in name for name in names)


def test_map_of_changes_is_what_was_before_less_what_is_after(page, year):
    page.open(year)
    heat = drawn_report()["heat"]
    before, after = (heat["waits"][key][0][0] for key in ("today", "saf"))
    shown = page.run("document.querySelector('.map:not([data-option]) td').className")
    assert ("c-p" in shown) == (before > after)
    assert page.run("[...document.querySelectorAll('.map')].filter((m) => !m.hidden).length") == 3


def test_dragging_over_the_queue_looks_closer_and_pointing_reads_it(page, year):
    page.open(year)
    shown = "document.querySelector('#queue .count').innerText"
    whole = page.run(shown)
    x, y = middle(page, "#queue canvas")
    page.mouse("mouseMoved", x, y)
    page.settle()
    assert "waiting" in page.run("document.querySelector('#queue .readout').innerText")
    page.mouse("mousePressed", x - 100, y, button="left", clickCount=1)
    page.mouse("mouseMoved", x + 40, y, button="left")
    page.mouse("mouseReleased", x + 40, y, button="left", clickCount=1)
    page.settle()
    assert page.run(shown) != whole
    page.run("document.querySelector('#queue canvas').focus()")
    page.key("0")
    assert page.run(shown) == whole


@pytest.mark.parametrize("how", ["pointer", "keys"])
def test_a_job_of_a_day_shows_its_facts(page, year, how):
    page.open(year)
    facts = "document.querySelector('#day .readout').innerText"
    assert "Point at a job" in page.run(facts)
    x, y = middle(page, "#day canvas")
    if how == "keys":
        page.run("document.querySelector('#day canvas').focus()")
        page.key("ArrowRight")
    else:
        for part in range(-20, 21):  # somewhere there is a job
            page.click(x + 20 * part, y + 4 * part)
            if "job 4" in page.run(facts):
                break
    told = page.run(facts)
    assert "job 4" in told and "cpus" in told and "simulated today: waited" in told
    assert_quiet(page, year)


def test_hostile_names_are_shown_as_they_are(page, tmp_path):
    name = "</script><img src=x onerror=\"document.title='hit'\">"
    report = json.loads(json.dumps(drawn_report(hours=500, users=9, days=1, jobs=30)))
    for rows in report["groups"].values():
        rows[0]["name"] = name
    report["title"] = name
    for row in (*report["options"], *report["changed"]):
        row |= {"name": name, "user": name}
    for job in report["days"][0]["jobs"]:
        job |= {"id": name, "user": name}
    report["days"][0]["label"] = name
    path = tmp_path / "hostile.html"
    path.write_text(page_html(report), encoding="utf-8")
    page.open(path, width=400)
    page.run("document.querySelector('#day canvas').focus()")
    page.key("ArrowRight")
    assert "<img" in page.run("document.querySelector('#day .readout').innerText")
    assert page.run("document.title") == f"{name}: hpcgym report"
    assert page.run("document.images.length") == 0
    assert_quiet(page, path)


def test_page_of_almost_nothing_is_quiet(page, tmp_path):
    path = tmp_path / "bare.html"
    path.write_text(page_html({"schema": "hpcgym-report-1", "title": "bare"}), encoding="utf-8")
    page.open(path)
    assert page.run("document.documentElement.dataset.ready") == "true"
    assert_quiet(page, path)


@pytest.mark.parametrize("hours", [1, 30, 5 * 8_760])
@pytest.mark.parametrize("utc", [True, False], ids=["dates", "no dates"])
def test_queue_and_day_are_drawn_for_logs_of_any_length(page, tmp_path, hours, utc):
    report = drawn_report(hours=hours, users=1, days=1, jobs=1)
    report["log"] |= {"utc": utc, "split": None}
    path = tmp_path / "length.html"
    path.write_text(page_html(report), encoding="utf-8")
    page.open(path)
    assert all(n > 3 for n in page.run(f"({INK})('canvas')"))
    page.run("document.querySelectorAll('#queue button').forEach((b) => b.click())")
    page.settle()
    assert all(n > 3 for n in page.run(f"({INK})('canvas')"))
    assert ("day" in page.run("document.querySelector('#queue .controls .count').innerText")) != utc
    assert_quiet(page, path)
