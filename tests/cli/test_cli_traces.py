"""`hpcgym traces`: known logs, fetching them from a server, and what an own log holds."""

import csv
import functools
import gzip
import io
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from hpcgym.trace.catalogue import catalogue, find_trace

Command = Callable[..., str]

UNVERIFIED = "KTH-SP2-1996-2"  # A log of which the catalogue holds no digest

VERIFIED = "KTH-SP2-1996-2.1-cln"  # A log of which it does

LOG = """\
; MaxNodes: 4 (and two spares)
 1 100  0  10  4 -1 -1 -1  20 -1  1  1 -1 -1 -1 -1 -1 -1
 2 105  0  30  2 -1 -1 -1  -1 -1  1 -1 -1 -1 -1 -1 -1 -1
 3 110  0  -1  1 -1 -1 -1  -1 -1  5  2 -1 -1 -1 -1 -1 -1
 4 this line is none
"""


@pytest.fixture(autouse=True)
def no_logs_but_the_shelf_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HPCGYM_TRACES", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server on this machine, and the folder it serves."""
    folder = tmp_path / "archive"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    handler = functools.partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()


def test_every_known_log_is_listed_and_whether_it_is_here(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{VERIFIED}.swf").write_text(LOG)
    monkeypatch.setenv("HPCGYM_TRACES", str(tmp_path))
    lines = {line.split()[0]: line for line in run("traces", "list").splitlines() if line.split()}
    assert set(catalogue()) <= set(lines)
    assert "bundled" in lines["tiny"]
    assert " yes " in lines[VERIFIED]
    assert " yes " not in lines[UNVERIFIED]


def test_place_of_a_log_is_shown(run: Command) -> None:
    assert str(find_trace("tiny")) in "".join(run("traces", "info", "tiny").split())


@pytest.mark.parametrize("name", ["tiny", VERIFIED, UNVERIFIED])
def test_log_shows_what_is_known_of_it(run: Command, name: str) -> None:
    shown = " ".join(run("traces", "info", name).split())
    known = catalogue()[name]
    assert known.description in shown
    assert known.acknowledge in shown
    assert (known.sha256 or "unverified") in shown


def test_log_without_a_digest_is_fetched_only_on_demand(
    run: Command, refuse: Command, archive: tuple[str, Path], tmp_path: Path
) -> None:
    url, served = archive
    (served / f"{UNVERIFIED}.swf.gz").write_bytes(
        gzip.compress(LOG[: LOG.index(" 4 this")].encode())
    )
    command = ("traces", "download", UNVERIFIED, "--mirror", url, "--folder", tmp_path / "logs")
    assert "--unverified" in refuse(*command)
    printed = run(*command, "--unverified")
    assert str(tmp_path / "logs" / f"{UNVERIFIED}.swf.gz") in printed
    assert "Parallel Workloads Archive" in printed
    (served / f"{UNVERIFIED}.swf.gz").unlink()
    run(*command, "--unverified")  # it is here: nothing is fetched again


def test_logs_that_are_here_are_verified(
    run: Command, refuse: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "ok" in run("traces", "verify")
    assert "ok" in run("traces", "verify", "tiny")
    assert "is not here" in refuse("traces", "verify", VERIFIED)
    (tmp_path / f"{VERIFIED}.swf").write_text(LOG)
    monkeypatch.setenv("HPCGYM_TRACES", str(tmp_path))
    assert f"not the logs on record: {VERIFIED}" in refuse("traces", "verify")


def test_own_log_shows_what_it_has_lacks_and_would_lose(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "mine.swf"
    path.write_text(LOG)
    shown = run("traces", "check", path)
    lines = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert lines["submit_time"] == ["submit_time", "100.0%", "100", "110"]
    assert lines["run_time"] == ["run_time", "66.7%", "10", "30"]
    assert lines["requested_processors"] == ["requested_processors", "none"]
    assert lines["user"] == ["user", "66.7%", "1", "2"]
    assert lines["MaxNodes"][1:] == ["4", "(and", "two", "spares)"]
    assert lines["MaxProcs"][1:] == ["(not", "in", "the", "header)"]
    assert "1 malformed line" in shown
    assert "line 5:" in shown
    assert "mine: 2 of 4 jobs kept" in shown
    assert "no run time" in shown
    assert "8 processors" in run("traces", "check", path, "--processors", "8")


def test_of_several_logs_each_has_a_row_with_what_cleaning_drops(
    run: Command, tmp_path: Path
) -> None:
    (tmp_path / "mine.swf").write_text(LOG)
    (tmp_path / "size.swf").write_text(LOG.replace("; MaxNodes: 4 (and two spares)\n", ""))
    shown = run("traces", "check", "tiny", tmp_path / "mine.swf", tmp_path / "size.swf")
    lines = [line.split() for line in shown.splitlines()]
    assert lines[0] == ["log", "rows", "malformed", "line", "no", "run", "time", "jobs"]
    assert lines[1:3] == [["tiny", "8", "0", "0", "8"], ["mine", "4", "1", "1", "2"]]
    assert lines[3] == ["size", "4"]
    assert lines[4][:6] == ["size:", "cannot", "be", "simulated", "as", "it"]


def test_log_that_cannot_be_simulated_is_still_shown_as_far_as_it_goes(
    run: Command, tmp_path: Path
) -> None:
    path = tmp_path / "mine.swf"
    path.write_text(LOG.replace("; MaxNodes: 4 (and two spares)\n", ""))
    shown = run("traces", "check", path)
    assert "submit_time" in shown
    assert "--processors" in shown


def test_counts_stay_whole_numbers_beside_unknown_ones(run: Command) -> None:
    rows = list(csv.DictReader(io.StringIO(run("traces", "list", "--format", "csv"))))
    jobs = {row["log"]: row["jobs"] for row in rows}
    assert jobs["tiny"] == "8"
    assert "" in jobs.values()


def test_statistics_of_logs_stand_side_by_side(run: Command) -> None:
    table = run("traces", "statistics", "tiny", "synthetic-256")
    assert [line for line in table.splitlines() if line.split() == ["jobs", "8", "10,000"]]
    rows = list(csv.DictReader(io.StringIO(run("traces", "statistics", "tiny", "--format", "csv"))))
    assert {row["statistic"]: float(row["tiny"]) for row in rows}["wide"] == 7 / 8
