"""Logs that are made at first use: the one of the shelf, what is refused, and where they lie."""

import numpy as np
import pytest

from hpcgym.base import registry
from hpcgym.base.errors import OutputError, TraceError
from hpcgym.trace import entry, find_trace, load_workload
from hpcgym.trace.catalogue import digest_of, find_log
from hpcgym.trace.synthetic import synthetic_workload

ENTRY = """
description = "made"
jobs = 500
processors = 64
sha256 = "{digest}"

[generated]
seed = 3
load = 0.5
"""


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A shelf that is written to, and a cache of its own."""
    folder = tmp_path / "traces"
    folder.mkdir()
    monkeypatch.setattr(registry, "shelf_folders", lambda name: [folder])
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache")
    monkeypatch.delenv("HPCGYM_TRACES", raising=False)

    def write(text):
        (folder / "made.toml").write_text(text)
        return tmp_path / "cache" / "traces" / "made.swf"

    return write


def test_the_log_of_the_windows_is_on_record():
    known = entry("windows-256")
    assert (known.jobs, known.generated) == (691_200, {"seed": 11, "load": 0.7})
    assert find_log("windows-256") == find_trace("windows-256")  # else its digest differs


def test_a_log_is_made_once_as_the_generator_draws_it(shelf):
    path = shelf(ENTRY.format(digest="0" * 64))
    assert not path.exists()
    assert find_trace("made") == path
    before = path.stat().st_mtime_ns
    assert find_trace("MADE") == path and path.stat().st_mtime_ns == before
    jobs = load_workload(path)
    drawn = synthetic_workload(500, np.random.default_rng(3), machine_processors=64, load=0.5)
    assert (jobs.submit_time == drawn.submit_time - drawn.submit_time[0]).all()
    for key in ("run_time", "requested_time", "processors", "user"):
        assert getattr(jobs, key).tolist() == getattr(drawn, key).tolist(), key
    assert (jobs.wait_time == -1).all()


def test_what_an_older_entry_made_is_made_again(shelf):
    path = shelf(ENTRY.format(digest="0" * 64))
    digest = digest_of(find_trace("made"))
    path.write_text(path.read_text() + "; of an older entry\n")
    shelf(ENTRY.format(digest=digest))
    assert find_log("made") == path and digest_of(path) == digest
    path.write_text("; somebody's own\n")
    with pytest.raises(TraceError, match="is not made"):
        find_log("made")
    assert path.read_text() == "; somebody's own\n"


def test_a_log_of_another_generator_is_noticed(shelf):
    shelf(ENTRY.format(digest="0" * 64))
    with pytest.raises(TraceError, match=r"made\.swf: is not made: sha256 of its text is"):
        find_log("made")


def test_a_cache_that_cannot_be_written_is_told(shelf):
    path = shelf(ENTRY.format(digest="0" * 64))
    path.parent.parent.write_text("a file in the way")
    with pytest.raises(OutputError, match="cache"):
        find_trace("made")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 3", "sead = 3", r"\[generated\] unknown key 'sead'; did you mean 'seed'"),
        ("seed = 3", "", r"\[generated\] seed must be a whole number, got None"),
        ("load = 0.5", "load = 1", r"\[generated\] load must be a number with a decimal point"),
        ("jobs = 500", "", "a generated log needs jobs and processors"),
        ("[generated]\nseed = 3\nload = 0.5", "generated = 4", "generated must be a table, got 4"),
    ],
)
def test_an_entry_that_cannot_be_made_is_refused(shelf, old, new, message):
    assert old in ENTRY
    shelf(ENTRY.format(digest="0" * 64).replace(old, new))
    with pytest.raises(TraceError, match=message):
        find_trace("made")
