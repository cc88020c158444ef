"""Reading and writing the Standard Workload Format: every quirk of real files, every fault."""

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.base.errors import OutputError, TraceError
from hpcgym.trace import find_trace, load_workload, log_of, read_swf, write_swf
from hpcgym.trace.swf import FIELDS, SwfLog, log_name

GOOD = "7 0 -1 10 1 -1 -1 1 20 -1 1 3 -1 -1 -1 -1 -1 -1"


@pytest.fixture
def log_file(tmp_path):
    """Return a function that writes text as a log and returns its path."""

    def write(text, name="mine.swf"):
        path = tmp_path / name
        path.write_bytes(text.encode("latin-1"))
        return path

    return write


def test_fields_stand_in_the_order_of_the_format(log_file):
    log = read_swf(log_file(" ".join(map(str, range(1, 19))) + "\n"))
    assert tuple(log.records.columns) == FIELDS
    assert log.records.iloc[0].tolist() == list(range(1, 19))
    assert (FIELDS[3], FIELDS[8], FIELDS[11]) == ("run_time", "requested_time", "user")


@pytest.mark.parametrize(
    "text",
    [
        *(GOOD + "\n", GOOD, "   " + GOOD.replace(" ", "   ") + "   \n"),
        *(GOOD.replace(" ", "\t") + "\n", GOOD + "\r\n", "\n \n" + GOOD + "\n\n"),
        *("\xef\xbb\xbf" + GOOD + "\n", GOOD + " ; a remark\n"),
        *(GOOD.replace(" 10 ", " 10.00 ") + "\n", GOOD.replace(" 10 ", " +10 ") + "\n"),
        GOOD.replace(" 10 ", " 1e1 ") + "\n",
    ],
)
def test_a_job_reads_alike_however_it_is_spaced(log_file, text):
    records = read_swf(log_file(text)).records
    assert records.iloc[0].tolist() == [int(field) for field in GOOD.split()]
    assert all(dtype == np.int64 for dtype in records.dtypes)


def test_decimals_are_kept_in_the_fields_that_have_them(log_file):
    records = read_swf(log_file(GOOD + "\n" + GOOD.replace(" 10 ", " 10.25 ") + "\n")).records
    assert records["run_time"].tolist() == [10.0, 10.25]
    assert records["submit_time"].dtype == np.int64


def test_header_lines_are_kept_as_found(log_file):
    text = "; Version: 2.2\n;\n;\ttabs: here\n" + GOOD + "\n  ; Note: between jobs\n" + GOOD + "\n"
    log = read_swf(log_file(text))
    assert log.header == ("; Version: 2.2", ";", ";\ttabs: here", "  ; Note: between jobs")
    assert len(log) == 2


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("; MaxProcs: 128", 128),
        (";MaxProcs: 128", 128),
        (";        MaxProcs: 128", 128),
        ("   ; MaxProcs : 128", 128),
        ("; maxprocs:128", 128),
        (";\tMaxProcs:\t128", 128),
        ("; MaxProcs: 338 (batch partition; 512 total)", 338),
        ("; MaxProcs: N/A", None),
        ("; MaxProcs:", None),
        ("; and MaxProcs fields.", None),
        ("; Note: MaxProcs: 5", None),
    ],
)
def test_header_number_is_found_however_the_key_is_written(log_file, line, number):
    assert read_swf(log_file(f"{line}\n{GOOD}\n")).header_number("MaxProcs") == number


def test_first_stated_value_wins_and_repeated_notes_are_all_kept(log_file):
    log = read_swf(log_file(f"; Note: one\n; Note: two\n; Computer:\n; Computer: SP2\n{GOOD}\n"))
    assert log.header_values("Note") == ["one", "two"]
    assert log.header_value("Computer") == "SP2"
    assert log.header_value("Installation") is None


def test_control_signs_in_comments_do_no_harm(log_file):
    log = read_swf(log_file(f"; Partition: 18  z+\x1bi5U=:\n; Partition: 19  `;\xff\n{GOOD}\n"))
    assert len(log) == 1
    assert len(log.header) == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 2 3", "3 fields where the format has 18"),
        (GOOD + " 9", "19 fields where the format has 18"),
        (GOOD + " 9 9 9 9", "22 fields where the format has 18"),
        (GOOD.rsplit(" ", 1)[0], "17 fields where the format has 18"),
        (GOOD.rsplit(" ", 1)[0] + " ;-1", "17 fields where the format has 18"),
        (GOOD.replace("10", "ten", 1), "field 4 (run_time) is 'ten', which is not a number"),
        (GOOD.replace("10", "nan", 1), "field 4 (run_time) is 'nan', which is not a number"),
        (GOOD.replace("10", "inf", 1), "field 4 (run_time) is 'inf', which is not a number"),
        (GOOD.replace("10", "NA", 1), "field 4 (run_time) is 'NA', which is not a number"),
        (GOOD.replace("10", "1_0", 1), "field 4 (run_time) is '1_0', which is not a number"),
        (GOOD.replace("10", "0x1", 1), "field 4 (run_time) is '0x1', which is not a number"),
        (GOOD.replace("10", "True", 1), "field 4 (run_time) is 'True', which is not a number"),
        (GOOD.replace("0 -1", "0-1", 1), "'0-1', which is not a number; do two fields touch?"),
        (GOOD.replace("10 1", "10.51.5", 1), "'10.51.5', which is not a number; do two fields"),
        (GOOD.replace("10", "9" * 30, 1), "field 4 (run_time) is " + "9" * 30 + ", beyond"),
        ('"' + GOOD, "field 1 (job_id) is '\"7', which is not a number"),
        (GOOD.replace(" ", ","), "which is not a number"),
        ("\x7f\x01\xfe\xff", "which is not a number"),
    ],
)
def test_malformed_line_is_named_or_dropped(log_file, line, reason):
    path = log_file(f"; Version: 2.2\n{GOOD}\n{line}\n{GOOD}\n")
    with pytest.raises(TraceError) as raised:
        read_swf(path)
    assert str(raised.value).startswith(f"{path}:3: ")
    assert reason in str(raised.value)
    log = read_swf(path, on_bad_line="drop")
    assert len(log) == 2
    assert [bad.number for bad in log.bad_lines] == [3]
    assert reason in log.bad_lines[0].reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("JobID|State|Submit\n1|COMPLETED|5\n", "text of sacct, no log in SWF; hpcgym.trace."),
        ("job_id,submit_time\n1,5\n", "table of jobs, no log in SWF; hpcgym.trace.read_log rea"),
        ("NodeName=n1 CPUs=4\n", "it looks like a machine, as scontrol prints it"),
        ("Once upon a time\n", "it begins with 'Once upon a time', so it is no log in SWF; hpcgy"),
    ],
)
def test_what_is_no_log_in_swf_is_named_by_what_it_is(log_file, text, said):
    path = log_file(text)
    with pytest.raises(TraceError) as raised:
        read_swf(path)
    assert str(raised.value).startswith(f"{path}: {said}")


def test_a_malformed_first_line_does_not_set_the_number_of_columns(log_file):
    log = read_swf(log_file(f"{GOOD} 1 2 3 4 5\n{GOOD}\n"), on_bad_line="drop")
    assert log.records.iloc[0].tolist() == [int(field) for field in GOOD.split()]
    with pytest.raises(TraceError, match=r":1: 3 fields .* \(and 1 more such lines\)"):
        read_swf(log_file("1 2 3\n4 5 6\n"))


def test_a_long_wrong_field_is_not_printed_whole(log_file):
    with pytest.raises(TraceError) as raised:
        read_swf(log_file("x" * 10_000 + "\n"))
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file is empty"),
        ("\n\n", "no job in this file"),
        ("; Version: 2.2\n", "no job in this file"),
        (f"{GOOD}\n\0\0\0", ":2: not a text file"),
    ],
)
def test_file_without_jobs_or_text_is_refused(log_file, text, reason):
    for on_bad_line in ("raise", "drop"):
        with pytest.raises(TraceError, match=reason):
            read_swf(log_file(text), on_bad_line=on_bad_line)


def test_nothing_left_after_dropping_is_said(log_file):
    with pytest.raises(TraceError, match="no job in this file; 2 malformed lines were dropped"):
        read_swf(log_file("1 2\n3 4\n"), on_bad_line="drop")


def test_unknown_way_with_bad_lines_is_refused(log_file):
    with pytest.raises(TraceError, match='on_bad_line=\'skip\'; allowed: "raise", "drop"'):
        read_swf(log_file(GOOD), on_bad_line="skip")


def test_missing_file_and_folder_are_refused(tmp_path):
    with pytest.raises(TraceError, match=r"none\.swf: no such file"):
        read_swf(tmp_path / "none.swf")
    with pytest.raises(TraceError, match="cannot be read"):
        read_swf(tmp_path)


def test_gzip_is_told_from_the_first_bytes(tmp_path):
    for name in ("mine.swf.gz", "mine.swf"):
        (tmp_path / name).write_bytes(gzip.compress(GOOD.encode()))
        assert len(read_swf(tmp_path / name)) == 1
    both = gzip.compress(f"{GOOD}\n".encode()) + gzip.compress(f"{GOOD}\n".encode())
    (tmp_path / "members.swf.gz").write_bytes(both)
    assert len(read_swf(tmp_path / "members.swf.gz")) == 2


def test_damaged_gzip_is_refused_with_the_line_it_breaks_at(tmp_path):
    rng = np.random.default_rng(1)
    lines = [f"{GOOD.rsplit(' ', 1)[0]} {k}" for k in rng.integers(0, 10**9, 20_000)]
    packed = gzip.compress("\n".join(lines).encode())
    damage = {
        "cut": (packed[: len(packed) // 2], "the gzip stream ends early here"),
        "checksum": (packed[:-8] + b"12345678", "the gzip stream is damaged here"),
        "rubbish": (packed + b"rubbish", "the gzip stream is damaged here"),
        "magic": (packed[:2], "the gzip stream ends early here"),
    }
    for name, (content, reason) in damage.items():
        path = tmp_path / f"{name}.swf.gz"
        path.write_bytes(content)
        for on_bad_line in ("raise", "drop"):
            with pytest.raises(TraceError, match=reason) as raised:
                read_swf(path, on_bad_line=on_bad_line)
            assert str(raised.value).startswith(f"{path}:")
    with pytest.raises(TraceError) as raised:
        read_swf(tmp_path / "cut.swf.gz")
    assert 5_000 < int(str(raised.value).split(":")[-2]) < 15_000


@pytest.mark.parametrize(("suffix", "pack"), [(".bz2", bz2.compress), (".xz", lzma.compress)])
def test_logs_are_read_as_bzip2_and_xz_pack_them(tmp_path, suffix, pack):
    path = tmp_path / f"mine.swf{suffix}"
    packed = pack(f"{GOOD}\n".encode() * 9)
    path.write_bytes(packed)
    log = read_swf(path)
    assert (log.name, len(log)) == ("mine", 9)
    path.write_bytes(packed[:-9])
    with pytest.raises(TraceError, match=rf"mine\.swf{suffix}:\d+: the \w+ stream ends early"):
        read_swf(path)
    path.write_text(GOOD)
    with pytest.raises(TraceError, match=rf"named \{suffix} but not"):
        read_swf(path)


def test_file_named_gz_that_is_not_gzip_is_refused(log_file):
    with pytest.raises(TraceError, match=r"named \.gz but not gzip"):
        read_swf(log_file(GOOD, name="mine.swf.gz"))


def test_name_is_the_file_without_its_endings():
    assert log_name(Path("folder") / "KTH-SP2-1996-2.1-cln.swf.gz") == "KTH-SP2-1996-2.1-cln"
    assert log_name("mine.swf") == log_name("mine.gz") == log_name("mine") == "mine"


@pytest.mark.parametrize("name", ["copy.swf", "copy.swf.gz"])
def test_written_log_reads_back_the_same(tmp_path, name):
    log = read_swf(find_trace("synthetic-256"))
    write_swf(tmp_path / name, log)
    back = read_swf(tmp_path / name)
    assert back.header == log.header
    assert back.records.equals(log.records)


def test_equal_logs_are_written_to_equal_bytes(tmp_path):
    log = read_swf(find_trace("tiny"))
    write_swf(tmp_path / "a.swf.gz", log)
    write_swf(tmp_path / "b.swf.gz", log)
    assert (tmp_path / "a.swf.gz").read_bytes() == (tmp_path / "b.swf.gz").read_bytes()


def test_writing_refuses_what_exists_unless_forced(tmp_path):
    log = read_swf(find_trace("tiny"))
    path = tmp_path / "mine.swf"
    path.write_text("precious")
    with pytest.raises(OutputError):
        write_swf(path, log)
    assert path.read_text() == "precious"
    write_swf(path, log, force=True)
    assert len(read_swf(path)) == 8


@given(
    st.lists(
        st.lists(
            st.integers(-(2**40), 2**40) | st.floats(-(2.0**30), 2.0**30, width=32),
            min_size=18,
            max_size=18,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_numbers_survive_writing_and_reading(tmp_path_factory, rows):
    import pandas as pd

    path = tmp_path_factory.mktemp("logs") / "any.swf"
    records = pd.DataFrame(rows, columns=list(FIELDS))
    write_swf(path, SwfLog("any", None, (), records))
    back = read_swf(path).records
    assert np.array_equal(back.to_numpy(dtype=float), records.to_numpy(dtype=float))


def test_workload_laid_out_as_a_log_loads_as_itself(tmp_path):
    workload = load_workload("synthetic-256")
    write_swf(tmp_path / "synthetic-256.swf.gz", log_of(workload, ("; Note: a copy",)))
    back = load_workload(tmp_path / "synthetic-256.swf.gz")
    assert back.to_frame().equals(workload.to_frame())
    assert (back.time_offset, back.unix_start) == (workload.time_offset, workload.unix_start)
    assert back.source.header_values("Note") == ["a copy"]


@pytest.mark.parametrize("header", ["", "; MaxProcs: 4\r"])
def test_a_log_without_line_feeds_is_refused_with_what_to_do(log_file, header):
    with pytest.raises(TraceError, match="carriage returns alone: convert them"):
        read_swf(log_file(f"{header}{GOOD}\r{GOOD}\r"))
