"""Logs made from seeds: the same ones always, kept whole or not at all, and checked."""

import errno
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from hpcgym.trace import populations as kept
from hpcgym.trace.populations import COLUMNS, Populations, digest_of_jobs
from hpcgym.trace.sessions import MONDAY_UNIX_S, session_workload

SMALL = {"seed": 5, "weeks": 2, "load": 0.5, "processors": 32}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Keep logs in a folder of the test's own."""
    path = tmp_path / "weeks-0"
    monkeypatch.setattr(kept, "_folder", lambda parameters: path)
    kept._not_kept.clear()
    kept._say_other.cache_clear()
    return path


def columns_of(log):
    """Return what a file holds of a log."""
    return [getattr(log, column).tolist() for column in COLUMNS]


def of_generator(number):
    """Return the same columns, from the generator."""
    drawn = session_workload(4, np.random.default_rng([5, number]), machine_processors=32, load=0.5)
    return columns_of(drawn)


def test_logs_are_those_of_the_generator_kept_or_not(folder):
    for _ in range(2):
        log = Populations("small", **SMALL).log(3)
        assert columns_of(log) == of_generator(3) != of_generator(4)
        assert (log.name, log.unix_start, log.machine_processors) == ("small", MONDAY_UNIX_S, 32)
    assert [path.name for path in folder.iterdir()] == ["3.jobs"]


@pytest.mark.parametrize("damage", ["cut", "bit", "name", "empty"])
def test_a_damaged_file_is_made_again_and_said_to_be(folder, capsys, damage):
    made = Populations("small", **SMALL)
    made.log(0)
    made.log(1)
    path = folder / "0.jobs"
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[70] ^= 1
    other = (folder / "1.jobs").read_bytes()
    path.write_bytes({"cut": whole[:-8], "bit": flipped, "name": other, "empty": b""}[damage])
    assert columns_of(made.log(0)) == of_generator(0)
    assert "0.jobs is damaged; it is made again" in capsys.readouterr().err
    assert path.read_bytes() == whole
    made.log(0)
    assert capsys.readouterr().err == ""


def test_where_nothing_can_be_kept_this_is_said_once_and_work_goes_on(folder, capsys):
    folder.write_text("a file is in the way")
    made = Populations("small", **SMALL)
    assert [columns_of(made.log(k)) for k in (0, 1)] == [of_generator(0), of_generator(1)]
    said = capsys.readouterr().err
    assert said.count("generated weeks cannot be kept") == 1
    assert str(folder) in said


def test_a_full_disk_leaves_no_file(folder, monkeypatch, capsys):
    def full(self, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    assert columns_of(Populations("small", **SMALL).log(0)) == of_generator(0)
    assert "No space left on device" in capsys.readouterr().err
    assert not folder.exists()


def test_without_a_folder_of_caches_logs_are_made(monkeypatch):
    monkeypatch.setattr(kept, "_folder", lambda parameters: None)
    assert columns_of(Populations("small", **SMALL).log(2)) == of_generator(2)


def test_other_jobs_than_those_on_record_are_said_once(folder, capsys):
    right = digest_of_jobs(Populations("small", **SMALL).make(0))
    Populations("small", **SMALL, on_record={0: right}).log(0)
    assert capsys.readouterr().err == ""
    wrong = Populations("small", **SMALL, on_record={0: "00000000"})
    wrong.log(0)
    wrong.log(0)
    said = capsys.readouterr().err
    assert said.count("jobs of population 0 than its digests are of") == 1
    assert f"numpy {np.__version__}" in said


PROGRAM = """
import sys
from hpcgym.trace.populations import Populations
logs = Populations("small", seed=5, weeks=2, load=0.5, processors=32)
print([int(logs.log(k).run_time.sum()) for k in range(4)])
"""


@pytest.mark.long
def test_processes_that_make_one_log_at_once_get_the_same_jobs(tmp_path):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    printed = [process.communicate(timeout=120)[0] for process in started]
    assert printed == [f"{[sum(of_generator(k)[1]) for k in range(4)]}\n"] * 2
    (folder,) = tmp_path.glob("weeks-*")
    assert sorted(path.name for path in folder.iterdir()) == [f"{k}.jobs" for k in range(4)]


def test_folders_that_nobody_uses_are_removed_with_the_next_new_one(tmp_path, monkeypatch):
    monkeypatch.setattr("hpcgym.core.compiler.jit.CACHE_FOLDER", tmp_path / "kernels-0")
    month_ago = time.time() - kept.UNUSED_LIFE_S - 60
    for name in ("weeks-old", "weeks-new", "kernels-old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.jobs").write_text("x")
    for name in ("weeks-old", "kernels-old"):
        os.utime(tmp_path / name, (month_ago, month_ago))
    kept._folder.cache_clear()
    kept._folder("parameters of this test")
    kept._folder.cache_clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kernels-old", "weeks-new"]
