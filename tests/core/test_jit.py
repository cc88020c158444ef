"""The decorator of kernels: right after an edit, quick the second time, never in the way."""

import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from hpcgym.core.compiler import jit, kernel_cache
from hpcgym.core.compiler.kernel_cache import DIGEST_BYTES, digest_of

ROOT = Path(__file__).parents[2]

CALLER = """
from copied.core.compiler.jit import kernel
from copied.core.callee import triple

@kernel
def plus_one(x: int) -> int:
    return triple(x) + 1
"""
CALLEE = """
from copied.core.compiler.jit import kernel

@kernel
def triple(x: int) -> int:
    return 3 * x
"""
PROGRAM = """
from copied.core.caller import plus_one
hits = plus_one(2), sum(plus_one.stats.cache_hits.values())
print(*hits)
"""


def make_package(folder):
    """Write a package `copied`: our jit.py, a kernel, and the kernel it calls in another file."""
    core = folder / "copied" / "core"
    core.mkdir(parents=True)
    (core.parent / "__init__.py").touch()
    (core / "__init__.py").touch()
    (core / "compiler").mkdir()
    shutil.copy(jit.__file__, core / "compiler" / "jit.py")
    (core / "caller.py").write_text(CALLER)
    (core / "callee.py").write_text(CALLEE)
    return core


@pytest.fixture
def package(tmp_path):
    """A package whose kernels nobody has compiled."""
    return make_package(tmp_path)


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """A package whose kernels are compiled, once for all tests, and what its first run gave."""
    core = make_package(tmp_path_factory.mktemp("compiled"))
    return core, run(core)


@pytest.fixture
def compiled(first_run, tmp_path):
    """A copy of this package and of its cache."""
    shutil.copytree(first_run[0].parents[1], tmp_path, dirs_exist_ok=True)
    return tmp_path / "copied" / "core"


AT_ONCE = "import hpcgym.base.progress as p; p.NOTICE_S = 0.0; p.TICK_S = 0.001\n"
"""Makes a compilation be announced however short it is."""


def run(package, program=PROGRAM, **variables):
    """Run a program in a new process; return what it printed, and what it said meanwhile."""
    root = package.parent.parent
    done = subprocess.run(  # without bytecode, which is stale if a file is edited within its second
        [sys.executable, "-B", "-c", AT_ONCE + program],
        cwd=root,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(root), str(ROOT))),
            "NUMBA_CACHE_DIR": str(root / "cache"),
            "NUMBA_BOUNDSCHECK": "0",
            "NUMBA_DISABLE_JIT": "0",
            **variables,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split(), done.stderr


@pytest.mark.long
def test_edited_callee_in_another_file_changes_the_answer_of_its_caller(first_run, compiled):
    assert first_run[1][0] == ["7", "0"]
    (compiled / "callee.py").write_text(CALLEE.replace("3 * x", "5 * x"))
    assert run(compiled)[0] == ["11", "0"]


@pytest.mark.long
def test_second_process_takes_the_kernel_from_the_cache_and_says_nothing(first_run, compiled):
    _, first = first_run[1]
    printed, second = run(compiled)
    assert first.count("hpcgym: compiling kernels for plus one: 2 kernels (kept in ") == 1
    assert printed == ["7", "1"]
    assert second == ""


@pytest.mark.long
def test_code_with_bounds_checks_and_code_without_are_kept_apart(compiled):
    assert run(compiled, NUMBA_BOUNDSCHECK="1")[0] == ["7", "0"]
    assert run(compiled)[0] == ["7", "1"]


@pytest.mark.long
def test_without_a_writable_cache_folder_kernels_compile_in_every_process(package, tmp_path):
    (tmp_path / "blocked").touch()
    for _ in range(2):
        printed, said = run(package, NUMBA_CACHE_DIR=str(tmp_path / "blocked"))
        assert printed == ["7", "0"]
        assert "set NUMBA_CACHE_DIR" in said


def kept_kernels(package):
    """Return the files of compiled kernels that the package has left."""
    return sorted((package.parent.parent / "cache").glob("kernels-*/*.kernel"))


@pytest.mark.long
@pytest.mark.parametrize("damage", ["flipped", "other pickle"])
def test_a_damaged_file_is_compiled_again_and_said_once(compiled, damage):
    (file,) = kept_kernels(compiled)
    content, pickled = file.read_bytes(), pickle.dumps("other")
    flipped = content[:-1] + bytes([content[-1] ^ 1])
    file.write_bytes(flipped if damage == "flipped" else digest_of(file, pickled) + pickled)
    printed, said = run(compiled)
    assert printed == ["7", "0"]
    assert said.count("is damaged; it is compiled again") == 1
    assert is_whole(file)


def is_whole(file):
    """Tell whether a file of a kernel begins with the digest of the rest."""
    content = file.read_bytes()
    return content[:DIGEST_BYTES] == digest_of(file, content[DIGEST_BYTES:])


ANOTHER = "from copied.core.callee import triple\nprint(triple(5), *triple.stats.cache_hits)\n"


@pytest.mark.long
def test_a_kernel_under_the_name_of_another_is_not_loaded(package):
    run(package, program=PROGRAM + ANOTHER)
    one, other = kept_kernels(package)
    shutil.copy(one, other)
    printed, said = run(package, program=PROGRAM + ANOTHER)
    assert (printed[0], printed[2]) == ("7", "15")
    assert said.count(f"{other} is damaged; it is compiled again") == 1


@pytest.mark.long
def test_a_damaged_file_that_cannot_be_removed_is_said_once(compiled):
    (file,) = kept_kernels(compiled)
    file.write_bytes(b"")
    printed, said = run(compiled, program=f"{READ_ONLY}os.unlink = refused\n{PROGRAM}")
    assert printed == ["7", "0"]
    assert said.count("is damaged; it is compiled again") == 1
    assert file.read_bytes() == b""


@pytest.mark.long
def test_another_copy_of_the_same_sources_takes_the_kernels_of_the_first(compiled, tmp_path):
    other = tmp_path / "elsewhere" / "copied" / "core"
    shutil.copytree(compiled.parent, other.parent)
    assert run(other, NUMBA_CACHE_DIR=str(tmp_path / "cache"))[0] == ["7", "1"]


@pytest.mark.long
def test_two_processes_at_once_compile_a_kernel_once(package):
    said = []
    with ThreadPoolExecutor(2) as pool:
        for printed, notice in pool.map(run, [package, package]):
            assert printed[0] == "7"
            said.append(notice)
    assert sum("compiling kernels for plus one" in notice for notice in said) == 1
    assert len(kept_kernels(package)) == 1


@pytest.mark.long
def test_a_full_disk_means_that_kernels_are_not_kept(package):
    full = "import os; os.replace = lambda *_: (_ for _ in ()).throw(OSError(28, 'disk full'))\n"
    printed, said = run(package, program=full + PROGRAM)
    assert printed == ["7", "0"]
    assert said.count("compiled kernels cannot be kept: ") == 1
    assert "disk full" in said
    assert kept_kernels(package) == []


READ_ONLY = """
import os, tempfile
def refused(*_, **__):
    raise OSError(30, "Read-only file system")
tempfile.TemporaryFile = refused
os.access = lambda *_: False
"""
"""Makes every folder one that cannot be written, for the root user, too."""


@pytest.mark.long
def test_a_folder_that_cannot_be_written_is_read(compiled):
    (file,) = kept_kernels(compiled)
    assert file.stat().st_mode & 0o777 == 0o666 & ~umask()
    assert run(compiled, program=READ_ONLY + PROGRAM) == (["7", "1"], "")
    file.unlink()
    printed, said = run(compiled, program=READ_ONLY + PROGRAM)
    assert printed == ["7", "0"]
    assert said.count(f"in every process: {file.parent} cannot be written; set NUMBA_CACHE_D") == 1
    assert said.count("\n") == 1
    assert kept_kernels(compiled) == []


def umask():
    """Return the permissions that new files lack."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.long
def test_a_process_that_has_loaded_a_kernel_compiles_another(compiled):
    printed, said = run(compiled, program=PROGRAM + ANOTHER)
    assert printed == ["7", "1", "15"]
    assert "compiling kernels for triple" in said


@pytest.mark.long
def test_cache_folders_nobody_has_opened_for_a_month_are_removed(package, tmp_path):
    unused = tmp_path / "cache" / "kernels-0123456789abcdef"
    unused.mkdir(parents=True)
    os.utime(unused, (0, 0))
    other = tmp_path / "cache" / "something-else"
    other.mkdir()
    os.utime(other, (0, 0))
    run(package)
    assert not unused.exists()
    assert other.exists()


def test_the_decorator_leaves_the_cache_folder_of_other_packages_alone():
    import numba

    before = numba.config.CACHE_DIR

    @jit.kernel
    def same(x: int) -> int:
        return x

    assert same(3) == 3
    assert before == numba.config.CACHE_DIR


def test_parallel_kernel_fills_every_row():
    import numba

    @jit.kernel(parallel=True)
    def fill(rows: np.ndarray) -> None:
        for i in numba.prange(len(rows)):
            rows[i] = i

    rows = np.zeros(100, dtype=np.int64)
    fill(rows)
    assert np.array_equal(rows, np.arange(100))


def test_division_by_zero_follows_ieee_754():
    @jit.kernel
    def ratio(a: float, b: float) -> float:
        return a / b

    assert ratio(np.float64(1.0), np.float64(0.0)) == np.inf


@pytest.mark.long
def test_user_without_a_home_compiles_in_every_process(package):
    """Such as an arbitrary user id in a container: no folder called `~` appears."""
    program = f"import os; os.path.expanduser = lambda path: path\n{PROGRAM}"
    printed, said = run(package, program=program, NUMBA_CACHE_DIR="")
    assert printed == ["7", "0"]
    assert "no cache folder" in said
    assert not (package.parent.parent / "~").exists()


def test_a_folder_that_keeps_no_kernels_is_named_once(tmp_path, capsys):
    for folder in (tmp_path, tmp_path, tmp_path / "other"):
        kernel_cache._say_not_kept(folder, f"{folder}: full")
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"hpcgym: compiled kernels cannot be kept: {folder}: full"
        for folder in (tmp_path, tmp_path / "other")
    ]
