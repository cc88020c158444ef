"""What `scripts/check.py --quick` runs, and what it must not leave out."""

import ast
from pathlib import Path

import pytest
from hypothesis import settings

import check

TESTS = Path(__file__).parent
DRAWN = "test_every_drawn_job_starts_as_the_reference_says"


def decorators(path: Path) -> dict[str, str]:
    """Return what stands above each test of a file."""
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    return {f.name: " ".join(map(ast.unparse, f.decorator_list)) for f in functions}


def test_it_runs_lint_types_and_few_cases_of_all_tests_that_are_not_long() -> None:
    titles = [title for title, *_ in check.QUICK_STEPS]
    assert titles == ["lint", "format", "types", "quick tests"]
    _, command, variables = check.QUICK_STEPS[-1]
    assert "not slow and not long" in command
    assert not [part for part in command if part.startswith("tests/")]
    few = settings.get_profile(variables["HYPOTHESIS_PROFILE"])
    every_day = settings.get_profile("check")
    assert 1 < few.max_examples < every_day.max_examples  # the first case is always the simplest


def test_every_mode_is_drawn_in_it() -> None:
    above = decorators(TESTS / "core" / "test_every_mode.py")[DRAWN]
    assert "parametrize('mode', EVERY_MODE)" in above
    assert "given(" in above


@pytest.mark.long
def test_no_drawn_test_is_long() -> None:
    files = [path for path in TESTS.rglob("test_*.py") if "@pytest.mark.long" in path.read_text()]
    both = [
        f"{path.name}: {name}"
        for path in files
        for name, above in decorators(path).items()
        if "mark.long" in above and "given(" in above
    ]
    assert files and not both


def test_pages_are_long_unless_a_change_touches_them(pytestconfig: pytest.Config) -> None:
    above = decorators(TESTS / "test_readme.py")
    for name in ("test_python_blocks_run_one_after_the_other", "test_bash_block_runs_to_its_end"):
        assert "of_page(" in above[name]
    assert any(line.startswith("long:") for line in pytestconfig.getini("markers"))
