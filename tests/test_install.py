"""The script that installs hpcgym: one clear sentence where a Python cannot run it."""

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.fixture
def install():
    spec = importlib.util.spec_from_file_location("install_script", SCRIPTS / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_python_too_old_is_told_which_it_needs(install, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer; .*python\S* is \d"):
        install.refuse_unfit_python()


@pytest.mark.parametrize("given", ["--help", "dev,docz", "--wram"])
def test_words_that_are_no_extras_are_refused(install, monkeypatch, given):
    monkeypatch.setattr(sys, "argv", ["install.py", given])
    with pytest.raises(SystemExit, match=r"usage: .* extras train, .*dev$"):
        install.main()


@pytest.mark.parametrize("absent", ["venv", "ensurepip"])
def test_python_without_venv_is_told_how_to_get_it(install, monkeypatch, absent):
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == absent else 1)
    with pytest.raises(SystemExit, match="apt install python3-venv"):
        install.refuse_unfit_python()


def test_active_virtual_environment_is_used_as_it_is(install, monkeypatch):
    monkeypatch.setattr(sys, "prefix", "elsewhere")
    assert install.environment() == (sys.executable, "elsewhere")


def test_checkout_that_cannot_be_written_is_told_so(install, monkeypatch, tmp_path):
    (tmp_path / ".venv").write_text("a file stands where the folder should")
    monkeypatch.setattr(install, "ROOT", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(SystemExit, match="No virtual environment could be made"):
        install.environment()


def test_second_run_installs_nothing_and_a_new_extra_is_added(install, monkeypatch, tmp_path):
    installed = []
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(install, "runs", lambda python, statement: True)
    monkeypatch.setattr(install, "install", lambda python, extras: installed.append(extras))
    for extra in ["report", "report", "render", "report,render"]:
        monkeypatch.setattr(sys, "argv", ["install.py", extra])
        install.main()
    assert installed == [["report"], ["render", "report"]]


def test_kernels_are_compiled_where_asked_for(install, monkeypatch, tmp_path):
    warmed = []
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(install, "install", print)
    monkeypatch.setattr(install.subprocess, "call", lambda command, **_: warmed.append(command))
    monkeypatch.setattr(sys, "argv", ["install.py", "--warm", "report"])
    install.main()
    assert warmed[-1] == [sys.executable, "-m", "hpcgym", "warm"]


@pytest.mark.parametrize("name", ["install.py", "quickstart.py", "check.py"])
def test_scripts_that_run_before_installation_parse_on_old_pythons(name):
    ast.parse((SCRIPTS / name).read_text(), feature_version=(3, 6))


@pytest.mark.parametrize("name", ["install.py", "quickstart.py", "check.py"])
def test_scripts_that_run_before_installation_start_with_the_standard_library(name):
    tree = ast.parse((SCRIPTS / name).read_text())
    imported = {
        alias.name.partition(".")[0]
        for node in tree.body
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert not any(isinstance(node, ast.ImportFrom) for node in tree.body)
    assert imported <= sys.stdlib_module_names
