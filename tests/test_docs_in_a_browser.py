"""The built documentation in headless Chromium: links lead somewhere, no page scrolls sideways."""

import importlib.util
import subprocess
import sys
import threading
from collections import defaultdict
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urldefrag, urlsplit

import pytest

from browser import CHROMIUM, browser

DOCS = Path(__file__).parents[1] / "docs"
NEEDED = ("furo", "myst_nb", "sphinx", "sphinx_copybutton")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH"),
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, NEEDED)), reason="needs the extra docs"
    ),
]

LINKS = "[...document.querySelectorAll('a[href]')].map((a) => a.href)"
ANCHORS = "[...document.querySelectorAll('[id], a[name]')].map((e) => e.id || e.name)"
BROKEN = """[...document.images].filter((i) => !i.naturalWidth
  || i.getBoundingClientRect().right > innerWidth).map((i) => i.src)"""
DOORS = """[...[...document.querySelectorAll('article table')]
  .find((e) => e.textContent.includes('run a cluster')).querySelectorAll('a')].map((a) => a.href)"""
WIDTHS = "[document.documentElement.scrollWidth, innerWidth]"
SCROLLS = "(() => { scrollTo(9999, 0); const x = scrollX; scrollTo(0, 0); return x; })()"
CUT_OFF = """[...document.querySelectorAll('article *')].filter((e) => {
  if (!e.offsetWidth || e.getBoundingClientRect().right <= innerWidth + 1) return false;
  for (let box = e.parentElement; box.tagName !== 'ARTICLE'; box = box.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(box).overflowX)
      && box.getBoundingClientRect().right <= innerWidth + 1) return false;
  return true;
}).map((e) => e.outerHTML.slice(0, 80))"""
"""Elements that reach beyond the window, and lie in no box that scrolls."""

UNSIGNED = """[...document.querySelectorAll('article *')].filter((e) => {
  const style = getComputedStyle(e);
  return e.scrollWidth > e.clientWidth + 1 && ['auto', 'scroll'].includes(style.overflowX)
    && (e.matches('.highlight-bash *') || !style.backgroundAttachment.includes('local'));
}).map((e) => e.outerHTML.slice(0, 80))"""
"""Boxes that hide something without a shadow to say so, and commands that any box hides."""

UNCOPIED = """[...document.querySelectorAll(':is(.highlight-bash, .highlight-python) .highlight')]
  .filter((e) => !e.querySelector('.copybtn')).map((e) => e.innerText.slice(0, 80))"""
FIRST_FOUND = "document.querySelector('#search-results ul.search a')"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page of a browser that all tests of this file share."""
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built pages."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "--fail-on-warning", DOCS, folder]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def pages_of(site):
    """Return the pages, sorted."""
    found = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    assert len(found) >= len([*DOCS.rglob("*.md")])
    return sorted(found)


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_is_quiet_asks_nobody_and_fits_its_window(page, site, width, dark):
    wrong = defaultdict(list)
    for path in pages_of(site):
        page.open(path, width=width, dark=dark)
        name = path.relative_to(site).as_posix()
        wide, window = page.run(WIDTHS)
        found = {
            "errors": page.errors,
            "requests": [url for url in page.requests if not url.startswith(("file:", "data:"))],
            "sideways": [(wide, window)] if wide > window or page.run(SCROLLS) else [],
            "cut off": page.run(CUT_OFF),
            "unsigned": page.run(UNSIGNED),
            "without a button": page.run(UNCOPIED),
            "pictures": page.run(BROKEN),
        }
        wrong |= {f"{name}: {what}": list(values) for what, values in found.items() if values}
    assert not wrong


def test_every_link_within_the_pages_leads_to_a_page_and_an_anchor_of_it(page, site):
    links, anchors = {}, {}
    for path in pages_of(site):
        page.open(path)
        links[path], anchors[path] = page.run(LINKS), set(page.run(ANCHORS))
    wrong = []
    for path, targets in links.items():
        for target in targets:
            address, anchor = urldefrag(target)
            parts = urlsplit(address)
            if parts.scheme != "file":
                continue
            there = Path(unquote(parts.path))
            if not there.exists() or (anchor and unquote(anchor) not in anchors.get(there, ())):
                wrong.append((path.relative_to(site).as_posix(), target))
    assert not wrong
    assert sum(map(len, links.values())) > 1_000


@pytest.fixture(scope="module")
def address(site):
    """The address of the pages, as search fetches what it found."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *said):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("hpcgym simulate", "commands.html"),
        ("cross-validate", "commands.html"),
        ("--missing-request", "commands.html"),
        ("--validation-weeks", "commands.html"),
        ("backfill_order", "environment.html"),
        ("user_log_completed", "environment.html"),
    ],
)
def test_search_finds_commands_options_and_settings_first(page, address, words, first):
    page.open(f"{address}/search.html?q={quote(words)}")
    page.wait(f"{FIRST_FOUND} !== null")
    target, _, anchor = page.run(f"{FIRST_FOUND}.href").partition("#")
    assert urlsplit(target).path == f"/{first}"
    page.open(f"{address}/{first}")
    assert words in page.run(f"document.getElementById('{anchor}').innerText")


def test_index_has_the_doors_of_readme(page, site):
    page.open(site / "index.html")
    doors = page.run(DOORS)
    assert len(doors) > 20 and all(door.endswith(".html") for door in doors)


def test_text_and_ground_of_a_page_are_told_apart_in_light_and_in_dark(page, site):
    grounds = set()
    for dark in (False, True):
        page.open(site / "index.html", dark=dark)
        text, ground = page.run(
            "['color', 'backgroundColor'].map((key) => getComputedStyle(document.body)[key])"
        )
        assert text != ground
        grounds.add(ground)
    assert len(grounds) == 2
