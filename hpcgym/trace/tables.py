"""Read a table of jobs, CSV or Parquet, as a log: one row a job, columns by name, times in s.

An empty cell and -1 mean unknown, as in the Standard Workload Format. Decimals of times are kept
here, and rounded by the cleaning.

Source: Specification, section 13, "Request".
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import TraceError, unknown_name
from hpcgym.core import columns as job_columns
from hpcgym.trace.packing import PACKINGS, read_bytes, unpacked_name
from hpcgym.trace.parquet import read_parquet
from hpcgym.trace.schedule_table import jobs_of
from hpcgym.trace.swf import FIELDS, LARGEST_NUMBER, BadLine, SwfLog, per_processor

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", *(f".csv{packing}" for packing in PACKINGS), ".parquet")
"""Endings of a file name that make it a table of jobs."""


class Column(NamedTuple):
    """What a column of numbers may hold: the least, what an empty cell means, decimals or not."""

    least: int
    default: int | None
    whole: bool = True


NUMBERS = {
    "job_id": Column(1 - LARGEST_NUMBER, None),
    "submit_time": Column(0, None, whole=False),
    "wait_time": Column(-1, -1, whole=False),
    "start_time": Column(-1, -1, whole=False),
    "run_time": Column(-1, -1, whole=False),
    "requested_time": Column(-1, -1, whole=False),
    "used_memory_kb": Column(-1, -1),
    "chunks": Column(1, None),
    "cpus": Column(1, 1),
}
FURTHER = {key: column for key, column in job_columns.COLUMNS.items() if not column.swf}
"""Columns that SWF does not have."""

NUMBERS |= {
    key: Column(1 - LARGEST_NUMBER if column.least is None else column.least, column.default)
    for key, column in FURTHER.items()
    if not column.is_flag and not column.names and key != "partition"
}
NUMBERS |= {key: NUMBERS["job_id"]._replace(default=-1) for key in job_columns.referring(FURTHER)}
FLAGS = tuple(key for key, column in FURTHER.items() if column.is_flag)
CHOICES = tuple(key for key, column in FURTHER.items() if column.names)
NAMES = ("user", "group", "executable", "queue")
REQUIRED = ("job_id", "submit_time", "run_time", "requested_time", "chunks")
COLUMNS = (*NUMBERS, *FLAGS, *CHOICES, "partition", *NAMES)

SPANS = ("wait_time", "run_time", "requested_time", "think_time")
"""Columns that may hold a span as pandas writes it, such as `0 days 02:00:00`, in place of s."""

_NO_NAME = re.compile(r"|Unnamed: \d+(\.\d+)?|__index_level_\d+__")
"""What pandas calls a column without a name."""

_NO_VALUE = ("nan", "NaN", "NaT", "<NA>")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_SPAN = re.compile(r"(\d{1,9} days?)?,? ?\+?(\d{1,9}:\d\d:\d\d(\.\d+)?)?")
_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def recognises(head: str) -> bool:
    """Tell whether the first line names columns of jobs, the id and one more at least."""
    names = head.partition("\n")[0].replace('"', "").strip()
    given = {name.strip() for name in names.split(_separator(names))}
    return "job_id" in given and len(given & set(COLUMNS)) > 1


def _separator(line: str) -> str:
    """Return what stands between the names of columns: a comma, or what some programs write."""
    return max(",;\t|", key=line.count)


def read_table(path: str | Path, *, on_bad_line: str = "raise") -> SwfLog:
    """Read a table of jobs; `job_id, submit_time, run_time, requested_time, chunks` are needed.

    There may also be `cpus`, `gpus` and `memory_mb` of a chunk, `spread` and `exclusive` (true or
    false), `partition` by name, and `user`, `group`, `executable` and `queue`, as numbers or names.
    `wait_time` is the wait that was recorded, and `start_time` states it as the start.
    `used_memory_kb` is what the whole job used, and only said.
    `after` is the id of the job before a job, with `think_time` between them; `condition` what of
    that job it waits for, "end", "success" or "failure"; `fails` whether a job fails though it ends
    by itself; `eligible` the instant from which it may be scheduled. A schedule that hpcgym wrote
    is read as the table of its jobs. `on_bad_line="drop"` leaves
    rows with an error out and lists them in `bad_lines`.

    Raises:
        TraceError: The file cannot be read, a column is missing or unknown, or a value is wrong;
            the message names file, line (Parquet: row, from 1) and column. Or the file is Parquet,
            and pyarrow is not installed.
    """
    if on_bad_line not in ("raise", "drop"):
        raise TraceError(f'on_bad_line={on_bad_line!r}; allowed: "raise", "drop"')
    path = Path(path)
    is_csv = path.suffix != ".parquet"
    frame = _read_csv(path) if is_csv else read_parquet(path)
    frame.columns = [str(column).strip() for column in frame.columns]
    frame = _without_index(frame)
    frame, reading = jobs_of(path, frame, COLUMNS)
    _check_columns(path, frame)
    frame.index += 2 if is_csv else 1
    frame = frame[frame.notna().any(axis=1)]  # without blank lines
    lines = frame.index.to_numpy()
    columns, faults = _parsed(frame)
    if "start_time" in frame:
        columns["wait_time"] = _waits(columns["submit_time"], columns["start_time"], faults)
    left_out = {key for key, column in FURTHER.items() if column.optional and key not in frame}
    columns = {key: values for key, values in columns.items() if key not in left_out}
    columns["processors"] = _processors(columns["chunks"], columns["cpus"], faults)
    bad_lines = tuple(BadLine(int(lines[row]), faults[row]) for row in sorted(faults))
    if bad_lines and on_bad_line == "raise":
        where = f"{path}{':' if is_csv else ': row '}{bad_lines[0].number}"
        more = f" (and {len(bad_lines) - 1} more such rows)" if len(bad_lines) > 1 else ""
        raise TraceError(f"{where}: {bad_lines[0].reason}{more}")
    kept = np.delete(np.arange(len(frame)), sorted(faults))
    if not len(kept):
        raise TraceError(f"{path}: no job in this file")
    columns = {key: values[kept] for key, values in columns.items()}
    log = _as_log(path, columns, lines[kept], bad_lines, _names_of(frame))
    return replace(log, reading=reading)


def _as_log(
    path: Path,
    columns: Mapping[str, Any],
    lines: NDArray[Any],
    bad_lines: tuple[BadLine, ...],
    names: Mapping[str, tuple[str, ...]],
) -> SwfLog:
    """Lay columns out as a log, with what jobs ask of nodes beside it."""
    import pandas as pd

    processors = columns["processors"]
    known = {key: columns[key] for key in FIELDS if key in columns and key != "partition"}
    records = pd.DataFrame({key: known.get(key, np.full(len(processors), -1)) for key in FIELDS})
    records["requested_processors"] = processors
    records["used_memory"] = per_processor(columns["used_memory_kb"], processors)
    further = {key: columns[key] for key in FURTHER if key in columns}
    requests = pd.DataFrame(further, index=lines)
    name = Path(unpacked_name(path)).stem
    return SwfLog(name, path, (), records, bad_lines, requests, names)


def _names_of(frame: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the names that the numbers of columns stand for, where cells have names."""
    columns = {key: frame[key][frame[key].notna()] for key in NAMES if key in frame}
    named = {key: column for key, column in columns.items() if np.isnan(_floats(column)).any()}
    return {key: tuple(_texts(column)[1]) for key, column in named.items()}


def _read_csv(path: Path) -> pd.DataFrame:
    """Read a CSV file as texts; blank lines count, so that a row's line is known."""
    import pandas as pd

    content = read_bytes(path)
    first = content.partition(b"\n")[0].decode("latin-1")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                io.BytesIO(content),
                sep=_separator(first),
                dtype=str,
                encoding="utf-8-sig",
                index_col=False,
                keep_default_na=False,
                na_values=[""],
                skip_blank_lines=False,
                skipinitialspace=True,
            )
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: not a text file in UTF-8: {error}") from None
    except pd.errors.ParserWarning:
        raise TraceError(f"{path}: the rows have more values than the header has names") from None
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        match = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if match is None:
            raise TraceError(f"{path}: not a CSV file: {str(error).strip()}") from None
        what = f"{match[3]} values, yet the header has {match[1]} names"
        raise TraceError(f"{path}:{match[2]}: {what}") from None


def _without_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out columns without a name that say nothing: indexes at the front, and empty ones."""
    kept, is_front = [], True
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        is_front = is_front and _NO_NAME.fullmatch(name) is not None
        counts = is_front and not np.isnan(_floats(column)[~_is_empty(column)]).any()
        if not (_NO_NAME.fullmatch(name) and (counts or _is_empty(column).all())):
            kept.append(position)
    return frame.iloc[:, kept]


def _check_columns(path: Path, frame: pd.DataFrame) -> None:
    """Refuse columns that are missing or unknown, and two of one name."""
    given = [*map(str, frame.columns)]
    for column in given:
        if column == "processors":
            raise TraceError(
                f"{path}: unknown column 'processors'; a table of jobs states them as chunks, of "
                "one cpu each unless there is a column cpus"
            )
        if column not in COLUMNS:  # pandas renames the second `cpus` to `cpus.1`
            raise TraceError(f"{path}: {unknown_name('column', column, COLUMNS)}")
    if {"wait_time", "start_time"} <= set(given):
        raise TraceError(f"{path}: the columns wait_time and start_time say one thing; give one")
    if missing := [column for column in REQUIRED if column not in given]:
        raise TraceError(
            f"{path}: the columns {', '.join(missing)} are missing; it has {', '.join(given)}"
        )


def _parsed(frame: pd.DataFrame) -> tuple[dict[str, NDArray[Any]], dict[int, str]]:
    """Return every column as an array, and what is wrong with each bad row."""
    columns: dict[str, NDArray[Any]] = {}
    faults: dict[int, str] = {}
    for key in COLUMNS:
        if key in frame:
            column = _seconds(frame[key]) if key in SPANS else frame[key]
            columns[key], wrong, allowed = _values(key, column)
        else:
            columns[key], wrong, allowed = _default(key, len(frame)), np.zeros(0, dtype=int), ""
        for row in wrong.tolist():
            text = _text(frame[key].iloc[row])
            came = "empty" if _is_empty(frame[key])[row] else repr(text)
            if key in NUMBERS and _DECIMAL_COMMA.fullmatch(text.strip()):
                came += ", with a decimal comma, where a point is read"
            faults.setdefault(row, f"{key} is {came}; allowed: {allowed}")
    return columns, faults


def _seconds(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column whose spans are seconds; other values stay as they are."""
    import pandas as pd

    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return column.dt.total_seconds()
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column
    texts = (text for text in set(column.dropna()) if isinstance(text, str) and text.strip())
    spans = [text for text in texts if _SPAN.fullmatch(text.strip())]
    known = {text: str(pd.to_timedelta(text.replace(",", "")).total_seconds()) for text in spans}
    return column.replace(known) if known else column


def _values(key: str, column: pd.Series[Any]) -> tuple[NDArray[Any], NDArray[Any], str]:
    """Return a column as an array, the rows with a wrong value, and what is allowed."""
    if key in NUMBERS:
        return _numbers(column, NUMBERS[key])
    if key in FLAGS:
        return _truths(column, is_true=bool(FURTHER[key].default))
    if key in CHOICES:
        return _choices(column, FURTHER[key].names)
    if key in NAMES:
        return _named(column)
    codes, texts = _texts(column)
    return np.array(texts, dtype=object)[codes], np.zeros(0, dtype=int), ""


def _default(key: str, n: int) -> NDArray[Any]:
    if key in FLAGS:
        return np.full(n, bool(FURTHER[key].default))
    if key == "partition":
        return np.full(n, "", dtype=object)
    if key in CHOICES:
        return np.full(n, FURTHER[key].default, dtype=np.int64)
    return np.full(n, NUMBERS[key].default if key in NUMBERS else -1, dtype=np.int64)


def _waits(submit: NDArray[Any], start: NDArray[Any], faults: dict[int, str]) -> NDArray[Any]:
    """Return the waits of jobs by their starts, -1 unknown; note starts before submissions."""
    known = start >= 0
    for row in np.flatnonzero(known & (start < submit)).tolist():
        faults.setdefault(row, f"start_time is {start[row]}, before submit_time, {submit[row]}")
    return np.where(known, np.maximum(start - submit, 0), -1)


def _processors(
    chunks: NDArray[np.int64], cpus: NDArray[np.int64], faults: dict[int, str]
) -> NDArray[np.int64]:
    """Return the cpus of all chunks of each job; note jobs with more than a log may hold."""
    too_many = chunks > (LARGEST_NUMBER - 1) // np.maximum(cpus, 1)  # the product may not fit
    for row in np.flatnonzero(too_many).tolist():
        asked = f"chunks is {chunks[row]}, cpus is {cpus[row]}"
        faults.setdefault(row, f"{asked}; allowed: less than {LARGEST_NUMBER} cpus in all chunks")
    return np.where(too_many, 0, chunks) * cpus


def _numbers(column: pd.Series[Any], kind: Column) -> tuple[NDArray[Any], NDArray[Any], str]:
    column = column.mask(column.isin(_NO_VALUE)) if column.dtype.kind in "OU" else column
    values = _floats(column)
    empty = _is_empty(column)
    with np.errstate(invalid="ignore"):  # a whole number that is below as a float is exact
        good = (values >= kind.least) & (values < LARGEST_NUMBER)
        if kind.whole:
            good &= np.floor(values) == values
    good |= empty & (kind.default is not None)
    values = np.where(good & ~empty, values, kind.default or 0)
    if kind.whole or (np.floor(values) == values).all():
        values = values.astype(np.int64)
    what = "whole numbers" if kind.whole else "seconds"
    return values, np.flatnonzero(~good), f"{what} from {kind.least} to {LARGEST_NUMBER - 1}"


def _truths(column: pd.Series[Any], *, is_true: bool) -> tuple[NDArray[Any], NDArray[Any], str]:
    """Return a column of true and false; `is_true` says what an empty cell means."""
    codes, texts = _texts(column)
    known = _TRUTH | {"": is_true}
    read = [known.get(text.casefold()) for text in texts]
    wrong = np.array([value is None for value in read])[codes]
    return np.array(read, dtype=bool)[codes], np.flatnonzero(wrong), "true, false, 1, 0"


def _choices(
    column: pd.Series[Any], names: tuple[str, ...]
) -> tuple[NDArray[Any], NDArray[Any], str]:
    """Return a column of some names as their places; an empty cell means the first."""
    codes, texts = _texts(column)
    known = {"": 0} | {name: code for code, name in enumerate(names)}
    read = np.array([known.get(text, -1) for text in texts], dtype=np.int64)[codes]
    return np.maximum(read, 0), np.flatnonzero(read < 0), ", ".join(names)


def _named(column: pd.Series[Any]) -> tuple[NDArray[Any], NDArray[Any], str]:
    """Return a column of numbers, or of names, numbered from 1 by first appearance."""
    values, empty = _floats(column), _is_empty(column)
    if not (np.isnan(values) & ~empty).any():
        return _numbers(column, Column(-1, -1))
    codes, _ = _texts(column[~empty])
    numbers = np.full(len(column), -1)
    numbers[~empty] = codes + 1
    return numbers, np.zeros(0, dtype=int), ""


def _floats(column: pd.Series[Any]) -> NDArray[np.float64]:
    """Return a column as float64, NaN where a cell is no finite number."""
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(column.dtype):
        if pd.api.types.is_datetime64_any_dtype(column.dtype):
            return np.full(len(column), np.nan)
        cells, distinct = pd.factorize(column, use_na_sentinel=False)  # texts are slow to read
        numbers = pd.to_numeric(pd.Series(distinct, dtype=object), errors="coerce")
        column = numbers.iloc[cells]
    values = np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))
    values[~np.isfinite(values)] = np.nan
    return values


def _is_empty(column: pd.Series[Any]) -> NDArray[np.bool_]:
    return np.array(column.isna(), dtype=bool)


def _texts(column: pd.Series[Any]) -> tuple[NDArray[Any], list[str]]:
    """Return the number of each cell's text, and the texts by number; empty cells have ""."""
    import pandas as pd

    cells, distinct = pd.factorize(column, use_na_sentinel=False)
    texts = ["" if pd.isna(value) else _text(value) for value in distinct]
    codes, kept = pd.factorize(np.array(texts, dtype=object))  # stripped, some are equal
    return codes[cells], list(kept)


def _text(value: object) -> str:
    """Return a cell as a person wrote it; in Parquet whole numbers may be floats."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
