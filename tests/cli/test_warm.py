"""Kernels compiled ahead: what is compiled once is compiled for all."""

import os
import subprocess
import sys

import pytest


def hpcgym(cache, *arguments):
    """Run a command with a cache of its own; return what it printed and said."""
    done = subprocess.run(
        [sys.executable, "-m", "hpcgym", *arguments],
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_after_warming_no_command_compiles(tmp_path):
    code, printed, _ = hpcgym(tmp_path, "warm", "--on", "local:2")
    assert code == 0
    assert "compiled kernels are in" in printed
    kept = sorted(tmp_path.rglob("*.kernel"))
    assert len([*tmp_path.rglob("weeks-*/*.jobs")]) == 20 + 5 + 15  # populations of many-weeks
    assert hpcgym(tmp_path, "simulate", "tiny")[2].count("compiling") == 0
    evaluated = hpcgym(tmp_path, "evaluate", "--scenario", "tiny", "--agents", "SAF,DYNP")
    assert evaluated[2].count("compiling") == 0
    assert sorted(tmp_path.rglob("*.kernel")) == kept


@pytest.mark.long
def test_warming_without_a_cache_folder_says_what_to_set(tmp_path):
    (tmp_path / "blocked").touch()
    code, _, said = hpcgym(tmp_path / "blocked", "warm")
    assert code == 2
    assert "set NUMBA_CACHE_DIR" in said
