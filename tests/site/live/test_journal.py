"""The journal of site factors: what it remembers, and what a torn line does to it."""

import multiprocessing

import pytest

from hpcgym.base.errors import LiveError, OutputError
from hpcgym.site.live.journal import entries_of, opened


def test_what_was_noted_is_there_when_it_is_opened_again(tmp_path):
    path = tmp_path / "deep" / "journal.jsonl"
    with opened(path) as journal:
        journal.intend(100, 200, {7: 50, 8: -3})
        journal.intend(150, 250, {7: 60})
        journal.clear(160, [8])
    with opened(path) as journal:
        assert journal.sites == {7: [50, 60]} and journal.former == {8: [-3]}
        assert (journal.expires, journal.last_at) == (250, 160)
        assert journal.known(7) == [50, 60] and journal.known(8) == [-3]


def test_a_line_that_was_cut_short_hides_no_other(tmp_path):
    path = tmp_path / "journal.jsonl"
    with opened(path) as journal:
        journal.intend(100, 200, {7: 50})
        journal.intend(150, 250, {8: 60})
    text = path.read_bytes()
    for length in range(len(text) + 1):
        path.write_bytes(text[:length])
        with opened(path) as journal:
            journal.intend(300, 400, {9: 1})
        with opened(path) as journal:
            whole = text[:length].count(b"\n")
            told = [job for job, end in ((7, 1), (8, 2)) if whole >= end]
            assert set(journal.sites) >= {*told, 9}
            assert journal.expires == 400


def test_lines_that_are_no_entries_are_passed_over(tmp_path):
    path = tmp_path / "journal.jsonl"
    lines = ["[1]", '{"at": "x"}', '{"at": 1, "set": {"a": 2}}', '{"at": 1, "set": ["1"]}']
    lines += ['{"at": 1, "cleared": 5}', '{"at": 1, "set": {"7": 2}}', ""]
    path.write_text("\n".join(lines))
    with opened(path) as journal:
        assert journal.sites == {7: [2]}
    assert len(entries_of(path)) == 1


def hold(path, has_it, done):
    """Keep a journal open until told."""
    with opened(path):
        has_it.set()
        done.wait(30)


@pytest.mark.long
def test_two_processes_never_have_it_at_once(tmp_path):
    path = tmp_path / "journal.jsonl"
    spawn = multiprocessing.get_context("spawn")
    has_it, done = spawn.Event(), spawn.Event()
    other = spawn.Process(target=hold, args=(path, has_it, done))
    other.start()
    assert has_it.wait(30)
    with pytest.raises(LiveError, match="another hpcgym"), opened(path, wait_s=0.1):
        pass
    done.set()
    other.join()
    with opened(path, wait_s=0.1):
        pass


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="--journal"), opened(tmp_path / "file" / "journal"):
        pass
    with pytest.raises(LiveError, match="--apply writes it"):
        entries_of(tmp_path / "none.jsonl")
