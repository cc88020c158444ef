"""The house plan, held: which way imports lean, what never happens, how things are named."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from hpcgym.registry import SHELVES, shelf_entries, shelf_folders

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "hpcgym"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SCRIPTS = sorted((ROOT / "scripts").glob("*.py"))

FLOORS = [
    {"errors"},
    {"registry", "output"},
    {"core"},
    {"trace"},
    {"batch", "gang", "moldable", "policies", "schedule"},
    {"scenario"},
    {"env"},
    {"agent"},
    {"evaluation"},
    {"report"},
    {"", "cli", "__main__"},
]
"""Lowest first; a room imports itself, its own floor and the floors below. "" is the face."""

FILE_LINES = 600
SCRIPT_LINES = 120
HEAVY = ["cma", "matplotlib", "numba", "pandas", "pygame", "stable_baselines3", "torch"]
"""What `import hpcgym` must not load."""

WRONG_WORDS = {
    *("algo", "bounded_slowdown", "dataset", "execution_time", "exec_time"),
    *("arrival_time", "queue_time", "walltime", "wall_time"),
    *("earliest_start_time", "n_procs", "num_procs", "procs", "spare_processors"),
}
"""Words the house has another one for; see the table of words in hpcgym/README.md."""

HIDDEN = re.compile(
    r"(?<![\w./~])/(?:work|tmp|root|home|opt|mnt)\b"  # a place on one machine
    + "|"
    + r"py"
    + r"pi\.(?:org|python)|python"
    + r"hosted|npm"
    + r"js\.|conda\."
    + r"anaconda"
)
"""What no file of the project may name: a machine's folders, a package registry's host."""


def label(path):
    """Name a file as test reports show it."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path):
    """Parse a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def nodes(path, *kinds):
    """Return a file's nodes of some kinds."""
    return [node for node in ast.walk(tree(path)) if isinstance(node, kinds)]


def room(path):
    """Return the room a module stands in: `core`, `errors`, or "" for the package's face."""
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def imports(path):
    """Return every module a file imports, also inside functions and for type checkers."""
    found = set()
    for node in nodes(path, ast.Import, ast.ImportFrom):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            assert node.level == 0, f"{label(path)}:{node.lineno}: imports are absolute"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def rooms_imported(path):
    """Return the rooms of hpcgym a file imports."""
    names = (module.split(".") for module in imports(path))
    return {
        parts[1] if len(parts) > 1 and parts[1] in ROOMS else ""
        for parts in names
        if parts[0] == "hpcgym" and (len(parts) > 1 or path not in MODULES)
    }


ROOMS = {name: floor for floor, names in enumerate(FLOORS) for name in names}


def test_every_room_has_a_floor():
    assert {room(path) for path in MODULES} <= set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=label)
def test_imports_lean_downwards(path):
    here = room(path)
    wrong = {other for other in rooms_imported(path) if ROOMS[other] > ROOMS[here]}
    assert not wrong, f"{label(path)} (floor of {here or 'the face'}) imports {sorted(wrong)}"


def test_core_knows_neither_gymnasium_nor_files_nor_chance():
    for path in MODULES:
        if room(path) == "core":
            assert not {"gymnasium", "random"} & {name.split(".")[0] for name in imports(path)}
            called = {n.attr for n in nodes(path, ast.Attribute)}
            assert "random" not in called, label(path)
            assert path.name == "jit.py" or "pathlib" not in imports(path), label(path)


def test_kernels_stand_in_core_where_the_digest_of_the_cache_sees_them():
    for path in MODULES:
        uses = {name for name in imports(path) if name.split(".")[0] == "numba"}
        uses |= {name for name in imports(path) if name == "hpcgym.core.jit.kernel"}
        assert room(path) == "core" or not uses, label(path)


def test_one_decorator_compiles_everything():
    for path in MODULES:
        if path.name != "jit.py":
            names = {n.attr for n in nodes(path, ast.Attribute)}
            names |= {name.rpartition(".")[2] for name in imports(path)}
            assert not names & {"njit", "jit_module", "vectorize", "guvectorize"}, label(path)
    assert "fastmath=" not in (PACKAGE / "core" / "jit.py").read_text()


def test_only_the_registry_knows_where_shelves_lie():
    for path in MODULES:
        if path.name in ("registry.py", "jit.py"):
            continue
        assert "__file__" not in {n.id for n in nodes(path, ast.Name)}, label(path)
        assert "_data" not in {n.value for n in nodes(path, ast.Constant)}, label(path)


@pytest.mark.parametrize("shelf", SHELVES)
def test_shelf_holds_entries_and_no_code(shelf):
    kinds = {path.suffix for path in (ROOT / shelf).rglob("*") if path.is_file()}
    assert kinds <= {".toml", ".md", ".gz", ".swf", ".npz", ".csv"}


@pytest.mark.parametrize("shelf", SHELVES)
def test_readme_of_a_shelf_names_every_entry(shelf):
    index = (shelf_folders(shelf)[0] / "README.md").read_text(encoding="utf-8").casefold()
    assert not [name for name in shelf_entries(shelf) if f"`{name}`" not in index]


def test_importing_the_package_loads_nothing_heavy():
    program = f"import sys, hpcgym; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_face_offers_the_names_it_lists_and_no_others():
    import hpcgym

    typed = {
        alias.asname or alias.name
        for node in nodes(PACKAGE / "__init__.py", ast.ImportFrom)
        if node.module.startswith("hpcgym.")
        for alias in node.names
    }
    assert typed == set(hpcgym.__all__) == set(hpcgym._HOMES)
    for name in hpcgym.__all__:
        assert getattr(hpcgym, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        _ = hpcgym.simulat


def test_package_faces_define_nothing():
    for path in MODULES:
        if path.name == "__init__.py" and path.parent != PACKAGE:
            body = [n for n in tree(path).body if not isinstance(n, ast.Import | ast.ImportFrom)]
            kept = [n for n in body if not isinstance(n, ast.Expr)]  # the docstring
            assert all(
                isinstance(n, ast.Assign) and [t.id for t in n.targets] == ["__all__"] for n in kept
            ), label(path)


def test_scripts_are_thin_and_never_import_each_other():
    own = {path.stem for path in SCRIPTS}
    for path in SCRIPTS:
        assert not own & {name.split(".")[0] for name in imports(path)}, label(path)
        assert len(path.read_text().splitlines()) <= SCRIPT_LINES, label(path)


def test_no_file_of_the_package_grows_beyond_what_can_be_read_at_once():
    lengths = {label(path): len(path.read_text().splitlines()) for path in MODULES}
    assert not {name: lines for name, lines in lengths.items() if lines > FILE_LINES}


def test_tests_mirror_the_package():
    rooms = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*") if path.is_dir()}
    stems = [path.stem for path in TESTS if path.stem != "conftest"]
    assert len(stems) == len(set(stems)), "two test files share a name"
    for path in TESTS:
        folder = path.parent.relative_to(ROOT / "tests").as_posix()
        assert folder in {".", "scripts/papers", "scripts/research", *rooms}, label(path)


def test_names_of_tests_are_sentences():
    for path in TESTS:
        for node in nodes(path, ast.FunctionDef):
            if node.name.startswith("test_"):
                assert node.name.count("_") >= 3, f"{label(path)}:{node.lineno} {node.name}"


def test_one_word_per_thing():
    for path in MODULES:
        used = {n.arg for n in nodes(path, ast.arg)}
        used |= {n.id for n in nodes(path, ast.Name)}
        used |= {n.name for n in nodes(path, ast.FunctionDef, ast.ClassDef)}
        assert not used & WRONG_WORDS, f"{label(path)}: {sorted(used & WRONG_WORDS)}"


def is_overload(function):
    """Tell whether a definition only states types."""
    return any(isinstance(n, ast.Name) and n.id == "overload" for n in function.decorator_list)


def test_every_public_function_tells_its_source():
    missing = []
    for path in MODULES:
        if room(path) == "cli":  # a subcommand's docstring is its help text
            continue
        for node in tree(path).body:
            is_public = isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
            is_public = is_public and not is_overload(node)
            if is_public and "Source:" not in (ast.get_docstring(node) or ""):
                missing.append(f"{label(path)}:{node.lineno} {node.name}")
    assert not missing


def test_the_house_plan_names_every_module():
    plan = (PACKAGE / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:[\w/]*/)?(\w+)(?:\.py)?/?`", plan))
    assert not [label(path) for path in MODULES if path.stem not in named]


def test_no_unfinished_work_stands_in_the_project():
    marks = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|NotImplemented" + r"Error)\b")
    for path in [*MODULES, *TESTS, *SCRIPTS]:
        found = marks.search(path.read_text(encoding="utf-8"))
        assert not found, f"{label(path)}: {found.group()}"


def project_files():
    """Return every text file of the project: the root's own, and those of its folders."""
    folders = ["agents", "hpcgym", "scenarios", "scripts", "tests", "traces", ".ci"]
    files = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    files += [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [
        path
        for path in files
        if path.suffix in ("", ".cff", ".md", ".py", ".toml", ".txt", ".yaml")
        and "__pycache__" not in path.parts
    ]


def test_no_file_names_a_machine_or_a_registry():
    for path in project_files():
        if path == Path(__file__):
            continue
        found = HIDDEN.search(path.read_text(encoding="utf-8"))
        assert not found, f"{label(path)}: {found.group()}"


def test_only_ci_knows_of_logs_beside_the_checkout():
    outside = ".." + "/shared"
    naming = {label(path) for path in project_files() if outside in path.read_text("utf-8")}
    assert naming <= {".ci/run"}
