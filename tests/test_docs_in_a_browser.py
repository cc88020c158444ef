"""The built documentation in headless Chromium: links lead somewhere, and no page scrolls sideways.

Skipped where there is no Chromium (`apt-get install chromium` on Debian), or no Sphinx.
"""

import importlib.util
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from browser import CHROMIUM, browser

DOCS = Path(__file__).parents[1] / "docs"
NEEDED = ("furo", "myst_nb", "sphinx")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH"),
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, NEEDED)), reason="needs the extra docs"
    ),
]

LINKS = "[...document.querySelectorAll('a[href]')].map((a) => a.href)"
ANCHORS = "[...document.querySelectorAll('[id], a[name]')].map((e) => e.id || e.name)"
BROKEN = "[...document.images].filter((i) => !i.naturalWidth).map((i) => i.src)"
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
