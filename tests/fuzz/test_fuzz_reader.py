"""Drawn and damaged logs: read as an independent reader reads them, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import reference_swf
from fuzzing import changes, damaged, many
from hpcgym.base.errors import HpcgymError, TraceError
from hpcgym.trace import find_trace, load_workload, read_swf

TINY = find_trace("tiny").read_bytes()
JOB = b" 0" * 18
NUMBERS = (
    *("0", "1", "-1", "10", "20", "+3", "007", "1e1", "1E2", "2.5", ".5", "5.", "-0.25", "1e-3"),
    *(str(2**53 - 1), str(-(2**53) + 1), "9007199254740991.0", "1e15"),
)
OTHERS = (
    *("nan", "NaN", "inf", "-", "+", ".", "e", "1e", "1e+", "--1", "1-1", "1.2.3", "0x1", "1_0"),
    *("True", "NA", "None", '"1"', "'1'", "1,5", "\xb2", "\xbd", "1\x1f2", "1e400", "1d5", "1j"),
    *("9" * 30, str(2**53), str(-(2**53)), "1e16", "9" * 400, "infinity", "1f", "#", "\\", "\x7f"),
)
BLANKS = (" ", " ", " ", "  ", "\t", "\xa0", "\x0b", "\x0c", "\r", "\x1f")
ENDS = ("\n", "\n", "\n", "\r\n", "\n\n", " \n", " ; a remark\n", ";\n", "\r", "")
COMMENTS = ("; MaxProcs: 4\n", ";MaxNodes:8\r\n", "  ; Note: a;b\n", ";\n", ";;; x\n", "; \xff\n")


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Draw a log, most of whose lines are good."""
    text = draw(st.sampled_from(("", "", "\xef\xbb\xbf", "\xef\xbb")))
    fields = st.sampled_from(NUMBERS * 20 + OTHERS)
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.integers(0, 3)) == 0:
            text += draw(st.sampled_from(COMMENTS))
            continue
        n = draw(st.sampled_from((18,) * 12 + (0, 1, 17, 19, 36)))
        row = draw(st.lists(fields, min_size=n, max_size=n))
        text += draw(st.sampled_from(BLANKS + ("",) * 20))
        between = draw(st.sampled_from(BLANKS))
        text += between.join(row) + draw(st.sampled_from(ENDS))
    return text.encode("latin-1")


def check(content: bytes, folder: Path) -> None:
    """Read a log both ways: the same numbers, malformed lines and comments."""
    path = folder / "a.swf"
    path.write_bytes(content)
    expected = reference_swf.read(content)
    if not content or expected is None or not expected.records:
        for how in ("raise", "drop"):
            with pytest.raises(TraceError):
                read_swf(path, on_bad_line=how)
        return
    if expected.bad_lines:
        with pytest.raises(TraceError, match=f"a.swf:{expected.bad_lines[0]}: "):
            read_swf(path)
    log = read_swf(path, on_bad_line="drop")
    assert [bad.number for bad in log.bad_lines] == expected.bad_lines
    assert list(log.header) == expected.comments
    np.testing.assert_allclose(log.records.to_numpy(dtype=float), expected.records, rtol=1e-15)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the logs."""
    return tmp_path_factory.mktemp("logs")


@many(12)
@example(content=b"%b\r%b\n" % (JOB, JOB))
@example(content=b" nan\n%b\n" % JOB)
@given(content=logs())
def test_a_drawn_log_is_read_as_the_independent_reader_does(folder: Path, content: bytes) -> None:
    check(content, folder)


@many(8)
@given(changes(len(TINY)))
def test_a_damaged_log_is_read_as_the_independent_reader_does(
    folder: Path, changed: list[tuple[str, int, int]]
) -> None:
    check(damaged(TINY, changed), folder)


@many(4)
@given(logs() | changes(len(TINY)).map(lambda changed: damaged(TINY, changed)))
def test_a_workload_is_made_of_any_log_or_it_is_refused(folder: Path, content: bytes) -> None:
    path = folder / "a.swf"
    path.write_bytes(content)
    try:
        workload = load_workload(path, on_bad_line="drop", machine_processors=4)
    except HpcgymError as error:
        assert "\n" not in str(error)
        return
    assert len(workload) > 0
    assert workload.submit_time[0] == 0
    assert (np.diff(workload.submit_time) >= 0).all()
    assert ((workload.processors >= 1) & (workload.processors <= 4)).all()
    assert (workload.run_time >= 0).all()
    assert (workload.requested_time >= 1).all()
