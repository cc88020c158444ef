"""The page of a report: what it holds without scripts, what it escapes, what it leaves out."""

import copy
import json
import re
from html.parser import HTMLParser

import pytest

from drawn_report import drawn_report
from hpcgym.site.page import page_html

MOST_BYTES = 6_000_000
HOSTILE = "</script><!--<img src=x onerror=alert(1)>\u2028'\"&"
PARTS = {
    "options": "options",
    "heat": "heat",
    "groups": "groups",
    "queue": "queue",
    "days": "day",
    "requests": "requests",
    "machine_sizes": "machine",
    "changed": "changed",
    "trust": "trust",
}
"""Parts of a report, and the sections that show them."""


class Outline(HTMLParser):
    """Sections, tables, scripts and attributes of a page."""

    def __init__(self, text):
        super().__init__()
        self.sections, self.elements, self.outside = [], [], []
        self.embedded, self._within = [], []
        self.feed(text)

    def handle_starttag(self, name, attributes):
        """Keep an element."""
        known = dict(attributes)
        self.elements.append((name, known))
        self._within.append((name, known))
        if name == "section" and "id" in known:
            self.sections.append(known["id"])
        self.outside += [v for k, v in attributes if k in ("src", "href", "srcset", "action")]

    def handle_endtag(self, name):
        """Leave an element."""
        while self._within and self._within.pop()[0] != name:
            pass

    def handle_data(self, data):
        """Keep the embedded report."""
        if self._within and self._within[-1][1].get("id") == "data":
            self.embedded.append(data)

    def count(self, name):
        """Return how many elements have a name."""
        return sum(element == name for element, _ in self.elements)


@pytest.fixture(scope="module")
def report():
    return drawn_report()


@pytest.fixture(scope="module")
def small():
    return drawn_report(hours=1_000, users=12, days=1, jobs=20)


def without_scripts(text):
    """Return what a page shows where no script runs."""
    return re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.S)


@pytest.mark.long
def test_page_of_a_year_is_one_file_within_its_bytes(report):
    text = page_html(report)
    assert len(text.encode()) <= MOST_BYTES
    outline = Outline(text)
    assert all(link.startswith(("#", "data:")) for link in outline.outside)
    assert not outline.count("img") and not outline.count("iframe")
    assert "default-src 'none'" in text


def test_embedded_report_is_the_report_to_four_decimals(small):
    (embedded,) = Outline(page_html(small)).embedded
    told = json.loads(embedded)
    assert told["queue"] == small["queue"]
    assert told["log"] == small["log"]
    first, kept = small["groups"]["user"][0], told["groups"]["user"][0]
    assert kept["recorded"] == pytest.approx(first["recorded"], abs=5e-5)


def test_tables_are_there_without_scripts(small):
    shown = without_scripts(page_html(small))
    for row in (*small["options"], *small["groups"]["user"], *small["groups"]["account"]):
        assert f">{row['name']}<" in shown
    for row in small["changed"]:
        assert f">{row['job']}<" in shown
    for key, value in small["settings"].items():
        assert key.replace("'", "&#x27;") in shown and value in shown
    assert small["command"] in shown
    assert all(line in shown for line in small["log"]["read"])
    assert "2025-01" in shown  # the queue by month


def test_first_screen_has_the_answer_then_trust_then_one_table(small):
    shown = without_scripts(page_html(small))
    head = shown[: shown.index("</header>")]
    positions = [head.index(text) for text in ("1.4\u00a0h less", "Rough", "<table")]
    assert positions == sorted(positions)
    assert head.count("<table") == 1
    assert "no backfilling" not in head
    assert "1.0 to 1.8 h" in head  # the interval of SAF's gain


def test_interval_of_a_loss_is_told_in_hours_more(small):
    shown = without_scripts(page_html(small))
    assert "<b>2.5 h more</b><small>2.1 to 2.9 h</small>" in shown


def test_orders_a_scheduler_can_be_told_stand_apart_from_what_is_simulated_only(small):
    shown = without_scripts(page_html(small))
    told = shown.index("What a site can set: orders")
    only = shown.index(">Simulated only<")
    assert told < shown.index("SQF", told) < only < shown.index("URGENT-YOUNG", only)
    assert "URGENT-YOUNG" not in shown[told:only]


def every_text(value, replaced):
    """Return a report with every text that is data, and no key, replaced."""
    if isinstance(value, dict):
        kept = {"id", "group", "verdict", "told", "named", "best_any", "schema"}
        return {k: v if k in kept else every_text(v, replaced) for k, v in value.items()}
    if isinstance(value, list):
        return [every_text(item, replaced) for item in value]
    return replaced if isinstance(value, str) else value


def test_no_name_of_the_data_becomes_html(small):
    hostile = every_text(small, HOSTILE)
    hostile["settings"] = {HOSTILE: HOSTILE}
    text, plain = page_html(hostile), page_html(small)
    outline, expected = Outline(text), Outline(plain)
    assert "<img" not in text and "<!--" not in text
    assert text.count("</script>") == plain.count("</script>") == 2
    assert outline.sections == expected.sections
    assert not [k for _, attributes in outline.elements for k in attributes if k.startswith("on")]
    (embedded,) = outline.embedded
    assert "\u2028" not in embedded
    assert json.loads(embedded)["title"] == HOSTILE


def test_hostile_ids_of_options_stay_within_their_attributes(small):
    renamed = json.loads(json.dumps(small).replace('"saf"', json.dumps(HOSTILE)))
    outline = Outline(page_html(renamed))
    assert HOSTILE in {a.get("data-option") for _, a in outline.elements}
    assert not outline.count("img")


@pytest.mark.parametrize(("part", "section"), PARTS.items())
@pytest.mark.parametrize("how", ["missing", "null"])
def test_section_whose_part_is_not_there_is_left_out(small, part, section, how):
    lacking = copy.deepcopy(small)
    if how == "missing":
        del lacking[part]
    else:
        lacking[part] = None
    outline = Outline(page_html(lacking))
    assert section not in outline.sections
    assert f"#{section}" not in outline.outside
    full = Outline(page_html(small))
    rest = {"options", "idle"} if part == "options" else {section}
    assert set(full.sections) - set(outline.sections) == rest


def test_page_of_almost_nothing_says_what_is_not_known():
    text = page_html({"schema": "hpcgym-report-1", "title": "bare"})
    assert "No option was simulated." in text
    assert "The report has no answer." in text
    assert "is not known" in text


NULLABLE = {
    "trust": (
        *("correlation", "fixed_share", "missed", "causes", "same_class", "noise_h", "misfit_h"),
        "classes",
    ),
    "log": ("split", "n_judged", "users", "utilisation", "begin", "end"),
    "requests": ("used_share", "median_used", "histogram", "memory"),
    "queue": ("cpus",),
}


@pytest.mark.parametrize(
    ("part", "key"), [(part, key) for part, keys in NULLABLE.items() for key in keys]
)
def test_number_that_is_not_known_is_no_error_and_not_printed_as_none(small, part, key):
    lacking = {**small, part: {**small[part], key: None}}
    assert not re.search(r"\b(?:None|nan|NaN)\b", without_scripts(page_html(lacking)))


def test_options_without_any_number_are_rows_without_numbers(small):
    keys = ("wait", "bsld", "long_share", "idle_while_waiting", "gain_h", "interval_h", "told")
    bare = [{**row, **dict.fromkeys((*keys, "losers", "winners"))} for row in small["options"]]
    shown = without_scripts(page_html({**small, "options": bare}))
    assert ">SQF<" in shown and "None" not in shown


def test_numbers_that_are_none_of_json_are_null(small):
    odd = {**small, "trust": {**small["trust"], "correlation": float("nan")}}
    (embedded,) = Outline(page_html(odd)).embedded
    assert json.loads(embedded)["trust"]["correlation"] is None


def test_log_without_dates_is_told_by_its_days(small):
    log = {**small["log"], "utc": False, "begin": 0, "split": 432_000, "end": 864_000}
    shown = without_scripts(
        page_html({**small, "log": log, "queue": {**small["queue"], "begin": 0}})
    )
    assert "day 1 to day 11" in shown
    assert "1970" not in shown


INKS = {"ink": "paper", "soft": "paper", "faint": "paper", "link": "paper", "worse": "paper"}
INKS |= {"better": "better-wash", "soft ": "card"}
ON_COLOURS = {"on-low": ("h0", "h1", "h2", "h3", "h4", "k0", "k1"), "on-k2": ("k2",)}
ON_COLOURS |= {"on-high": ("h6", "h7", "h8", "k3", "k4")}
LEAST_CONTRAST = 4.5  # of WCAG 2.2, level AA


def luminance(colour):
    """Return the relative luminance of "#rrggbb", as WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(small, scheme):
    style = re.search(r"<style>(.*?)</style>", page_html(small), re.S)[1]
    blocks = re.findall(r":root \{(.*?)\}", style, re.S)
    colours = {}
    for block in blocks if scheme == "dark" else blocks[:1]:
        colours |= re.findall(r"--([\w-]+): (#\w{6})", block)
    pairs = [(ink.strip(), behind) for ink, behind in INKS.items()]
    pairs += [(ink, behind) for ink, many in ON_COLOURS.items() for behind in many]
    for ink, behind in pairs:
        low, high = sorted(luminance(colours[name]) for name in (ink, behind))
        assert (high + 0.05) / (low + 0.05) >= LEAST_CONTRAST, (ink, behind)
