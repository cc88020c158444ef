"""How Sphinx builds the documentation: `python -m sphinx -W docs build/docs`.

Docstrings are in Google style with tables in Markdown. Sphinx reads them as reStructuredText, so
their tables are rewritten first. Pages link to files of the checkout beside docs/. Such a link
leads to the repository where [project.urls] has one; else the file is named.
"""

import gc
import importlib
import inspect
import os
import re
from importlib.metadata import metadata
from pathlib import Path

import typer
from docutils import nodes
from sphinx import addnodes
from sphinx.directives.patches import CSVTable
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

from hpcgym.cli import app as commands

gc.disable()  # pages are kept until the end, and looking through them took two fifths of the time

project = "hpcgym"
author = "The hpcgym authors"
copyright = author
version = release = metadata("hpcgym")["Version"]
urls = dict(line.split(", ") for line in metadata("hpcgym").get_all("Project-URL", []))

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:is(.highlight-bash, .highlight-python, .highlight-toml, .doctest) pre"
nb_execution_mode = "off"  # notebooks are shown as they are kept; tests/test_notebooks.py runs them
nb_output_stderr = "remove"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"hpcgym {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]

default_role = "py:obj"  # docstrings write `name` for whatever is code
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
napoleon_custom_sections = [("Source", "notes_style")]

DATA_SHEET = "hpcgym.env.scheduling.SchedulingEnv"
SHORT_TYPES = (
    (r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[(.*?)\]\]", r"NDArray[\1]"),
    (r"~numpy\._typing\._array_like\._Buffer .*? \| complex .*?\| str\]", "ArrayLike"),
    (r"<factory>", "..."),
)
"""What autodoc writes of types in signatures, and how numpy and readers write it."""


DOCS = Path(__file__).parent
INDEXED = ("commands", "environment")
"""Pages whose tables and lists explain commands and settings."""
INTERVAL = re.compile(r"(?<=\d) (?=\[[-+]?\d)|(?<=\d,) (?=[-+]?\d[\d.]*\])")
"""Blanks within a number and its interval, such as 0.758 [0.703, 0.821]."""
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")
README = DOCS.parent / "README.md"
"""The first page, index.md, includes it."""


class DataSheet(SphinxDirective):
    """Show the docstring of a class, each of its headings as a section."""

    required_arguments = 1

    def run(self):
        """Parse the docstring as Markdown."""
        module, _, name = self.arguments[0].rpartition(".")
        text = inspect.getdoc(getattr(importlib.import_module(module), name))
        return self.parse_text_to_nodes(as_markdown(text), allow_section_headings=True)


class Figures(CSVTable):
    """Show CSV files, whose first rows are heads, each below a link to it."""

    required_arguments = 1

    def run(self):
        """Take what is the same for all."""
        shown = []
        for path in " ".join(self.arguments).split():
            self.options |= {"file": path, "header-rows": 1}
            self.arguments = [f"[{Path(path).name}]({path})"]
            shown += super().run()
        return shown


class Commands(SphinxDirective):
    """Show each command with all of its options, as `--help-all` does."""

    def run(self):
        """Parse what the commands say of themselves as Markdown."""
        root = typer.main.get_command(commands)
        text = "\n".join(help_of(root, ["hpcgym"], typer.Context(root)))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def help_of(command, words, context):
    """Yield the lines of a section on a command; of a group, on each command in it."""
    if hasattr(command, "commands"):
        for name in command.list_commands(context):
            yield from help_of(command.get_command(context, name), [*words, name], context)
        return
    yield from ("", f"### `{' '.join(words)}`", "", quoted(command.help.replace("\n\n", " ")), "")
    yield from ("| argument | meaning |", "|---|---|")
    for parameter in command.params:
        names = [*parameter.opts, *parameter.secondary_opts]
        if parameter.param_type_name == "argument":
            names = [parameter.metavar or parameter.name.upper()]
        cells = ", ".join(f"`{name}`" for name in names), quoted(parameter.help)
        yield "| {} | {} |".format(*(cell.replace("|", r"\|") for cell in cells))


def quoted(text):
    """Return what a command says, with options between backticks, so that they keep both dashes."""
    return re.sub(r"`[^`]*`|--[\w-]+", lambda found: f"`{found[0].strip('`')}`", text)


class IndexEntries(SphinxTransform):
    """Puts what the pages on commands and settings explain into the index, so search finds it."""

    default_priority = 800  # before the domain of the index looks for entries

    def apply(self):
        """Add an entry for each literal in the first cell of a row, or that begins an item."""
        if self.env.docname not in INDEXED:
            return
        known = set()
        for number, box in enumerate([*self.document.findall(is_explained)]):
            first = next(iter(box.findall(nodes.paragraph)), nodes.paragraph())
            names = [child.astext() for child in first.children if isinstance(child, nodes.literal)]
            if names and (isinstance(box, nodes.entry) or isinstance(first[0], nodes.literal)):
                anchor = f"explained-{number}"
                entries = [
                    ("single", name, anchor, "" if name in known else "main", None)  # main: first
                    for name in names
                ]
                first.insert(0, addnodes.index(entries=entries))
                first["ids"].append(anchor)
                known.update(names)


def is_explained(node):
    """Tell whether a node is an item of a list, or the first cell of a row."""
    is_first = isinstance(node, nodes.entry) and node.parent.index(node) == 0
    return is_first or isinstance(node, nodes.list_item)


def as_markdown(docstring):
    """Return a docstring with `Heading:` lines as headings, and `name: text` as items of lists."""
    text = re.sub(r"^([A-Z][A-Za-z ]+):$", r"### \1", docstring, flags=re.MULTILINE)
    text = re.sub(r"^    ([a-z]\w*): ", r"- `\1`: ", text, flags=re.MULTILINE)
    return re.sub(r"^    ", "", text, flags=re.MULTILINE)


def resolve_links(app, docname, source):
    """Replace links of a page to files outside docs/."""
    source[0] = resolved(source[0], (DOCS / docname).parent)


def resolve_included(app, path, docname, source):
    """Replace such links of a file that a page includes."""
    source[0] = resolved(source[0], DOCS.joinpath(path).resolve().parent)


def resolved(text, folder):
    """Return a text of a folder with links that lead somewhere from the site."""

    def resolve(link):
        target = folder.joinpath(link[2]).resolve()
        if target.is_relative_to(DOCS):
            return link[0]
        if target == README:
            page = os.path.relpath(DOCS / "index.md", folder)
            return f"[{link[1]}]({page}{link[3] or ''})"
        path = target.relative_to(DOCS.parent).as_posix()
        if "Repository" in urls:
            return f"[{link[1]}]({urls['Repository']}/blob/main/{path})"
        return f"`{path}`" if link[1].strip("`") in path else f"{link[1]} (`{path}`)"

    return LINK.sub(resolve, text)


def refer_to_data_sheet(app, what, name, obj, options, lines):
    """Replace the docstring of the environment, which has a page of its own."""
    if name == DATA_SHEET:
        lines[:] = [lines[0], "", "The page on the environment has its data sheet."]


def shorten_types(app, what, name, obj, options, signature, returned):
    """Write types of arrays by their short names."""
    for long, short in SHORT_TYPES:
        signature = signature and re.sub(long, short, signature)
        returned = returned and re.sub(long, short, returned)
    return signature, returned


def rewrite_tables(app, what, name, obj, options, lines):
    """Write tables in Markdown as lists that reStructuredText reads as tables."""
    rewritten = []
    for line in lines:
        indent, bar, row = line.partition("|")
        if not bar or indent.strip():
            rewritten.append(line if ">>>" in line else line.replace("|", r"\|"))
        elif set(row) <= set("|-: "):
            continue  # the line below the head
        else:
            if not rewritten or not rewritten[-1].startswith(f"{indent}     "):
                rewritten += [f"{indent}.. list-table::", f"{indent}   :header-rows: 1", ""]
            cells = re.split(r"(?<!\\)\|", row.rstrip().removesuffix("|"))
            marks = ["* -", *["  -"] * (len(cells) - 1)]
            cells = zip(marks, cells, strict=True)
            rewritten += [f"{indent}   {mark} {cell.strip()}" for mark, cell in cells]
    lines[:] = rewritten


def keep_intervals_whole(app, doctree, docname):
    """Let no line end within a number and its interval in tables."""
    for entry in doctree.findall(nodes.entry):
        for text in [*entry.findall(nodes.Text)]:
            text.parent.replace(text, nodes.Text(INTERVAL.sub("\N{NO-BREAK SPACE}", text)))


def setup(app):
    """Register what this page defines; tables come before napoleon sorts the sections."""
    app.add_directive("data-sheet", DataSheet)
    app.add_directive("commands", Commands)
    app.add_directive("figures", Figures)
    app.add_transform(IndexEntries)
    app.connect("source-read", resolve_links)
    app.connect("include-read", resolve_included)
    app.connect("doctree-resolved", keep_intervals_whole)
    app.connect("autodoc-process-signature", shorten_types)
    app.connect("autodoc-process-docstring", refer_to_data_sheet, priority=100)
    app.connect("autodoc-process-docstring", rewrite_tables, priority=200)
