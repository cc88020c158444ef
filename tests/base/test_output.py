"""Writing: a file that exists is kept unless forced, and a failure leaves nothing behind."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from hpcgym.base.errors import OutputError
from hpcgym.base.output import (
    ensure_writable,
    locked,
    make_folder,
    output_folder,
    unfinished_folder,
    writing,
)


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_file_appears_whole_and_alone_when_the_block_ends_well(tmp_path: Path) -> None:
    with writing(tmp_path / "a.csv") as file:
        assert file.suffix == ".csv"
        assert file.parent == tmp_path
        file.write_text("x\n1\n")
        assert not (tmp_path / "a.csv").exists()
    assert names_in(tmp_path) == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "x\n1\n"


def test_new_file_has_the_permissions_any_new_file_has(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with writing(tmp_path / "ours") as file:
        file.write_text("x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_existing_file_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("precious")
    with pytest.raises(OutputError, match=r"exists already.*--force"), writing(path):
        pytest.fail("the block must not run")
    assert path.read_text() == "precious"
    assert names_in(tmp_path) == ["a.csv"]


def test_forced_file_replaces_the_old_one_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(0o640)
    with writing(path, force=True) as file:
        file.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with pytest.raises(OutputError, match="exists already"), writing(path) as file:
        file.write_text("ours")
        path.write_text("another's")
    assert path.read_text() == "another's"
    assert names_in(tmp_path) == ["a.csv"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_failed_block_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, error: BaseException
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(type(error)), writing(path, force=True) as file:
        file.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["a.csv"]


def test_full_disk_is_a_clear_error_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    with (
        pytest.raises(OutputError, match="No space left on device; the file that was there"),
        writing(path, force=True) as file,
    ):
        file.write_text("half")
        Path("/dev/full").write_text("the other half")
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["a.csv"]


def test_file_beyond_the_size_limit_of_the_system_leaves_nothing(tmp_path: Path) -> None:
    code = f"""
import resource, signal
from hpcgym.base.errors import OutputError
from hpcgym.base.output import writing
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    with writing({str(tmp_path / "a.csv")!r}) as file:
        file.write_text("x" * 5000)
except OutputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "writing failed: File too large" in done.stdout
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("file/a.csv", "cannot make this folder"),
        ("file/folder/a.csv", "cannot make this folder"),
        ("folder", "is a folder"),
        ("loop", "cannot be written|exists already|cannot write"),
    ],
)
def test_impossible_places_are_refused_before_any_work(
    tmp_path: Path, path: str, message: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    before = names_in(tmp_path)
    for attempt in (lambda: ensure_writable(tmp_path / path), lambda: enter(tmp_path / path)):
        with pytest.raises(OutputError, match=message):
            attempt()
    assert names_in(tmp_path) == before


def test_missing_folders_are_made_for_a_file_and_go_where_none_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.csv"
    ensure_writable(path)
    assert names_in(tmp_path) == []
    with pytest.raises(ValueError, match="no"), writing(path):
        raise ValueError("no")
    assert names_in(tmp_path) == []
    with writing(path) as file:
        file.write_text("kept")
    assert path.read_text() == "kept"


def enter(path: Path) -> None:
    with writing(path):
        pytest.fail("the block must not run")


@pytest.mark.parametrize("path", ["/proc/a.csv", "/proc/self/a.csv"])
def test_folder_that_takes_no_files_is_refused(path: str) -> None:
    with pytest.raises(OutputError, match=r"cannot write in the folder /proc"):
        ensure_writable(path)


def test_device_is_never_replaced() -> None:
    with pytest.raises(OutputError, match="not a plain file"):
        ensure_writable("/dev/null", force=True)
    assert Path("/dev/null").is_char_device()


def test_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    with writing(tmp_path / "link.csv", force=True) as file:
        file.write_text("new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


def test_asking_writes_nothing(tmp_path: Path) -> None:
    ensure_writable(tmp_path / "a.csv")
    assert names_in(tmp_path) == []


def test_folders_are_made_with_those_above(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "a" / "b").is_dir()
    assert make_folder(tmp_path / "a" / "b").is_dir()


def test_folder_under_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot make this folder"):
        make_folder(tmp_path / "file" / "b")


def test_lent_folder_goes_again_when_the_block_fails_and_left_it_empty(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), output_folder(tmp_path / "a" / "b") as folder:
        assert folder.is_dir()
        raise KeyboardInterrupt
    assert names_in(tmp_path) == []


def test_lent_folder_stays_where_it_was_there_or_holds_something(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with pytest.raises(ValueError, match="no"), output_folder(tmp_path / "old"):
        raise ValueError("no")
    with pytest.raises(ValueError, match="no"), output_folder(tmp_path / "new" / "one") as folder:
        (folder / "kept").touch()
        raise ValueError("no")
    with output_folder(tmp_path / "fine"):
        pass
    assert names_in(tmp_path) == ["fine", "new", "old"]
    assert names_in(tmp_path / "new" / "one") == ["kept"]


def test_folder_that_cannot_be_lent_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "folder"
    with pytest.raises(OutputError, match="cannot make this folder"), output_folder(folder):
        pytest.fail("the block must not run")
    assert names_in(tmp_path) == ["file"]


def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.csv"
    left = [tmp_path / f".0123abcd-{name}" for name in ("a.csv", "b.csv")]
    for one in left:
        one.write_text("half")
    with writing(path) as unfinished:
        assert names_in(tmp_path) == sorted([unfinished.name, left[1].name])
        with writing(path) as other:
            other.write_text("first")
        assert unfinished.exists()
        path.unlink()
        unfinished.write_text("second")
    assert path.read_text() == "second"
    ensure_writable(tmp_path / "b.csv")
    assert names_in(tmp_path) == ["a.csv"]


def test_an_unfinished_folder_stays_until_it_is_empty_or_renamed(tmp_path: Path) -> None:
    place = tmp_path / "data"
    with unfinished_folder(place) as folder:
        assert names_in(tmp_path) == [".data-unfinished"]
    assert names_in(tmp_path) == []
    with pytest.raises(ZeroDivisionError), unfinished_folder(place) as folder:
        (folder / "half").write_text("half")
        _ = 1 / 0
    with unfinished_folder(place) as folder:
        assert names_in(folder) == ["half"]
        with pytest.raises(OutputError, match="another process"), unfinished_folder(place):
            pass
        folder.rename(place)
    assert names_in(tmp_path) == ["data"]


def test_a_place_that_is_locked_is_refused_until_it_is_free_and_nothing_is_left(
    tmp_path: Path,
) -> None:
    place = tmp_path / "unfinished.sqlite"
    with locked(place):
        with (
            pytest.raises(OutputError, match="another process writes here at the moment"),
            locked(place),
        ):
            pass
        with locked(tmp_path / "other.sqlite"):
            pass
    with locked(place):
        pass
    assert list(tmp_path.iterdir()) == []


def test_one_of_many_that_wait_for_a_lock_has_it_at_a_time(tmp_path: Path) -> None:
    inside, most = [], []

    def take(_: int) -> None:
        with suppress(OutputError), locked(tmp_path / "kept"):
            inside.append(1)
            most.append(len(inside))
            inside.pop()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(take, range(2_000)))
    assert set(most) == {1}
