"""Files of weights that are damaged, or made to exhaust the memory, are refused with a sentence."""

import io
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hpcgym.agent.network import NetworkAgent, read_network
from hpcgym.agent.npz import SMALL_BYTES, NpzFile, sealed, write_npz
from hpcgym.agent.run_time_network import read_run_time_network
from hpcgym.base.errors import CardError
from hpcgym.base.registry import shelf_folders

SHELF = shelf_folders("agents")[0]
READERS = {"smith-net.npz": read_run_time_network, "ppo-order.npz": read_network}
WAYS = ("flip", "change", "cut", "swap", "clear", "repeat", "exchange")


def corrupted(content: bytes, seed: int) -> bytes:
    """Damage a file in one of several ways."""
    draw, changed = random.Random(seed), bytearray(content)
    way, place, other = WAYS[seed % len(WAYS)], draw.randrange(len(changed)), draw.randrange(4_000)
    if way == "flip":
        changed[place] ^= 1 << draw.randrange(8)
    elif way == "change":
        for _ in range(draw.randrange(2, 20)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
    elif way == "cut":
        del changed[place:]
    elif way == "swap":
        changed[place : place + 40], changed[other : other + 40] = (
            changed[other : other + 40],
            changed[place : place + 40],
        )
    elif way == "clear":
        changed[place : place + 300] = bytes(len(changed[place : place + 300]))
    elif way == "repeat":
        changed[place:place] = changed[place : place + draw.randrange(1, 200)]
    else:
        return exchanged(content, draw)
    return bytes(changed)


def exchanged(content: bytes, draw: random.Random) -> bytes:
    """Exchange two members of a file, and keep its digest; a single member gets another name."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(file, "w") as after:
        names = before.namelist()
        shuffled = draw.sample(names, len(names)) if len(names) > 1 else ["other.npy"]
        for name, now in zip(names, shuffled, strict=True):
            after.writestr(now, before.read(name))
        after.comment = before.comment
    return file.getvalue()


def in_effect(read: NetworkAgent | np.ndarray) -> object:
    """Return what decides how weights act."""
    if isinstance(read, NetworkAgent):
        return read.spec, {name: array.tobytes() for name, array in read.weights.items()}
    return read.tobytes()


def refuse_or_equal(name: str, seeds: range, tmp_path: Path) -> int:
    """Read corrupted files; return how many are refused, and fail where one acts otherwise."""
    content, read, n_refused = (SHELF / name).read_bytes(), READERS[name], 0
    wanted, path = in_effect(read(SHELF / name)), tmp_path / name
    for seed in seeds:
        path.write_bytes(corrupted(content, seed))
        try:
            assert in_effect(read(path)) == wanted, f"seed {seed}"
        except CardError as error:
            assert str(path) in str(error) and "\n" not in str(error)
            n_refused += 1
    return n_refused


@pytest.mark.parametrize("name", READERS)
def test_a_corrupted_file_acts_as_before_or_is_refused(name: str, tmp_path: Path) -> None:
    assert refuse_or_equal(name, range(140), tmp_path) > 120


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_many_corrupted_files_act_as_before_or_are_refused(name: str, tmp_path: Path) -> None:
    assert refuse_or_equal(name, range(1_500), tmp_path) > 1_300


def changed_network(path: Path, **changes: np.ndarray) -> Path:
    """Write the shelf's network with other arrays."""
    with np.load(SHELF / "ppo-order.npz") as file:
        write_npz(path, dict(file) | changes, packed=True)
    return path


@pytest.mark.parametrize("key", ["layers", "hidden", "n_slots", "n_outputs"])
@pytest.mark.parametrize("size", [10**12, 2**62])
def test_sizes_that_no_network_has_are_refused_before_it_is_built(
    key: str, size: int, tmp_path: Path
) -> None:
    path = changed_network(tmp_path / "a.npz", **{f"spec.{key}": np.array(size)})
    with pytest.raises(CardError, match=f"{key} must be at most"):
        read_network(path)


@pytest.mark.parametrize("name", ["other", "spec.bound", "jobs.bias"])
def test_an_array_that_inflates_is_refused_before_it_is_unpacked(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = changed_network(tmp_path / "a.npz", **{name: np.zeros(5_000_000, np.float32)})
    assert path.stat().st_size < 100_000
    unpacked: list[int] = []
    read = zipfile.ZipFile.read

    def noted(self: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
        unpacked.append(member.file_size)
        return read(self, member)

    monkeypatch.setattr(zipfile.ZipFile, "read", noted)
    with pytest.raises(CardError, match=r"unknown array|has 20000128 bytes"):
        read_network(path)
    assert max(unpacked) < 20_000


def test_a_header_that_states_more_than_there_is_is_refused(tmp_path: Path) -> None:
    file = io.BytesIO()
    shape = {"descr": "<f4", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(file, shape)
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", file.getvalue())
    with pytest.raises(CardError, match=r"0 bytes for float32 of shape \(1000000000000,\)"):
        NpzFile(path).array("a")


@pytest.mark.parametrize("most_bytes", [0, 100])
def test_an_array_of_the_largest_size_is_read_and_a_larger_one_refused(
    most_bytes: int, tmp_path: Path
) -> None:
    path, head = tmp_path / "a.npz", 128  # bytes that numpy writes before the numbers
    room = most_bytes + SMALL_BYTES - head
    write_npz(path, {"fits": np.ones(room, np.uint8), "large": np.ones(room + 1, np.uint8)})
    file = NpzFile(path)
    assert file.array("fits", most_bytes).sum() == room
    with pytest.raises(CardError, match=f"'large' has {room + 1 + head} bytes; allowed: "):
        file.array("large", most_bytes)


def test_arrays_that_have_changed_places_are_found_by_the_digest_alone(tmp_path: Path) -> None:
    """Every member keeps its own check sum, so nothing but the digest can tell."""
    path = tmp_path / "a.npz"
    write_npz(path, {"a": np.arange(3), "b": np.arange(3, 6)})
    content = path.read_bytes()
    assert NpzFile(path).array("a").tolist() == [0, 1, 2]
    path.write_bytes(exchanged(content, random.Random(0)))
    with np.load(path) as file:
        assert file["a"].tolist() == [3, 4, 5]
    with pytest.raises(CardError, match="damaged: its content is not what was written"):
        NpzFile(path)


def test_a_file_that_numpy_wrote_has_no_digest_and_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, a=np.arange(3))
    assert NpzFile(path).array("a").tolist() == [0, 1, 2]
    path.write_bytes(sealed(path.read_bytes()))
    assert NpzFile(path).array("a").tolist() == [0, 1, 2]
    with np.load(path) as file:
        assert file["a"].tolist() == [0, 1, 2]
