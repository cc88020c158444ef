"""The house plan, held: which way imports lean, what never happens, how things are named."""

import ast
import re
import subprocess
import sys
import tokenize
from functools import cache
from pathlib import Path

import pytest

from hpcgym.base.registry import SHELVES, has_room, shelf_entries, shelf_folders
from hpcgym.cli import root

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "hpcgym"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SCRIPTS = sorted((ROOT / "scripts").glob("*.py"))
STUDIES = sorted((ROOT / "scripts").glob("*/**/*.py"))
"""Reruns of papers, and research: packages beside the scripts that run them."""

FLOORS = [
    {"base"},
    {"machine"},
    {"core"},
    {"trace"},
    {"schedule"},
    {"env"},
    {"agent"},
    {"evaluation"},
    {"site"},
    {"", "cli", "__main__"},
]
"""Lowest first; a room imports itself, its own floor and the floors below. "" is the face."""

FILE_LINES = 500
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


@cache
def by_kind(path):
    """Return a file's nodes by their class."""
    kinds = {}
    for node in ast.walk(tree(path)):
        kinds.setdefault(type(node), []).append(node)
    return kinds


def nodes(path, *kinds):
    """Return a file's nodes of some kinds."""
    return [node for kind in kinds for node in by_kind(path).get(kind, ())]


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


IMPORTED = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in MODULES}
IMPORTED |= {name.removesuffix(".__init__"): path for name, path in IMPORTED.items()}


def modules_imported(path):
    """Return the files of the package that a file imports: at once, late, or for type checkers."""
    found = {alias.name for node in nodes(path, ast.Import) for alias in node.names}
    for node in nodes(path, ast.ImportFrom):
        parts = {f"{node.module}.{alias.name}" for alias in node.names} & IMPORTED.keys()
        found |= parts or {node.module}
    return {IMPORTED[name] for name in found & IMPORTED.keys()} - {path, PACKAGE / "__init__.py"}


def test_no_file_imports_itself_by_way_of_others():
    below = {path: modules_imported(path) for path in MODULES}
    while free := {path for path, others in below.items() if not others & below.keys()}:
        below = {path: others for path, others in below.items() if path not in free}
    assert not below, sorted(map(label, below))


EVENTS = {"outages", "node_outages", "fair_share", "limits", "minutes", "price"}
"""Parts that are no modes: one list names them."""

USES_OF_A_PART = {
    "cost_benefit": {f"hpcgym/core/actions/{name}.py" for name in ("controls", "index")},
    "trials": {"hpcgym/core/actions/trials.py"},
    "fair_share": {f"hpcgym/core/orders/{name}.py" for name in ("fair_share", "priority")},
    "limits": {"hpcgym/schedule/held.py"},
    "price": {f"hpcgym/core/{name}.py" for name in ("price", "actions/price")},
}
"""Files beside the lists that name a part: actions set numbers of a mode, orders go by usage, and
of schedules is told what limits held."""


def test_a_backfilling_mode_is_named_in_its_file_and_in_two_lists():
    parts = PACKAGE / "core" / "parts"
    kept = ["__init__", "waiting_cost", "dependencies", "restart", "trial_fields", "share_fields"]
    kept += ["young_jobs", "cap", "candidates"]
    no_modes = {parts / f"{name}.py" for name in kept}
    for part in sorted(set(parts.glob("*.py")) - no_modes):
        name = f"hpcgym.core.parts.{part.stem}"
        named = {
            label(path)
            for path in MODULES
            if path.parent != parts and re.search(rf"{name}\b", path.read_text(encoding="utf-8"))
        }
        lists = {"hpcgym/core/loaders.py"}
        if part.stem not in EVENTS:
            lists.add("hpcgym/core/backfill.py")
        assert named == lists | USES_OF_A_PART.get(part.stem, set()), part.stem


def texts(path):
    """Return every string of a file, but for docstrings."""
    prose = {
        id(node.body[0].value)
        for node in nodes(path, ast.Module, ast.ClassDef, ast.FunctionDef)
        if node.body and isinstance(node.body[0], ast.Expr)
    }
    return {n.value for n in nodes(path, ast.Constant) if is_text(n) and id(n) not in prose}


def test_a_reward_is_named_in_one_list_and_where_it_is_a_default():
    from hpcgym.env.reward import _SHIPPED

    rooms = ("env", "agent/learn/ppo/config", "core/kernels/env")
    named = {
        (reward.name, label(path))
        for path in MODULES
        if path.relative_to(PACKAGE).as_posix().startswith(rooms)
        for reward in _SHIPPED
        if reward.name in texts(path)
    }
    home = "hpcgym/env/reward.py"
    assert {name for name, path in named if path == home} == {one.name for one in _SHIPPED}
    uses = {
        ("ratio", "hpcgym/env/config.py"),
        ("ratio", "hpcgym/env/info.py"),  # a key of infos, minus what that reward sums to
        ("ratio", "hpcgym/agent/learn/ppo/config.py"),
        ("priced", "hpcgym/env/registration.py"),  # what ids fix
    }
    there = {(name, path) for name, path in uses if (ROOT / path).exists()}
    assert {(name, path) for name, path in named if path != home} == there


STORED_IN = {
    "JobField": "kernels/env/observation.py",
    "ClusterField": "kernels/env/cluster.py",
    "SmallField": "kernels/env/cluster.py",
    "NodesField": "kernels/nodes/observation.py",
    "ControlsField": "parts/cost_benefit.py",
    "TrialField": "parts/trials.py",
    "JobTrialField": "parts/trial_fields.py",
    "RunningField": "parts/trial_fields.py",
    "PriceField": "parts/price.py",
}
"""The kernels that store the fields of each list."""

READ_BY = {
    ("JobField", "LOG_AREA"): {
        "env/observation.py",
        *("core/kernels/env/cluster.py", "core/kernels/queue/summary.py"),
    },
    ("JobField", "PROCESSORS"): {"env/observation.py"},
    ("JobField", "LOG_ESTIMATE"): {"env/observation.py"},
    ("JobField", "LOG_PREDICTED_TIME"): {"env/observation.py"},
    ("JobField", "LOG_EXPECTED_INDEX"): {"agent/first_fit.py"},
    ("JobField", "FITS_NOW"): {"agent/first_fit.py"},
    ("PriceField", "RANK"): {"agent/price.py"},
    ("PriceField", "WORK"): {"agent/price.py"},
}
"""Files beside these two that name a field: it is known before the episode, or rules go by it."""


def test_an_observation_field_is_declared_in_one_list_and_stored_in_one_file():
    home = "core/observation_fields.py"
    found = {}
    for path in MODULES:
        for node in nodes(path, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in STORED_IN:
                field = node.value.id, node.attr
                found.setdefault(field, set()).add(path.relative_to(PACKAGE).as_posix())
    for (kind, name), paths in found.items():
        allowed = {home, f"core/{STORED_IN[kind]}", *READ_BY.get((kind, name), ())}
        if name.startswith("USER_"):
            allowed.add("core/kernels/scoring/user_history.py")
        assert paths <= allowed, (kind, name, paths - allowed)
    assert len(found) > 30


USES_OF_AN_ACTION = {
    "controls": {f"hpcgym/agent/{name}.py" for name in ("card", "search", "learn/trainers")},
    "index": {"hpcgym/env/config.py", "hpcgym/agent/learn/ppo/config.py"},
    "price": {"hpcgym/agent/price.py"},
}
"""Files beside the list that name the file of a kind of action: agents that set controls, and where
`index` is the default."""


def test_a_kind_of_action_is_named_in_its_file_and_in_one_list():
    actions = PACKAGE / "core" / "actions"
    for kind in sorted(set(actions.glob("*.py")) - {actions / "__init__.py"}):
        name = f"hpcgym.core.actions.{kind.stem}"
        named = {
            label(path)
            for path in MODULES
            if path.parent != actions and re.search(rf"{name}\b", path.read_text(encoding="utf-8"))
        }
        uses = {use for use in USES_OF_AN_ACTION.get(kind.stem, ()) if (ROOT / use).exists()}
        assert named == {"hpcgym/core/loaders.py"} | uses, kind.stem


USES_OF_A_SETTING = {
    "hpcgym/core/setting_list.py": "its line",
    "hpcgym/core/settings.py": "what it contradicts",
    "hpcgym/core/pairs.py": "what it does not go with",
    "hpcgym/core/prepare.py": "what kernels read",
    "hpcgym/cli/options.py": "where its option has no effect",
    "hpcgym/env/config.py": "why no environment takes it",
}


def test_a_setting_of_the_scheduler_is_named_in_its_list_and_where_it_works():
    """So it is for `correction`; what only passes settings on names none."""
    named = {
        label(path)
        for path in MODULES
        if any(
            "correction" in (getattr(node, "id", ""), getattr(node, "attr", ""))
            or getattr(node, "arg", "") == "correction"
            or (is_text(node) and node.value == "correction")
            for node in nodes(path, ast.Name, ast.Attribute, ast.arg, ast.keyword, ast.Constant)
        )
    }
    assert named == USES_OF_A_SETTING.keys()


NAME_AN_ORDER = {
    "smith": {"hpcgym/core/index_policy.py"},
    "priority": {"hpcgym/schedule/policies/slurm.py"},
}
"""Files beside the list that name the module of an order: there others like it are made."""


def test_an_order_is_named_in_its_file_and_in_one_list():
    orders = PACKAGE / "core" / "orders"
    for order in sorted(set(orders.glob("*.py")) - {orders / "__init__.py"}):
        named = {
            label(path)
            for path in MODULES
            if re.search(rf"hpcgym\.core\.orders\.{order.stem}\b", path.read_text(encoding="utf-8"))
        }
        assert named == {"hpcgym/core/loaders.py"} | NAME_AN_ORDER.get(order.stem, set()), (
            order.stem
        )


def test_every_room_has_a_floor():
    assert {room(path) for path in MODULES} <= set(ROOMS)


def test_imports_lean_downwards():
    for path in MODULES:
        here = room(path)
        wrong = {other for other in rooms_imported(path) if ROOMS[other] > ROOMS[here]}
        assert not wrong, f"{label(path)} (floor of {here or 'the face'}) imports {sorted(wrong)}"


def named_modules(path):
    """Return every module of hpcgym that a string of a file names, alone or before a colon.

    Docstrings name modules in prose; only a string that is a name from end to end can import it.
    """
    found = set()
    for node in nodes(path, ast.Constant):
        module = node.value.partition(":")[0] if isinstance(node.value, str) else ""
        if re.fullmatch(r"hpcgym(?:\.\w+)+", module):
            found.add(module)
    return found


def test_no_string_names_a_module_of_a_higher_floor():
    """What would be imported by its name leans downwards, too; a higher floor registers itself."""
    for path in MODULES:
        here = ROOMS[room(path)]
        named = {module: module.split(".")[1] for module in named_modules(path)}
        wrong = {module for module, other in named.items() if ROOMS.get(other, here) > here}
        assert not wrong, f"{label(path)} names {sorted(wrong)}"


def test_only_the_face_imports_by_a_name_that_is_no_string():
    """Elsewhere the test before this one could not tell what is imported."""
    for path in MODULES:
        for call in nodes(path, ast.Call):
            called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            called = call.func.id if isinstance(call.func, ast.Name) else called
            by_table = path in (PACKAGE / "__init__.py", PACKAGE / "core" / "loaders.py")
            if called in ("import_module", "__import__") and not by_table:
                given = [argument.value for argument in call.args if is_text(argument)]
                assert given, f"{label(path)}:{call.lineno}"


def is_text(node):
    """Tell whether a node is a string."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_core_knows_neither_gymnasium_nor_files_nor_chance():
    for path in MODULES:
        if room(path) == "core":
            assert not {"gymnasium", "random"} & {name.split(".")[0] for name in imports(path)}
            called = {n.attr for n in nodes(path, ast.Attribute)}
            assert "random" not in called, label(path)
            assert path.parent.name == "compiler" or "pathlib" not in imports(path), label(path)


def test_kernels_stand_in_core_where_the_digest_of_the_cache_sees_them():
    for path in MODULES:
        uses = {name for name in imports(path) if name.split(".")[0] == "numba"}
        uses |= {name for name in imports(path) if name == "hpcgym.core.compiler.jit.kernel"}
        assert room(path) == "core" or not uses, label(path)


def test_one_folder_knows_what_numba_does_not_promise():
    private = re.compile(r"numba\.(?:core|extending|np|_)|llvmlite")
    for path in MODULES:
        if "compiler" not in path.parts:
            assert not private.search(path.read_text(encoding="utf-8")), label(path)


def test_page_on_numba_has_the_versions_that_were_run():
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8").partition("## Numba")[2]
    table = (ROOT / "docs" / "datasets" / "versions.csv").read_text(encoding="utf-8")
    run = re.search(r"^numba,(.*)$", table, re.M)[1].split(",")
    assert set(re.findall(r"0\.\d+\.\d+", page)) == set(run)


def test_one_decorator_compiles_everything():
    for path in MODULES:
        if path.name != "jit.py":
            names = {n.attr for n in nodes(path, ast.Attribute)}
            names |= {name.rpartition(".")[2] for name in imports(path)}
            assert not names & {"njit", "jit_module", "vectorize", "guvectorize"}, label(path)
    assert "fastmath=" not in (PACKAGE / "core" / "compiler" / "jit.py").read_text()


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


@pytest.mark.long
@pytest.mark.parametrize(
    "words", [["--help"], ["agents", "list"], ["scenarios", "list"], ["traces", "list"]]
)
def test_commands_that_list_load_nothing_heavy(words):
    program = (
        "import sys, hpcgym.cli\n"
        f"hpcgym.cli.app({words}, standalone_mode=False)\n"
        f"print([m for m in {[*HEAVY, 'gymnasium']} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.long
@pytest.mark.parametrize(
    "imports",
    [
        "import hpcgym, gymnasium",
        "import gymnasium, hpcgym",
        "import hpcgym; from gymnasium.envs import registration as gymnasium",
        "import hpcgym.env.registration, gymnasium",
    ],
)
def test_the_environment_is_known_in_whatever_order_packages_are_imported(imports):
    program = f"{imports}; print(gymnasium.spec('HPCBatch-v0').id)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "HPCBatch-v0"


FIRST = (
    *("core.policy", "core.backfill", "core.settings", "core.simulator"),
    *("schedule.schedule", "schedule.batch", "schedule.gang", "schedule.policies.dynp"),
    *("env.scenario", "env.config", "agent.shelf", "evaluation", "cli"),
)


@pytest.mark.long
def test_what_higher_floors_register_is_known_whatever_is_imported_first():
    program = f"""
import importlib, os, gymnasium, numba, pandas  # forks share what is not hpcgym's
for module in {FIRST}:
    if os.fork() == 0:
        importlib.import_module(f"hpcgym.{{module}}")
        from hpcgym.core.settings import SchedulerSettings
        from hpcgym.core.policy import policy_names
        for name in policy_names():
            SchedulerSettings(policy=name)
        gang = SchedulerSettings(backfill="gang:rows=3").backfill
        print(module, gang, *policy_names()[-5:], flush=True)
        os._exit(0)
    os.wait()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    adaptive = "DYNP PLANNER BANDIT-EPSILON BANDIT-UCB BANDIT-EXP3"
    assert done.stdout.splitlines() == [f"{name} gang:rows=3 {adaptive}" for name in FIRST]


def test_the_face_offers_the_names_it_lists_and_no_others():
    import hpcgym

    typed = {
        alias.asname or alias.name
        for node in nodes(PACKAGE / "__init__.py", ast.ImportFrom)
        if node.module.startswith("hpcgym.")
        for alias in node.names
    } - {"registry"}
    assert typed == set(hpcgym.__all__) == set(hpcgym._HOMES) == {*dir(hpcgym)} - {"__version__"}
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


MOST_ARGUMENTS = 12  # more go into a settings object: a dataclass, which says what each means

STATES_THE_KEYWORDS = {"simulate_many", "SchedulingEnv.__init__"}
"""What may state each keyword of the scheduler or the environment, as these are passed one by one.
"""


def public_functions(body, around=""):
    """Yield the public functions of a module or class, and what makes its public classes."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef) and re.match("__init__$|[^_]", node.name):
            yield f"{around}{node.name}", node.args


def test_no_public_function_takes_more_arguments_than_can_be_kept_apart():
    for path in MODULES:
        for name, takes in public_functions(tree(path).body):
            named = {one.arg for one in (*takes.posonlyargs, *takes.args, *takes.kwonlyargs)}
            n_named = len(named - {"self", "cls"})
            allowed = name in STATES_THE_KEYWORDS or n_named <= MOST_ARGUMENTS
            assert allowed, f"{label(path)}: {name} takes {n_named}"


def test_the_check_command_names_tests_that_exist():
    text = (ROOT / "scripts" / "check.py").read_text(encoding="utf-8")
    named = re.findall(r'"(tests/[\w/.]+)"', text)
    assert named and not [name for name in named if not (ROOT / name).exists()]


def test_nothing_in_the_package_imports_reruns_of_papers_or_research():
    studies = {path.relative_to(ROOT / "scripts").parts[0] for path in STUDIES}
    assert studies == {"papers", "research"}
    for path in MODULES:
        texts = [n.value for n in nodes(path, ast.Constant) if isinstance(n.value, str)]
        named = {name for name in texts if re.fullmatch(r"[\w.]+", name)} | imports(path)
        assert not studies & {name.split(".")[0] for name in named}, label(path)


def test_a_study_imports_the_package_what_studies_share_and_itself():
    for path in STUDIES:
        own = path.relative_to(ROOT / "scripts").with_suffix("").parts
        allowed = {own[:2] if own[0] == "papers" else own[:1], ("papers", "common")}
        for name in imports(path):
            parts = tuple(name.split("."))
            if parts[0] in ("papers", "research"):
                assert parts[:2] in allowed or parts[:1] in allowed, f"{label(path)}: {name}"
            assert parts[0] not in {script.stem for script in SCRIPTS}, f"{label(path)}: {name}"


def test_studies_use_no_private_name_of_another_file():
    for path in [*SCRIPTS, *STUDIES]:
        wrong = {
            name for name in imports(path) if re.fullmatch(r"_[^_]\w*", name.rpartition(".")[2])
        }
        assert not wrong, f"{label(path)}: {sorted(wrong)}"


def test_no_file_of_the_package_grows_beyond_what_can_be_read_at_once():
    lengths = {label(path): len(path.read_text().splitlines()) for path in [*MODULES, *STUDIES]}
    assert not {name: lines for name, lines in lengths.items() if lines > FILE_LINES}


def test_tests_mirror_the_package():
    rooms = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*") if path.is_dir()}
    stems = [path.stem for path in TESTS if path.stem != "conftest"]
    assert len(stems) == len(set(stems)), "two test files share a name"
    for path in TESTS:
        folder = path.parent.relative_to(ROOT / "tests").as_posix()
        others = {".", "clients", "fuzz", "parts"}
        others |= {"scripts", "scripts/papers", "scripts/research"}
        assert folder in others | rooms, label(path)


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


SAY_NOTHING = {"one", "place", "found", "own"}
NAMED_BY_USERS = {
    ("core/compiler/struct.py", "place"),  # a field of a named tuple
    ("env/observation.py", "own"),  # a parameter of public functions
}


def names_bound(path):
    """Yield the names that a file gives to variables and parameters."""
    for node in nodes(path, ast.Name, ast.arg):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node.ctx, ast.Store):
            yield node.id


def names_that_say_nothing(path):
    """Return the names of a file that say nothing of what they hold, but for those of users."""
    inside = path.relative_to(PACKAGE).as_posix()
    return {
        name for name in names_bound(path) if (inside, name) not in NAMED_BY_USERS
    } & SAY_NOTHING


def test_names_say_what_they_hold():
    for path in MODULES:
        names = names_that_say_nothing(path)
        assert not names, f"{label(path)}: {sorted(names)}"


def top_level_imports(path):
    """Return the modules of hpcgym that a file imports when it is loaded."""
    found, statements = set(), list(tree(path).body)
    while statements:
        node = statements.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            statements += [*node.body, *node.orelse]
        elif isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "hpcgym":
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in BY_NAME else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in BY_NAME}
    return found


def module_name(path):
    """Return the dotted name of a module."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


BY_NAME = {module_name(path): path for path in MODULES}


def test_no_imports_go_round_in_a_circle():
    left = {name: top_level_imports(path) - {name} for name, path in BY_NAME.items()}
    while ready := {name for name, needed in left.items() if not needed & set(left)}:
        left = {name: needed for name, needed in left.items() if name not in ready}
    assert not left, f"these import each other: {sorted(left)}"


def docstring_lines(path):
    """Return the numbers of a file's lines of docstrings, those after constants included."""
    lines = set()
    for node in nodes(path, ast.Module, ast.ClassDef, ast.FunctionDef):
        for place, one in enumerate(node.body):
            is_text = isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
            if is_text and (place == 0 or not isinstance(node, ast.FunctionDef)):
                lines |= set(range(one.lineno, one.end_lineno + 1))
    return lines


def code_lines(path):
    """Return the numbers of a file's lines that are neither docstring nor comment nor blank."""
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    layout.add(tokenize.ENDMARKER)
    with path.open("rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.string != "utf-8"]
    lines = {
        line
        for token in tokens
        if token.type not in layout
        for line in range(token.start[0], token.end[0] + 1)
    }
    return lines - docstring_lines(path)


@pytest.mark.parametrize(("folder", "most"), [("core/kernels", 0.29), (".", 0.3)])
def test_docstrings_are_shorter_than_the_code_they_explain(folder, most):
    if not all(map(has_room, root.ROOMS.values())):
        pytest.skip("a folder of the package is deleted, and the limit is of all")
    files = [path for path in MODULES if path.is_relative_to(PACKAGE / folder)]
    text = sum(len(docstring_lines(path)) for path in files)
    assert text <= most * sum(len(code_lines(path)) for path in files)


@pytest.mark.parametrize(
    ("files", "most"), [(MODULES, 73_566), (TESTS, 68_840)], ids=["package", "tests"]
)
def test_lines_stay_within_their_limit(files, most):
    assert sum(len(path.read_text().splitlines()) for path in files) < most


def test_the_house_plan_names_every_room():
    plan = (PACKAGE / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:[\w/]*/)?(\w+)/?`", plan))
    rooms = {path.parent.name for path in MODULES if path.parent != PACKAGE}
    assert rooms <= named, rooms - named


def test_no_unfinished_work_stands_in_the_project():
    marks = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|NotImplemented" + r"Error)\b")
    for path in [*MODULES, *TESTS, *SCRIPTS, *STUDIES]:
        found = marks.search(path.read_text(encoding="utf-8"))
        assert not found, f"{label(path)}: {found.group()}"


def project_files():
    """Return every text file of the project: the root's own, and those of its folders."""
    folders = ["agents", "docs", "hpcgym", "scenarios", "scripts", "tests", "traces", ".ci"]
    files = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    files += [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [
        path
        for path in files
        if path.suffix in ("", ".cff", ".md", ".py", ".toml", ".txt", ".yaml")
        and "__pycache__" not in path.parts
    ]


DIALECT = re.compile(
    r"house rule|abreast|lines? of reference|to the job\b(?! table)|\bcomes? of (?:it|them)\b"
    r"|\bcome to owe\b|\bin the making\b"
    r"|(?<![`'\".-])\blends?\b",  # but for the name of a kind of action, its file and its ids
    re.IGNORECASE,
)
"""Phrases that plain English avoids."""


def test_prose_is_plain():
    for path in project_files():
        if path.suffix in (".md", ".py", ".toml") and path != Path(__file__):
            found = DIALECT.search(path.read_text(encoding="utf-8"))
            assert not found, f"{label(path)}: {found.group()!r}"


OTHER_WORDS = re.compile(
    r"starvation threshold|order of (?:their )?arrival|\bheuristics?\b"
    r"|\bsynthetic (?:logs?|jobs|weeks?)\b"
    r"|response time|flow time|execution time|\b(?:per|every|each|all) traces?\b",
    re.IGNORECASE,
)
"""Other words for things that have one in the table of words, hpcgym/README.md."""


def test_prose_has_one_word_per_thing():
    for path in project_files():
        if path.suffix in (".md", ".py", ".toml") and path not in (
            Path(__file__),
            PACKAGE / "README.md",
        ):
            found = OTHER_WORDS.search(path.read_text(encoding="utf-8"))
            assert not found, f"{label(path)}: {found.group()!r}"


def prose_of(path):
    """Return the comments and strings of a file."""
    with path.open("rb") as file:
        tokens = list(tokenize.tokenize(file.readline))
    return [token.string for token in tokens if token.type in (tokenize.COMMENT, tokenize.STRING)]


def identifiers(path):
    """Return every name that a file defines or uses, and those of its module."""
    found = set(path.relative_to(ROOT).with_suffix("").parts)
    found |= {node.id for node in nodes(path, ast.Name)}
    found |= {node.attr for node in nodes(path, ast.Attribute)}
    found |= {node.arg for node in nodes(path, ast.arg)}
    return found | {node.name for node in nodes(path, ast.FunctionDef, ast.ClassDef)}


QUOTED = re.compile(r"`([^`]+)`")
NAMED = re.compile(r"(?<![\w\"])[a-zA-Z_]\w+")
VALUES = {"pyss"}  # what kernels quote that is no name


def test_kernels_quote_names_that_exist():
    """Prose names constants, fields, arguments and modules between backticks; `FLAG_*` is many."""
    known = VALUES.union(*(identifiers(path) for path in MODULES if room(path) == "core"))
    for path in MODULES:
        if {"engine", "kernels", "parts"} & set(path.relative_to(PACKAGE).parts):
            for quoted in QUOTED.findall(" ".join(prose_of(path))):
                for name in NAMED.findall(quoted):
                    is_family = name.endswith("_") and any(one.startswith(name) for one in known)
                    assert name in known or is_family, f"{label(path)}: `{quoted}`: {name}"


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


def test_commands_print_by_functions_that_let_no_name_steer_a_terminal():
    printing = re.compile(r"\b(typer\.s?echo|click\.s?echo|print)\(")
    found = [
        path.name for path in (PACKAGE / "cli").glob("*.py") if printing.search(path.read_text())
    ]
    assert found == ["show.py"]
