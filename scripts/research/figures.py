"""Figures on pages, each with a name, and the pairs that contradict each other.

A figure is a number in a row or column of an agent, or any number with an interval. In sentences
it is also a ratio of three digits to SAF, a rate, or the share that is wasted or killed. Its name
is a set of terms: the agent, the log or the logs, what the column's head says, and conditions
that the row, the sentence, the text around the table or the page's first lines state.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?"
INTERVAL = rf"({NUMBER}) \[({NUMBER}), ({NUMBER})\]"
CELL = re.compile(rf"\**(?:{INTERVAL}|({NUMBER}) ?%?)\**")
CLAIM = re.compile(
    rf"(?<![\w.,]){INTERVAL}|(?<![\w.,])(0\.\d{{3}})(?![\d.]| \[)"
    r"|(?P<what>waste|kill)s? (?P<share>\d[\d.]*) %"
    r"|(?P<rate>\d[\d.,]*)(?P<million> million)? (?P<unit>jobs|steps|decisions)(?:/s| a second)\b"
)
LONE = re.compile(r"SAF|bounded slowdown|[A-Z]'s 0\.")
"""What stands beside a ratio without interval."""
INCLUDED = re.compile(r"(?:(?<=:::\{figures\} )|(?<=\.csv ))\S+\.csv|(?<=\]\()[^)#]+\.csv(?=\))")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
LOGS = (
    r"kth-sp2|ctc-sp2|sdsc-sp2|sdsc-blue|hpc2n|sdsc-par|cea-curie|synthetic-256|synthetic-busy"
    r"|many-weeks|hetero-64|theta|mira|llnl-\w+|sandia-ross|nasa-ipsc|cerit|metacentrum"
)
LOG = re.compile(rf"(?<![\w-])({LOGS})(?:-weeks|-20\d\d-weeks)?(?!\w)", re.IGNORECASE)
ANY_AGENT = rf"(?!(?i:{LOGS})\b)[A-Z][A-Z0-9]+(?:-[A-Z][A-Z0-9]*)+"
PARTS = {
    r"\bold( logs)?\b": "old",
    r"\btoday\b": "today",
    r"\bbundled\b": "bundled",
    r"\bnodes\b": "nodes",
}
"""Parts of the suite, each with a mean of its own."""
SETS = {
    r"suite\b": "suite",
    r"five( whole| old)? logs|KTH-SP2, .* HPC2N|those of Results": "five logs",
    r"many-weeks\b(?<!-s many-weeks)": "many-weeks",
}
"""Other logs that a mean is over; one whose logs nothing states is named by its page."""
OLDER = "older bootstrap"
"""Where this is said, intervals differ from others of the same name; their values don't."""
CONDITIONS = {
    r"older bootstrap": OLDER,
    r"test weeks|weeks test\b": "test weeks",
    r"test:(\d+)|\b(\d+) weeks|\b(\d+ months)": "of {}",
    r"last blocks?\b": "last blocks",
    r"--replicas (?!10\b)(\d+)": "{} copies",
}
CLAUSES = {
    r"lightest": "light weeks",
    r"heaviest": "heavy weeks",
    r"costs 120 s": "overhead",
    r"mean action": "mean action",
    r"best constant": "best constant",
}
"""Conditions of the figure's own row or sentence only."""
HEADS = {
    **dict.fromkeys(("bounded slowdown", "ratio", "ratio to saf", "geometric mean", "to saf"), ""),
    **dict.fromkeys(("machine wasted, %", "waste"), "wasted, %"),
    **dict.fromkeys(("jobs killed, %", "kill"), "killed, %"),
    "overhead=120": "overhead",
    "without trials": "",
}
"""Heads in other words; what has no such term is a ratio to SAF's bounded slowdown."""
Terms = frozenset[str]
Spot = tuple[str, int, str]
NO_TERMS: Terms = frozenset()


class Figure(NamedTuple):
    """A number, perhaps with its interval; figures of one table or sentence share `where`."""

    name: Terms
    numbers: tuple[str, ...]
    path: str
    line: int
    where: str
    is_older: bool = False

    @property
    def is_of_all_pages(self) -> bool:
        """Whether the name tells the figure from those of other pages."""
        return bool(self.name) and self.path not in self.name

    def __str__(self) -> str:
        """Say where it stands, and its name."""
        value, *ends = self.numbers
        interval = f" [{', '.join(ends)}]" if ends else ""
        name = ", ".join(sorted(self.name)) or "no name"
        return f"{self.path}:{self.line}: {value}{interval} ({name})"

    @property
    def values(self) -> tuple[Decimal, ...]:
        """The numbers; what is -0.1 more is 0.1 less."""
        numbers = [Decimal(text.replace(",", "")) for text in self.numbers]
        if len(numbers) == 3 and numbers[0] < 0:
            numbers = [-numbers[0], -numbers[2], -numbers[1]]
        return tuple(numbers)


def figures(root: Path) -> Iterator[Figure]:
    """Yield the figures of the pages of a checkout, and of the tables that they include."""
    names = sorted((path.stem.upper() for path in root.glob("agents/*.toml")), key=len)
    agent = re.compile(rf"(?<![\w-])({'|'.join([*reversed(names), ANY_AGENT])})(?![\w-])")
    pages = [root / "README.md", root / "agents" / "README.md", *sorted(root.glob("docs/**/*.md"))]
    for page in pages:
        if page.exists():
            yield from _Page(root, page, agent).figures()
    results = root / "agents" / "results.csv"
    if results.exists():
        yield from _of_results(results)


def contradictions(known: Iterable[Figure]) -> Iterator[tuple[Figure, Figure]]:
    """Yield pairs of one name that differ.

    Where one of two intervals has no name, they differ if two of their three numbers are equal.
    """
    groups: dict[object, list[Figure]] = defaultdict(list)
    for figure in known:
        if figure.name:
            groups[figure.name].append(figure)
        if len(figure.numbers) == 3 and figure.path != "agents/results.csv":
            values = figure.values
            if values[1] < values[0] < values[2]:
                for first, other in combinations(range(3), 2):
                    key = figure.is_older, first, other, values[first], values[other]
                    groups[key].append(figure)
    pairs = {
        pair: None
        for key, group in groups.items()
        for pair in combinations(group, 2)
        if pair[0].where != pair[1].where
        and (isinstance(key, frozenset) or not all(figure.is_of_all_pages for figure in pair))
    }
    yield from (pair for pair in pairs if not are_equal(*pair))


def are_equal(first: Figure, other: Figure) -> bool:
    """Tell whether two figures are equal when rounded to the coarser of the two."""
    n_compared = 3 if first.is_older == other.is_older else 1
    return all(map(_is_same, first.values[:n_compared], other.values))


def _is_same(first: Decimal, other: Decimal) -> bool:
    digits = [int(value.as_tuple().exponent) for value in (first, other)]
    if digits[0] == digits[1]:
        return first == other
    return abs(first - other) <= Decimal(1).scaleb(max(digits)) / 2


def _of_results(path: Path) -> Iterator[Figure]:
    """Yield what the results of the shelf say of each log."""
    with path.open(encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    n_weeks: dict[str, int] = defaultdict(int)
    for row in rows:
        n_weeks[row["scenario"]] = max(n_weeks[row["scenario"]], int(row["n_weeks"]))
    for number, row in enumerate(rows, 2):
        name = _logs(row["scenario"]) | {row["agent"]}
        name |= {"last blocks"} if int(row["n_weeks"]) < n_weeks[row["scenario"]] else NO_TERMS
        spot = "agents/results.csv", number, "agents/results.csv"
        ratio = row["ratio_to_saf"], row["ratio_low"], row["ratio_high"]
        yield Figure(name, ratio, *spot)
        yield Figure(name | {"longest wait"}, (row["max_wait_ratio"],), *spot)


class _Page:
    """A page: its tables and sentences, with what is said around them."""

    def __init__(self, root: Path, path: Path, agent: re.Pattern[str]) -> None:
        self.root, self.folder, self.agent = root, path.parent, agent
        self.path = path.relative_to(root).as_posix()
        self.sections: list[list[tuple[int, str]]] = [[]]
        is_code = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            is_code ^= line.lstrip().startswith("```")
            if line.startswith("#") and not is_code:
                self.sections.append([])
            self.sections[-1].append((number, f"    {line}" if is_code else line))
        first = self.sections[1] if len(self.sections) > 2 else []
        lead = _plain([line for line in first if not line[1].startswith(("|", "    "))])
        self.leading = _terms(CONDITIONS, lead), _terms(SETS, lead)
        self.around, self.sets, self.subject = NO_TERMS, NO_TERMS, NO_TERMS

    def figures(self) -> Iterator[Figure]:
        """Yield the figures of all sections."""
        for section in self.sections:
            yield from self.of_section(section)

    def of_section(self, section: list[tuple[int, str]]) -> Iterator[Figure]:
        """Yield the figures of a section, block by block: text, tables, and files with tables."""
        blocks: list[tuple[str, list[tuple[int, str]]]] = []
        for number, line in section:
            kind = "row" if line.startswith("|") else "file" if line.startswith(":::{f") else "text"
            if not blocks or kind != blocks[-1][0] or kind == "file":
                blocks.append((kind, []))
            blocks[-1][1].append((number, line))
        texts = [_plain(lines) if kind == "text" else "" for kind, lines in blocks]
        subject = NO_TERMS
        for index, (kind, lines) in enumerate(blocks):
            self.hear(texts, index)
            if kind == "row":
                rows = [(n, _cells(line)) for n, line in lines if set(line) - set("|-: ")]
                yield from self.of_table(rows, self.path, f"{self.path}:{lines[0][0]}")
                subject = frozenset(self.agents(lines[-1][1])[-1:]) or subject
                continue
            for number, line in lines:
                for match in INCLUDED.finditer(line):
                    yield from self.of_file(self.folder / match[0])
                if kind == "text" and not line.startswith("    "):
                    spot = self.path, number, f"{self.path}:{number}"
                    for sentence in re.split(r"(?<=[.;]) ", LINK.sub(r"\1", line)):
                        yield from self.of_text(sentence, spot, subject=subject)
                        subject = frozenset(self.agents(sentence)[-1:]) or subject

    def hear(self, texts: list[str], index: int) -> None:
        """Note what is said around a block: before it, and behind the last table."""
        before = texts[index - 1] if index else ""
        behind = texts[index + 1] if index + 2 == len(texts) else ""
        said = " ".join((before, texts[index], behind))
        self.around = self.leading[0] | _terms(CONDITIONS, said)
        self.sets = self.leading[1] | _terms(SETS, f"{texts[0]} {said}")
        agents = frozenset(self.agents(before))
        self.subject = agents if len(agents) == 1 else NO_TERMS

    def of_file(self, path: Path) -> Iterator[Figure]:
        """Yield the figures of a table in a file."""
        if path.exists():
            name = path.resolve().relative_to(self.root.resolve()).as_posix()
            with path.open(encoding="utf-8") as file:
                reader = csv.reader(file)
                rows = [(reader.line_num, row) for row in reader]
            yield from self.of_table(rows, name, name)

    def of_table(
        self, table: list[tuple[int, list[str]]], path: str, where: str
    ) -> Iterator[Figure]:
        """Yield the figures of a table, whose first row is the head."""
        (_, heads), *rows = table
        column = heads.index("agent") if "agent" in heads else 0
        columns = [self.of_head(head) for head in heads]
        for number, cells in rows:
            spot = path, number, where
            first = next((i for i, c in enumerate(cells) if i and CELL.fullmatch(c)), len(cells))
            if first == len(cells):
                yield from self.of_text(" | ".join(cells), spot)
                continue
            row = self.of_row(heads[column:first], cells[column:first] or cells[:1])
            for head, cell in zip(columns[first:], cells[first:], strict=False):
                name = row | head
                name |= NO_TERMS if self.named(name) else self.subject
                match = CELL.fullmatch(cell)
                if not match:
                    yield from self.of_text(cell, spot, row)
                elif match[1] or self.named(name):
                    yield self.figure(name, filter(None, match.groups()), spot)

    def of_row(self, heads: list[str], cells: list[str]) -> Terms:
        """Return the terms of what stands before a row's figures."""
        terms: list[str] = []
        for index, (head, cell) in enumerate(zip(heads, cells, strict=False)):
            text = cell.strip("`* ")
            match = self.agent.match(text) or re.search(rf"\({self.agent.pattern}\)", text)
            if match:
                rest = _rest(re.split(r"[,:()]", text[match.end() :])[0])
                terms += [f"over {match[1]} {rest}"] if index else [match[1], rest]
            elif terms and head != "contest":
                terms.append(text.lower())
        text = cells[0].strip("`* ")
        if not terms and (match := LOG.match(text)):
            rest = text[match.end() :].lower()
            return frozenset((match[1].lower(), rest if rest.endswith(tuple("0123456789")) else ""))
        return frozenset(terms or [" | ".join(cells).lower()])

    def of_head(self, head: str) -> Terms:
        """Return the terms of a column's head."""
        head = head.strip("` ")
        text = head.lower()
        parts = _terms(PARTS, text)
        match = self.agent.search(head)
        if match and not re.search(rf"\b(to|over|of|less) {match[1]}", head):
            return frozenset((match[1], _rest(head.replace(match[1], ""))))
        if match := LOG.match(head):
            return frozenset(
                (match[1].lower(), re.sub(r", \d+( weeks)?$", "", text[match.end() :]))
            )
        return parts if parts and len(text.split()) < 4 else frozenset((HEADS.get(text, text),))

    def of_text(
        self, text: str, spot: Spot, row: Terms = NO_TERMS, subject: Terms = NO_TERMS
    ) -> Iterator[Figure]:
        """Yield the figures of a sentence, or of a cell that holds words."""
        matches = [*CLAIM.finditer(text)]
        starts = [*(match.start() for match in matches[1:]), len(text)]
        begin = 0
        for match, end in zip(matches, starts, strict=False):
            before = text[begin : match.start()]
            after = re.split(r"[,;.](?!\d)|\band\b", text[match.end() : end])[0]
            agents = self.agents(text[: match.start()])[-1:] or self.agents(text[match.end() :])[:1]
            name = frozenset(agents) or (subject if match["what"] else row)
            parts = _terms(PARTS, after) or _terms(PARTS, before)
            logs = _logs(after) or _logs(before) or _logs(text[:begin])
            begin = match.end() + len(after)
            name |= (parts or logs) | _terms(CONDITIONS | CLAUSES, before + after)
            if match["what"]:
                yield self.figure(name | {HEADS[match["what"]]}, [match["share"]], spot)
            elif match["rate"]:
                several = frozenset(re.findall(r"\d+ environments", text))
                number = match["rate"] + "E+6" * bool(match["million"])
                if what := several or _logs(text):
                    yield Figure(what | parts | {f"{match['unit']}/s"}, (number,), *spot)
            elif match[4] is None:
                yield self.figure(name, match.group(1, 2, 3), spot)
            elif agents and LONE.search(text):
                yield self.figure(name, [match[4]], spot)

    def figure(self, name: Terms, numbers: Iterable[str], spot: Spot) -> Figure:
        """Return a figure, whose name also has what is said around it."""
        is_older = OLDER in self.around
        if not self.named(name):
            return Figure(NO_TERMS, tuple(numbers), *spot, is_older)
        if not _logs(" ".join(name)) and not name & set(PARTS.values()):
            name |= self.sets or {self.path}
        if self.path.startswith("docs/papers/"):
            name |= {self.path}
        return Figure((name | self.around) - {"", OLDER}, tuple(numbers), *spot, is_older)

    def agents(self, text: str) -> list[str]:
        """Return the agents that a text names, but SAF, which others are compared with."""
        return [name for name in self.agent.findall(text) if name != "SAF"]

    def named(self, name: Terms) -> bool:
        """Tell whether an agent is among the terms."""
        return any(map(self.agent.fullmatch, name))


def _plain(lines: list[tuple[int, str]]) -> str:
    return LINK.sub(r"\1", " ".join(line for _, line in lines))


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in LINK.sub(r"\1", row).strip().strip("|").split("|")]


def _rest(text: str) -> str:
    text = text.strip(" :`").lower()
    return "knows run times" if "run times" in text else HEADS.get(text, text)


def _logs(text: str) -> Terms:
    return frozenset(name.lower() for name in LOG.findall(text))


def _terms(patterns: dict[str, str], text: str) -> Terms:
    return frozenset(
        term.format("".join(filter(None, match.groups())))
        for pattern, term in patterns.items()
        for match in re.finditer(pattern, text)
    )
