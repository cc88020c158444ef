"""The specification, held to its citations: what is cited of it exists, and so do cited papers."""

import ast
import csv
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SPECIFICATION = ROOT / "docs" / "specification"
CHAPTERS = sorted(SPECIFICATION.glob("*.md"))
FORMATS, RERUNS = (ROOT / "docs" / "appendices" / name for name in ("formats", "reruns"))
BINDING = [page.with_suffix(".md") for page in (FORMATS, RERUNS)]
BINDING += [table for page in (FORMATS, RERUNS) for table in sorted(page.glob("*.csv"))]
"""Pages outside the specification that bind as it does, and their tables."""
REFERENCES = ROOT / "docs" / "references.md"

MODULES = [path for room in ("hpcgym", "scripts", "tests") for path in (ROOT / room).rglob("*.py")]
CARDS = list((ROOT / "agents").glob("*.toml"))
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "hpcgym").glob("*.md")]
CITING = sorted({*MODULES, *CARDS, *PAGES} - {*CHAPTERS, REFERENCES, Path(__file__)})

WORKS = (
    *("Batsim", "Gymnasium", "Lecture on batch scheduling", "RLScheduler", "SchedInspector"),
    *("Slurm", "Stable-Baselines3", "Standard Workload Format", "freuk/ocst", "m_lublin99.c"),
    *("OpenPBS", "predictsim", "pyss"),
)
"""Works that are cited by a name rather than by authors and year."""


class Citation(NamedTuple):
    """A section of the specification, a heading in it, or a heading in any section."""

    number: int | None
    heading: str | None

    def __str__(self):
        """Write it as code does."""
        section = "" if self.number is None else f", section {self.number}"
        return f"Specification{section}" + (f', "{self.heading}"' if self.heading else "")


class Paper(NamedTuple):
    """Authors as cited, and year."""

    authors: tuple[str, ...]
    year: str

    def __str__(self):
        """Write it as code does."""
        return f"{', '.join(self.authors)} {self.year}"


class Entry(NamedTuple):
    """An entry of the list of references."""

    papers: tuple[Paper, ...]
    text: str


# --- What is cited --------------------------------------------------------------------------------

OPENING = re.compile(
    r"\b[Ss]pecification(?:'s(?: text)?)?(?:\]\([^)]*\))?,?"
    r'(?= sections? \d| "[^" ])'
)
PART = re.compile(
    r"(?:,? and |, | )(?:"
    r'(?:sections? )?(?P<number>\d+)\b|"(?P<heading>[^"]+)"|`[^`]*`|design [A-Z]\b'
    r"|steps? \d+(?:(?: to | and |, )\d+)*)"
)
TURNED_ROUND = re.compile(r"\bsections? (\d+(?:(?:, and|,| and) \d+)*) of the specification\b")

AUTHOR = r"(?:de )?[A-Z][\w'’-]*[a-z][\w'’-]*"
AUTHORS = rf"{AUTHOR}(?:(?:, and |, | and ){AUTHOR})*"
PAPER = re.compile(rf"(?P<authors>{AUTHORS})(?: et al\.)?,? (?P<year>(?:19|20)\d\d)\b")
REPORT = re.compile(r"\bRR-\d+\b")
SOURCE = re.compile(r"\bSources?:\s*(.+?)(?:\n[ \t]*\n|\Z)", re.DOTALL)


def on_one_line(text):
    """Undo the wrapping of lines."""
    return " ".join(text.split())


def citations_in(text):
    """Return what a text cites of the specification."""
    line = on_one_line(text)
    found = [
        Citation(int(number), None)
        for match in TURNED_ROUND.finditer(line)
        for number in re.findall(r"\d+", match[1])
    ]
    for opening in OPENING.finditer(line):
        place, section = opening.end(), None
        while part := PART.match(line, place):
            place = part.end()
            if part["number"]:
                section = int(part["number"])
                found.append(Citation(section, None))
            elif part["heading"]:
                found.append(Citation(section, part["heading"].rstrip(".,")))
    return found


def papers_in(text):
    """Return the papers that a text cites by authors and year."""
    return [
        Paper(tuple(re.split(r", and |, | and ", match["authors"])), match["year"])
        for match in PAPER.finditer(on_one_line(text))
    ]


def sources_in(module):
    """Return the sources that the docstrings and the keywords `source` of a module name."""
    found = []
    for node in ast.walk(ast.parse(module)):
        if is_text(node):
            found += SOURCE.findall(node.value)
        elif isinstance(node, ast.keyword) and node.arg == "source":
            found += [node.value.value] if is_text(node.value) else []
    return found


def is_text(node):
    """Tell whether a node of a module is a string."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@cache
def cited_sources():
    """Return every source that code and cards name, with the file that names it."""
    found = [
        (path.relative_to(ROOT), source)
        for path in CITING
        if path.suffix == ".py"
        for source in sources_in(path.read_text(encoding="utf-8"))
    ]
    cards = [(path, tomllib.loads(path.read_text(encoding="utf-8"))) for path in CARDS]
    return found + [(path.relative_to(ROOT), card["source"]) for path, card in cards]


# --- What there is --------------------------------------------------------------------------------


@cache
def sections():
    """Return the headings and bold lead-ins of each section, by its number: one to a chapter."""
    texts = [path.read_text(encoding="utf-8") for path in CHAPTERS]
    numbered = [(match, text) for text in texts if (match := re.match(r"# (\d+)\. ", text))]
    assert len({match[1] for match, _ in numbered}) == len(numbered)
    return {int(match[1]): leads_of(text) for match, text in numbered}


def leads_of(part):
    """Return the headings and bold lead-ins of a section."""
    headings = re.findall(r"^(?:#+ )(.+)$", part, re.MULTILINE)
    bold = re.findall(r"^(?:[-*] |\d+\. )?\*\*([^*]+)\*\*", part, re.MULTILINE)
    return {on_one_line(lead).rstrip(".:") for lead in [*headings, *bold]}


def exists(citation):
    """Tell whether what is cited stands where it is said to stand."""
    if citation.number is None:
        return any(citation.heading in leads for leads in sections().values())
    if citation.number not in sections():
        return False
    return citation.heading is None or citation.heading in sections()[citation.number]


@cache
def references():
    """Return the entries of the list of references."""
    text = REFERENCES.read_text(encoding="utf-8")
    parts = re.split(r"^(?:- |#.*$)", text, flags=re.MULTILINE)
    return [entry_of(on_one_line(part)) for part in parts if "**" in part]


def entry_of(text):
    """Read an entry of the list; its keys are what stands in bold."""
    keys = re.findall(r"\*\*([^*]+)\*\*", text)
    return Entry(tuple(paper for key in keys for paper in papers_in(key)), text)


def is_listed(paper):
    """Tell whether an entry has the key that a paper is cited by, or all the authors cited."""
    return any(is_key_of(key, entry, paper) for entry in references() for key in entry.papers)


def is_key_of(key, entry, paper):
    """Tell whether a key of an entry is a paper's: its year, first author, all authors cited."""
    if (key.year, key.authors[0]) != (paper.year, paper.authors[0]):
        return False
    names_all = len(paper.authors) > 1 and all(name in entry.text for name in paper.authors)
    return key.authors == paper.authors or names_all


def is_named(work):
    """Tell whether an entry has a work that is cited by a name."""
    return any(work in entry.text for entry in references())


# --- The tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", ["agents", "docs", "hpcgym", "scripts", "tests"])
def test_every_cited_section_of_the_specification_exists(room):
    missing = [
        f"{path.relative_to(ROOT)}: {citation}"
        for path in CITING
        if path.is_relative_to(ROOT / room)
        for citation in citations_in(path.read_text(encoding="utf-8"))
        if not exists(citation)
    ]
    assert not missing


def test_sections_are_numbered_by_subject():
    assert sorted(sections()) == [1, 2, 3, 4, *range(6, 11), *range(13, 18)]


@pytest.mark.parametrize("chapter", [*CHAPTERS, *BINDING], ids=lambda path: path.name)
def test_chapters_cite_each_other_as_they_are(chapter):
    text = re.sub(r"\bsections? (?=\d)", "Specification, section ", chapter.read_text("utf-8"))
    assert not [str(citation) for citation in citations_in(text) if not exists(citation)]


def test_every_cited_rule_of_reruns_exists():
    texts = [on_one_line(path.read_text("utf-8")) for path in CITING if path.suffix == ".py"]
    cited = re.findall(r'\b[Rr]ules of reruns, "([^"]+)"', " ".join(texts))
    rules = leads_of(RERUNS.with_suffix(".md").read_text("utf-8"))
    for table in RERUNS.glob("*.csv"):
        rules |= {row[0] for row in csv.reader(table.read_text("utf-8").splitlines())}
    assert len(cited) > 15 and not set(cited) - rules


def test_every_cited_paper_stands_in_the_references():
    missing = {
        f"{path}: {paper}"
        for path, source in cited_sources()
        for paper in papers_in(source)
        if not is_listed(paper)
    }
    assert not missing


def test_every_work_cited_by_a_name_stands_in_the_references():
    cited = {
        work
        for _, source in cited_sources()
        for work in [*REPORT.findall(source), *(name for name in WORKS if name in source)]
    }
    assert cited and not [work for work in sorted(cited) if not is_named(work)]


def test_every_card_names_a_paper_a_work_or_hpcgym():
    silent = [
        str(path)
        for path, source in cited_sources()
        if path.suffix == ".toml"
        and not (papers_in(source) or any(name in source for name in (*WORKS, "hpcgym")))
    ]
    assert not silent


def test_the_finder_is_not_blind():
    """The code cites the specification hundreds of times, and dozens of papers."""
    n_citations = sum(len(citations_in(path.read_text(encoding="utf-8"))) for path in CITING)
    papers = {paper for _, source in cited_sources() for paper in papers_in(source)}
    assert n_citations > 200 and len(papers) > 30


def test_a_made_up_section_and_heading_are_found_and_do_not_exist():
    text = 'Source:\n    Specification,\n    section 99, "Nowhere"; specification, "Nothing".'
    found = citations_in(text)
    assert found == [Citation(99, None), Citation(99, "Nowhere"), Citation(None, "Nothing")]
    assert not any(map(exists, found))
    assert not exists(Citation(2, "Observation")) and exists(Citation(10, "Observation"))


@pytest.mark.parametrize(
    "module",
    [
        '"""Do.\n\nSource:\n    Smith 1956; Nobody\n    1999.\n\nExample:\n    Else 2001\n"""',
        '"""Do.\n\nSource: Smith 1956; Nobody 1999.\n"""',
        'call("NAME", source="Smith 1956; Nobody 1999")',
    ],
)
def test_a_made_up_paper_is_found_and_is_not_listed(module):
    (source,) = sources_in(module)
    smith, nobody = papers_in(source)
    assert (smith, nobody) == (Paper(("Smith",), "1956"), Paper(("Nobody",), "1999"))
    assert is_listed(smith) and not is_listed(nobody)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Source: Specification, section 10, "Observation".', [(10, None), (10, "Observation")]),
        ("Specification, sections 3, 6, 8 and 10.", [(3, None), (6, None), (8, None), (10, None)]),
        ('sections 8, "dynP", and 10', []),
        (
            'Specification, sections 8, "dynP", and 10; Streit 2002',
            [(8, None), (8, "dynP"), (10, None)],
        ),
        (
            'specification, section 4, "A",\n  `b="c"`, and section 8, "D, e".',
            [(4, None), (4, "A"), (8, None), (8, "D, e")],
        ),
        (
            'Specification, section 10, "A" and "B", steps 1 and 5.',
            [(10, None), (10, "A"), (10, "B")],
        ),
        ('Specification, section 6, "A"; "double" is another', [(6, None), (6, "A")]),
        ('Specification, "Action semantics", `job`.', [(None, "Action semantics")]),
        ("from section 10 of the specification", [(10, None)]),
        ("the specification's text, section 8, upon", [(8, None)]),
        ('f("hpcgym specification, section 10"), g("x")', [(10, None)]),
        ('[Specification](specification.md), section 7, "Claims"', [(7, None), (7, "Claims")]),
        ("RR-9212, section 8; of a specification of 3 parts", []),
    ],
)
def test_the_finder_reads_every_form_of_citation(text, expected):
    assert citations_in(text) == [Citation(*one) for one in expected]


@pytest.mark.parametrize(
    "text",
    [
        "Tsafrir, Etsion and Feitelson 2007 (recent)",
        "Tsafrir, Etsion, Feitelson 2007, Backfilling using",
        "Carastan-Santos, de Camargo, Trystram, Zrigui 2019, One can only gain",
        "Mu'alem and Feitelson 2001",
        "Zhang et al. 2020 (RLScheduler, SC20)",
    ],
)
def test_papers_are_found_under_every_form_of_their_authors(text):
    (paper,) = papers_in(text)
    assert is_listed(paper)


@pytest.mark.parametrize("text", ["Tsafrir 2007", "Streit 2003", "Etsion and Tsafrir 2007"])
def test_a_paper_under_a_key_it_does_not_have_is_not_listed(text):
    (paper,) = papers_in(text)
    assert not is_listed(paper)
