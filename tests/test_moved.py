"""Imports of pages, of client scripts and of examples of plug-ins still work."""

import ast
import importlib
import re
import textwrap
from pathlib import Path

import pytest

import hpcgym
from hpcgym import _MOVED as MOVED
from hpcgym.base.registry import has_room

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAMS = [*sorted((ROOT / "tests" / "parts").glob("*.py"))]
PROGRAMS += sorted((ROOT / "tests" / "clients").glob("*.py"))
BLOCK = re.compile(r"^```python.*?\n(.*?)^```", re.DOTALL | re.MULTILINE)
BEFORE = {
    "accounts": ["Accounts"],
    "agent.ppo.config": ["PPOConfig"],
    "counterfactual": ["first"],
    "errors": ["HpcgymError", "PolicyError", "ScenarioError", "ActionError"],
    "live": [],
    "machine": ["NodeType", "Partition", "Machine"],
    "policies.planner": ["Planner"],
    "policies.bandit": ["Bandit"],
    "report": ["evaluation_figure", "plot_schedules", "draw_schedule"],
    "scenario": ["load_scenario", "Scenario"],
    "scenario.augment": ["Augmentation", "AugmentedEpisodes"],
    "scenario.episodes": ["Episodes"],
    "scenario.load": ["load_scenario"],
    "scenario.slicing": ["cleaned_log"],
    "site": ["Reading", "report_on"],
    "suite": ["read_record", "run_suite", "suite_frame", "verify_record"],
}
"""What pages imported of the package before it had rooms."""

ROOMS = {"agent.ppo.config": "agent/learn", "live": "site/live", "site": "site"}
ROOMS["suite"] = "evaluation/suite"  # folders that may be deleted


def imported(program):
    """Yield what a program imports of hpcgym, as module and name."""
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def programs():
    """Yield what pages show, as far as it is whole, and the files of examples."""
    for path in PAGES:
        for block in BLOCK.findall(path.read_text(encoding="utf-8")):
            yield path, textwrap.dedent(re.sub(r"^(>>>|\.\.\.) ?", "", block, flags=re.MULTILINE))
    yield from ((path, path.read_text(encoding="utf-8")) for path in PROGRAMS)


def test_what_pages_and_examples_import_is_there():
    seen = set()
    for path, program in programs():
        try:
            names = list(imported(program))
        except SyntaxError:  # a session with its output, which other tests run
            continue
        for module, name in names:
            if module.split(".")[0] == "hpcgym":
                thing = importlib.import_module(module)
                assert name is None or hasattr(thing, name), f"{path.name}: {module}.{name}"
                seen.add(module)
    assert len(seen) > 30


@pytest.mark.parametrize("module", [name for name in BEFORE if has_room(ROOMS.get(name, ""))])
def test_what_pages_imported_before_is_the_same_object(module):
    old = importlib.import_module(f"hpcgym.{module}")
    names = [name for name in MOVED if f"hpcgym.{module}.".startswith(f"{name}.")]
    for name in names:
        today = MOVED[name] + f"hpcgym.{module}".removeprefix(name)
        assert importlib.import_module(today) is old
    assert all(hasattr(old, name) for name in BEFORE[module])
    assert getattr(hpcgym, module.split(".")[0]) is importlib.import_module(
        f"hpcgym.{module.split('.')[0]}"
    )


def test_moved_module_that_is_not_there_is_named():
    with pytest.raises(ModuleNotFoundError, match=r"hpcgym\.env\.scenario\.splitting"):
        importlib.import_module("hpcgym.scenario.splitting")
