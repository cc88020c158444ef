"""What the documents tell a reader to type works, as printed and in the order printed.

A fenced block is `python` or `bash`; all python blocks of a document share one session. Blocks
marked `logs` after the language run where HPCGYM_TRACES names a folder of real logs, those marked
`record` where Minari is. Sessions with blocks marked `train` run where that extra is installed, in
a slow test unless a change touches the page; else what they import of hpcgym is imported. Some are
only parsed: those marked `network`, which need it or a program that is not installed; those marked
`long`, which take a minute to hours, but in a slow test of tutorials; the check command, which runs
these tests; and the quickstart, which runs once, in the test of what it prints.
"""

import ast
import importlib.util
import os
import re
import subprocess
import sysconfig
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from changed import changed_files, pages_of
from research.figures import INCLUDED
from warm_python import WarmPython

ROOT = Path(__file__).parents[1]
DOCUMENTS = ["README.md", "CONTRIBUTING.md"]
DOCUMENTS += [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
ROOMS = [f"{room}/README.md" for room in ("agents", "hpcgym", "scenarios", "scripts", "traces")]
CHECK = "scripts/check.py"
QUICKSTART = "python3 scripts/quickstart.py\n"
TUTORIAL = "docs/tutorials/first_schedule.md"
FENCE = re.compile(r"^ *```(\w+)[ \t]*(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
MARKS = ("", "logs", "long", "network", "record", "train")
MOST_WORDS = 45_400  # of all pages together: a new page takes the place of words elsewhere
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


class Block(NamedTuple):
    """One fenced block of a document."""

    document: str
    line: int
    language: str
    mark: str
    text: str


def blocks(document):
    """Return the fenced blocks of a document, in order."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return [
        Block(
            document,
            text.count("\n", 0, match.start()) + 2,
            *match.group(1, 2),
            textwrap.dedent(match[3]),
        )
        for match in FENCE.finditer(text)
    ]


def can_run(block):
    """Tell whether a block may run here."""
    if block.mark == "logs":
        return bool(os.environ.get("HPCGYM_TRACES"))
    if block.mark == "train":
        return importlib.util.find_spec("stable_baselines3") is not None
    if block.mark == "record":
        needed = ("minari", "PIL", "pyarrow", "torch")
        return all(importlib.util.find_spec(module) is not None for module in needed)
    return not block.mark and CHECK not in block.text and block.text != QUICKSTART


def label(block):
    """Name a block as test reports show it."""
    return f"{block.document}:{block.line}"


def session(document):
    """Return the python blocks of a document that can run here."""
    return [b for b in blocks(document) if b.language == "python" and can_run(b)]


BASH = [b for document in DOCUMENTS for b in blocks(document) if b.language == "bash"]
TOUCHED = pages_of(changed_files(ROOT), DOCUMENTS, ROOT)


def of_page(document, *run):
    """Return a case of a page: unless a change touches the page it is long; slow if it trains."""
    trains = not run and any(block.mark == "train" for block in blocks(document))
    mark = pytest.mark.slow if trains else pytest.mark.long
    return pytest.param(*run or [document], marks=() if document in TOUCHED else mark)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder of `hpcgym` and `python` that begin at once."""
    warm = WarmPython(tmp_path_factory.mktemp("programs"))
    yield warm.folder
    warm.close()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder that has the project's scripts and data sets where a checkout has them."""
    (tmp_path / "scripts").symlink_to(ROOT / "scripts", target_is_directory=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "datasets").symlink_to(ROOT / "docs" / "datasets", True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(option, text, *programs):
    """Let bash read a text, with the programs of a folder, or with those that are installed."""
    folders = [*map(str, programs), sysconfig.get_path("scripts"), os.environ["PATH"]]
    return subprocess.run(
        ["bash", option, "-o", "pipefail", "-c", text],
        env={**os.environ, "PATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
    )


def test_readme_opens_with_the_two_commands():
    first, second = blocks("README.md")[:2]
    assert first.text == QUICKSTART
    assert second.text == "python3 scripts/check.py\n"


def test_readme_is_read_in_a_few_minutes():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize(("page", "most"), [("results", 800), ("performance", 950)])
def test_page_of_findings_is_read_in_a_few_minutes(page, most):
    assert len((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").split()) <= most


def test_specification_is_read_in_an_evening():
    chapters = (ROOT / "docs" / "specification").glob("*.md")
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in chapters) <= 20_040


def test_appendices_are_tables_with_few_words_around():
    pages = (ROOT / "docs" / "appendices").glob("*.md")
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in pages) <= 1_000


def test_every_table_of_a_page_is_written_by_a_command():
    """A script names it, or the page's own command writes a file of that name."""
    files = [path for kind in ("*.py", "*.toml") for path in (ROOT / "scripts").rglob(kind)]
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in files)
    for document in DOCUMENTS:
        text = (ROOT / document).read_text(encoding="utf-8")
        for name in {Path(match[0]).stem for match in INCLUDED.finditer(text)}:
            named = re.search(rf'"{name}(\.csv)?"|^{name} = \[', scripts, re.MULTILINE)
            assert named or re.search(rf"(>|-o) {name}\.csv", text), (document, name)


def test_pages_stay_short_together():
    """The specification has a limit of its own."""
    rooms = ["CHANGELOG.md", "agents/README.md", "hpcgym/README.md"]
    pages = [*DOCUMENTS[1:], *rooms]
    n_words = {
        page: len((ROOT / page).read_text(encoding="utf-8").split())
        for page in pages
        if not page.startswith("docs/specification/")
    }
    largest = sorted(n_words, key=n_words.__getitem__)[-8:]
    total = sum(n_words.values())
    assert total <= MOST_WORDS, f"{total} words; largest: {[(p, n_words[p]) for p in largest]}"


def test_index_counts_what_there_is():
    from hpcgym.core import loaders
    from hpcgym.core.backfill import MODES
    from hpcgym.core.policy import policy_names
    from hpcgym.core.requests import PLACEMENTS
    from hpcgym.trace.catalogue import catalogue

    known = [name for name, entry in catalogue().items() if not entry.folder]
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for count, what in (
        (len(policy_names()), "[policies]"),
        (len(MODES), "[modes]"),
        (len(PLACEMENTS), "placement rules"),
        (len(known), "known logs"),
        (len(loaders.ACTIONS), "kinds of action"),
    ):
        assert f" {count} {what}" in text, (count, what)


@pytest.mark.long
def test_tutorial_shows_what_the_quickstart_prints(place):
    (shown,) = (block for block in blocks(TUTORIAL) if block.language == "text")
    done = typed("-e", QUICKSTART)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert printed[2:] == shown.text.splitlines()


@pytest.mark.parametrize("document", [of_page(one) for one in DOCUMENTS if session(one)])
def test_python_blocks_run_one_after_the_other(document, place, programs):
    lines = []
    for block in session(document):
        lines += [""] * (block.line - 1 - len(lines))  # so that a traceback shows the line
        lines += block.text.splitlines()
    program = place / f"{Path(document).name}.py"
    program.write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run([programs / "python", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "block", [of_page(one.document, one) for one in BASH if can_run(one)], ids=label
)
def test_bash_block_runs_to_its_end(block, place, programs):
    done = typed("-e", block.text, programs)
    assert done.returncode == 0, done.stdout + done.stderr


def test_bash_blocks_that_cannot_run_here_are_parsed():
    for block in BASH:
        if not can_run(block):
            assert typed("-n", block.text).returncode == 0, label(block)


@pytest.mark.slow
@pytest.mark.parametrize("document", [one for one in DOCUMENTS if "tutorials/" in one])
def test_tutorial_takes_less_than_ten_minutes_with_its_trainings(document, place):
    if importlib.util.find_spec("stable_baselines3") is None:
        pytest.skip("needs the extra train")
    began = time.monotonic()
    for block in blocks(document):
        if block.language == "bash" and (can_run(block) or block.mark == "long"):
            done = typed("-e", block.text)
            assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - began < 600


def test_every_block_says_what_it_is():
    for block in [block for document in DOCUMENTS for block in blocks(document)]:
        assert block.language in ("bash", "python", "text", "toml", "bibtex"), label(block)
        assert block.mark in MARKS, label(block)
        if block.language == "python":
            imports = [
                ast.unparse(node)
                for node in ast.walk(ast.parse(block.text))
                if isinstance(node, ast.ImportFrom) and node.module.startswith("hpcgym.")
            ]
            if block.mark in ("long", "train") and can_run(block._replace(mark="train")):
                exec("\n".join(imports), {})


def test_links_of_documents_lead_somewhere():
    for path in [ROOT / document for document in (*DOCUMENTS, *ROOMS)]:
        for target in LINK.findall(path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), (path, target)
