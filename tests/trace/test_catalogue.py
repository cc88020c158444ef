"""Finding, fetching and verifying logs, against a server on this machine."""

import gzip
import hashlib
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hpcgym.base import registry
from hpcgym.base.errors import OutputError, TraceError
from hpcgym.trace import catalogue, download, entry, find_trace, load_workload, verify
from hpcgym.trace.catalogue import (
    UNVERIFIED_VARIABLE,
    cache_folder,
    find_log,
    is_same_text,
    name_without_version,
)
from index_traces import shelf_index

catalogue_module = sys.modules["hpcgym.trace.catalogue"]
"""`hpcgym.trace.catalogue` is the function of that name."""

TEXT = b"; MaxProcs: 4\n1 0 -1 10 1 -1 -1 1 20 -1 1 3 -1 -1 -1 -1 -1 -1\n"
KNOWN = "MyLog-2026-1"
UNHASHED = "MyLog-2026-0"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Use an empty cache, and none of the logs of the person who runs the tests."""
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.delenv("HPCGYM_TRACES", raising=False)


class Server:
    """What the archive would send, and what was asked of it."""

    def __init__(self):
        self.pages = {}
        self.asked = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(self.path)
                content = server.pages.get(self.path)
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Length", str(server.stated_length(content)))
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *args):
                pass

        self.excess_length = 0
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def stated_length(self, content):
        """Return the length the header states: too long when the transfer is to break off."""
        return len(content or b"") + self.excess_length


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """A server, and a catalogue of the user's own that points to it."""
    server = Server()
    shelf = tmp_path / "own" / "traces"
    shelf.mkdir(parents=True)
    (shelf / "catalogue.toml").write_text(
        f'["{KNOWN}"]\n'
        'description = "A log of one job"\n'
        f'url = "{server.url}/l_my/{KNOWN}.swf.gz"\n'
        f'sha256 = "{hashlib.sha256(TEXT).hexdigest()}"\n'
        f'["{UNHASHED}"]\n'
        'description = "A log nobody has a digest of"\n'
        f'url = "{server.url}/l_my/{UNHASHED}.swf.gz"\n'
    )
    monkeypatch.setattr(registry, "_user_folders", [tmp_path / "own"])
    yield server
    server.http.shutdown()
    server.http.server_close()


def files_below(folder):
    """Return every file below a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]


def test_download_fetches_checks_and_is_found_by_name(archive):
    archive.pages[f"/l_my/{KNOWN}.swf.gz"] = gzip.compress(TEXT)
    path = download(KNOWN)
    assert path == cache_folder() / f"{KNOWN}.swf.gz"
    assert files_below(cache_folder()) == [path]
    assert find_trace(KNOWN) == path
    assert len(load_workload(KNOWN)) == 1
    assert verify([KNOWN])[0].status == "ok"


def test_digest_is_of_the_text_whatever_the_compression(archive):
    archive.pages[f"/l_my/{KNOWN}.swf.gz"] = gzip.compress(TEXT, compresslevel=1, mtime=99)
    assert download(KNOWN).is_file()


def another_log_as(known: str) -> bytes:
    """Keep another text under the name of a known log; return its bytes."""
    path = cache_folder() / f"{known}.swf.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(TEXT.replace(b" 10 ", b" 11 ")))
    return path.read_bytes()


def test_another_log_under_the_name_of_a_known_one_is_refused(archive, monkeypatch):
    another_log_as(KNOWN)
    with pytest.raises(
        TraceError, match=r"MyLog-2026-1\.swf\.gz: is not MyLog-2026-1: sha256 .* is"
    ):
        load_workload(KNOWN)
    assert len(load_workload(find_trace(KNOWN))) == 1
    monkeypatch.setenv(UNVERIFIED_VARIABLE, "1")
    assert len(load_workload(KNOWN)) == 1


def test_the_log_that_another_is_is_named(archive, monkeypatch):
    path = cache_folder() / f"{KNOWN}.swf"
    path.parent.mkdir(parents=True)
    path.write_bytes(find_trace("tiny").read_bytes())
    with pytest.raises(
        TraceError, match=r"sha256 of its text is [0-9a-f]{64}, that of tiny; to use"
    ):
        find_log(KNOWN)


def test_a_digest_is_computed_once_and_again_when_the_file_changes(archive, monkeypatch):
    archive.pages[f"/l_my/{KNOWN}.swf.gz"] = gzip.compress(TEXT)
    download(KNOWN)
    computed, digest = [], catalogue_module.digest_of
    monkeypatch.setattr(
        catalogue_module, "digest_of", lambda path: computed.append(path) or digest(path)
    )
    for _ in range(3):
        catalogue_module._accepted.clear()  # as in another process
        find_log(KNOWN)
    assert len(computed) == 1
    another_log_as(KNOWN)
    with pytest.raises(TraceError, match="is not MyLog"):
        find_log(KNOWN)


@pytest.mark.parametrize("kept", [b"", b"{", b"[1]", b'{"a": 1}', b"\xff"])
def test_damaged_digests_are_computed_anew(archive, kept):
    archive.pages[f"/l_my/{KNOWN}.swf.gz"] = gzip.compress(TEXT)
    path = download(KNOWN)
    (cache_folder() / "digests.json").write_bytes(kept)
    assert find_log(KNOWN) == path


def test_an_altered_digest_in_the_cache_refuses_no_good_log(archive):
    archive.pages[f"/l_my/{KNOWN}.swf.gz"] = gzip.compress(TEXT)
    path = download(KNOWN)
    find_log(KNOWN)
    kept = cache_folder() / "digests.json"
    kept.write_text(kept.read_text().replace(hashlib.sha256(TEXT).hexdigest(), "0" * 64))
    catalogue_module._accepted.clear()
    assert find_log(KNOWN) == path


def test_a_user_that_is_not_there_is_no_folder_of_logs(monkeypatch):
    monkeypatch.setenv("HPCGYM_TRACES", "~nosuchuser")
    with pytest.raises(TraceError, match="HPCGYM_TRACES=~nosuchuser: there is no such user"):
        find_log("tiny")
    monkeypatch.delenv("HPCGYM_TRACES")
    with pytest.raises(TraceError, match="no such file"):
        find_log("~nosuchuser/log.swf")


def test_repeat_fetches_only_what_is_missing(archive):
    archive.pages[f"/l_my/{KNOWN}.swf.gz"] = gzip.compress(TEXT)
    path = download(KNOWN)
    assert download(KNOWN) == path
    assert len(archive.asked) == 1
    path.unlink()
    download(KNOWN)
    assert len(archive.asked) == 2


def test_damaged_copy_is_fetched_again(archive):
    archive.pages[f"/l_my/{KNOWN}.swf.gz"] = gzip.compress(TEXT)
    path = download(KNOWN)
    for damaged in (path.read_bytes()[:30], gzip.compress(b"other"), b""):
        path.write_bytes(damaged)
        assert download(KNOWN) == path
        assert verify([KNOWN])[0].status == "ok"


def test_wrong_hash_leaves_nothing_behind(archive):
    archive.pages[f"/l_my/{KNOWN}.swf.gz"] = gzip.compress(TEXT + b"; tampered\n")
    with pytest.raises(TraceError, match=r"not the log on record: sha256 .* nothing was kept"):
        download(KNOWN)
    assert files_below(cache_folder()) == []
    with pytest.raises(TraceError, match="is not here"):
        find_trace(KNOWN)


def test_wrong_hash_leaves_an_older_copy_as_it_was(archive):
    older = cache_folder() / f"{KNOWN}.swf.gz"
    older.parent.mkdir(parents=True)
    older.write_bytes(gzip.compress(b"older"))
    archive.pages[f"/l_my/{KNOWN}.swf.gz"] = gzip.compress(b"wrong")
    with pytest.raises(TraceError, match="not the log on record"):
        download(KNOWN)
    assert gzip.decompress(older.read_bytes()) == b"older"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be fetched: 404"),
        (b"<html>moved</html>", "named .gz but not gzip"),
        (gzip.compress(TEXT, mtime=0)[:40], "the gzip stream ends early"),
    ],
    ids=["not found", "not gzip", "cut short"],
)
def test_failed_transfer_is_said_and_leaves_nothing_behind(archive, content, reason):
    archive.pages[f"/l_my/{KNOWN}.swf.gz"] = content
    with pytest.raises(TraceError, match=reason):
        download(KNOWN)
    assert files_below(cache_folder()) == []


def test_transfer_that_breaks_off_leaves_nothing_behind(archive):
    archive.pages[f"/l_my/{KNOWN}.swf.gz"] = gzip.compress(TEXT)
    archive.excess_length = 100
    with pytest.raises(TraceError, match=r"cannot be fetched|ends early"):
        download(KNOWN)
    assert files_below(cache_folder()) == []


def test_unreachable_server_is_said(archive):
    archive.http.shutdown()
    archive.http.server_close()
    with pytest.raises(TraceError, match="cannot be fetched"):
        download(KNOWN)


def test_log_without_digest_is_taken_only_when_asked(archive):
    archive.pages[f"/l_my/{UNHASHED}.swf.gz"] = gzip.compress(TEXT)
    with pytest.raises(TraceError, match=r"is unverified: .* --unverified"):
        download(UNHASHED)
    assert archive.asked == []
    path = download(UNHASHED, unverified=True)
    assert verify([UNHASHED])[0].status == "unverified"
    assert download(UNHASHED) == path


def test_unverified_log_must_at_least_be_a_log(archive):
    archive.pages[f"/l_my/{UNHASHED}.swf.gz"] = gzip.compress(b"no log\n")
    with pytest.raises(TraceError, match="is no log in SWF"):
        download(UNHASHED, unverified=True)
    assert files_below(cache_folder()) == []


def test_mirror_stands_in_for_the_archive(archive):
    archive.pages[f"/mirror/{KNOWN}.swf.gz"] = gzip.compress(TEXT)
    assert download(KNOWN, mirror=f"{archive.url}/mirror/").is_file()
    assert archive.asked == [f"/mirror/{KNOWN}.swf.gz"]


def test_folder_of_ones_own_is_filled_and_must_be_writable(archive, tmp_path):
    archive.pages[f"/l_my/{KNOWN}.swf.gz"] = gzip.compress(TEXT)
    assert download(KNOWN, folder=tmp_path / "logs") == tmp_path / "logs" / f"{KNOWN}.swf.gz"
    assert not cache_folder().exists()
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot make this folder"):
        download(KNOWN, folder=tmp_path / "file")


def test_what_the_archive_does_not_publish_cannot_be_downloaded():
    with pytest.raises(TraceError, match="tiny is not published by the archive; it is here: "):
        download("tiny")
    with pytest.raises(TraceError, match="unknown trace 'KTH-SP3'"):
        download("KTH-SP3")


def test_logs_are_looked_for_near_the_user_first(tmp_path, monkeypatch):
    def put(folder, content=TEXT):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tiny.swf").write_bytes(content)
        return folder / "tiny.swf"

    shelf = find_trace("tiny")
    cached = put(cache_folder())
    assert find_trace("tiny") == cached != shelf
    stated = put(tmp_path / "stated")
    folders = [str(tmp_path / "none"), str(tmp_path / "stated")]
    monkeypatch.setenv("HPCGYM_TRACES", os.pathsep.join(folders))
    assert find_trace("tiny") == stated
    path = put(tmp_path / "here")
    assert find_trace(path) == find_trace(str(path)) == path
    monkeypatch.chdir(path.parent)
    assert find_trace("tiny.swf").resolve() == path


def test_name_is_known_in_any_case():
    assert find_trace("TINY").name == "tiny.swf"
    assert entry("kth-sp2-1996-2.1-CLN").name == "KTH-SP2-1996-2.1-cln"


def test_unknown_and_absent_logs_are_told_apart(tmp_path, monkeypatch):
    with pytest.raises(TraceError, match="unknown trace 'tinny'; did you mean 'tiny'"):
        find_trace("tinny")
    with pytest.raises(TraceError, match="folder/none: no such file"):
        find_trace("folder/none")
    with pytest.raises(TraceError, match=r"none\.swf: no such file"):
        find_trace("none.swf")
    monkeypatch.setenv("HPCGYM_TRACES", str(tmp_path))
    with pytest.raises(TraceError) as raised:
        find_trace("KTH-SP2-1996-2.1-cln")
    for part in (str(tmp_path), "hpcgym traces download KTH-SP2-1996-2.1-cln", "HPCGYM_TRACES"):
        assert part in str(raised.value)


def test_folder_in_place_of_a_log_is_called_one(tmp_path, monkeypatch):
    folder = tmp_path / "logs.swf"
    folder.mkdir()
    (tmp_path / "logs").mkdir()
    monkeypatch.chdir(tmp_path)
    for given in (folder, str(tmp_path), "logs.swf", "logs", "logs/", "."):
        with pytest.raises(TraceError, match=r"is a folder; a log is a file .*HPCGYM_TRACES"):
            find_trace(given)


def test_folder_named_as_a_known_log_does_not_hide_it(tmp_path, monkeypatch):
    for name in ("tiny", "KTH-SP2-1996-2.1-cln"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_trace("tiny").name == "tiny.swf"
    with pytest.raises(TraceError, match=r"traces download KTH-SP2-1996-2\.1-cln"):
        find_trace("KTH-SP2-1996-2.1-cln")


def test_verify_looks_at_all_that_is_here():
    here = {one.name: one.status for one in verify()}
    bundled = ("hetero-64", "synthetic-256", "synthetic-busy-weeks", "synthetic-fair-share", "tiny")
    assert here == dict.fromkeys(bundled, "ok")
    with pytest.raises(TraceError, match="is not here"):
        verify(["KTH-SP2-1996-2.1-cln"])


def test_a_changed_log_differs(tmp_path, monkeypatch):
    monkeypatch.setenv("HPCGYM_TRACES", str(tmp_path))
    (tmp_path / "tiny.swf").write_bytes(TEXT)
    (found,) = verify(["tiny"])
    assert found.status == "differs"
    assert found.sha256 == hashlib.sha256(TEXT).hexdigest()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('["x"]\ndescripton = "a"\n', "unknown key 'descripton'; did you mean 'description'"),
        ('["x"]\njobs = 1\n', "x: the key description is missing"),
        ("x = 1\n", "'x' must be a table"),
        ("x = \n", "not valid TOML"),
    ],
)
def test_malformed_catalogue_is_refused_by_file_and_key(tmp_path, monkeypatch, text, reason):
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "catalogue.toml").write_text(text)
    monkeypatch.setattr(registry, "_user_folders", [tmp_path])
    with pytest.raises(TraceError, match=reason) as raised:
        catalogue()
    assert str(tmp_path / "traces" / "catalogue.toml") in str(raised.value)


def test_every_log_of_the_archive_says_where_it_is_published_and_whom_to_thank():
    published = [log for log in catalogue().values() if log.url]
    assert len(published) >= 30
    for log in published:
        assert log.url.startswith("https://www.cs.huji.ac.il/labs/parallel/workload/l_")
        assert log.url.endswith(f"/{log.name}.swf.gz")
        assert log.acknowledge
        assert log.version.split()[0] in log.name
        assert log.sha256 is None or len(log.sha256) == 64
    for name in ("METACENTRUM-2009-2", "KTH-SP2-1996-2"):
        assert entry(name).sha256 is None


def test_index_of_the_shelf_is_current():
    readme = registry.shelf_folders("traces")[0] / "README.md"
    assert readme.read_text(encoding="utf-8") == shelf_index()


def test_versions_of_a_log_share_a_name_and_no_others_do():
    published = [log.name for log in catalogue().values() if log.url is not None]
    by_name = {}
    for name in published:
        by_name.setdefault(name_without_version(f"{name}.swf.gz"), []).append(name)
    assert None not in by_name
    assert {key: names for key, names in by_name.items() if len(names) > 1} == {
        "kth-sp2-1996": ["KTH-SP2-1996-2.1-cln", "KTH-SP2-1996-2"],
        "sdsc-sp2-1998": ["SDSC-SP2-1998-4.2-cln", "SDSC-SP2-1998-4"],
    }
    assert [name_without_version(name) for name in ("lublin_256", "synthetic-256")] == [None, None]


def test_text_is_compared_unpacked_and_to_its_end(tmp_path):
    plain, packed, longer, damaged = (
        tmp_path / name for name in ("a.swf", "b.swf.gz", "c.swf.gz", "d.swf.gz")
    )
    text = TEXT * 2_000  # several chunks
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text))
    longer.write_bytes(gzip.compress(text + b"\n"))
    damaged.write_bytes(packed.read_bytes()[:-9])
    assert is_same_text(plain, packed)
    assert is_same_text(packed, plain)
    for other in (longer, damaged, tmp_path / "missing.swf"):
        assert not is_same_text(plain, other)
        assert not is_same_text(other, plain)
