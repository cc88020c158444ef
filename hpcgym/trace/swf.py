"""Read and write the Standard Workload Format: one job a line, 18 numbers, comments after `;`.

Source: The Standard Workload Format, version 2.2; specification, section 1, "Reading SWF".
"""

from __future__ import annotations

import gzip
import io
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as field_of
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import TraceError
from hpcgym.base.output import writing
from hpcgym.core.columns import COLUMNS
from hpcgym.trace.packing import read_bytes, unpacked_name

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.core.workload import Workload

FIELDS = (
    *("job_id", "submit_time", "wait_time", "run_time", "allocated_processors", "average_cpu_time"),
    *("used_memory", "requested_processors", "requested_time", "requested_memory", "status"),
    *("user", "group", "executable", "queue", "partition", "preceding_job", "think_time"),
)
"""The 18 fields of the format, in order; -1 means unknown in each."""

CANCELLED = 5  # the status of cancelled jobs
NEVER_HELD = "never held processors"  # why a row of 0 s without allocated processors is no job

GWF_FIELDS = 29
"""Fields of a line in the format of the Grid Workloads Archive; its first 16 are those of SWF."""

LARGEST_NUMBER = 2**53  # numbers in a log stay below this, so that float64 holds whole ones exactly


NAMED_BY: list[Callable[[str], str]] = []
"""Say what a text is that is no log in SWF, "" = not known; `accounting.formats` adds its own."""

GUESSED_SIZE = "the fewest on which the jobs fit as recorded"
"""What a note in the header says of a MaxProcs that nobody stated."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SWF_KEY = re.compile(r"^\s*;+\s*(?:Version|Max\w+|Computer|UnixStartTime)\s*:", re.M | re.I)
_HEADER_KEY = re.compile(r"\s*;+\s*([A-Za-z][A-Za-z0-9 _-]*?)\s*:\s*(.*?)\s*")
_SHOWN = 60
_HEAD = 65_536  # bytes of a file by which a log in SWF is told from what is none


@dataclass(frozen=True)
class BadLine:
    """A line (counted from 1) that is neither a comment nor a job, and what is wrong with it."""

    number: int
    reason: str


@dataclass(frozen=True, eq=False)
class SwfLog:
    """A log as its file states it, nothing cleaned.

    Attributes:
        name: What tables and errors call it: the file's name without `.swf`, `.gz` and the like.
        path: The file, or None for a log made in memory.
        header: The comment lines as found, without line ends.
        records: One row per job in file order, columns `FIELDS`; int64, or float64 where the file
            has decimals.
        bad_lines: Lines dropped by `on_bad_line="drop"`.
        requests: What jobs ask of nodes, where the log is a table that says so: the columns of
            `hpcgym.core.columns` that no field of SWF states, partitions by name, "" = the first.
            Its index is each record's line, or row in a Parquet file.
        names: Names of the numbers 1, 2, ... in a column of `records`, such as "user".
        reading: What was read, left out and taken for granted, where the file is accounting or
            has more fields than SWF.
    """

    name: str
    path: Path | None
    header: tuple[str, ...]
    records: pd.DataFrame
    bad_lines: tuple[BadLine, ...] = ()
    requests: pd.DataFrame | None = None
    names: Mapping[str, tuple[str, ...]] = field_of(default_factory=dict)
    reading: str = ""

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return f"SwfLog({self.name!r}, {len(self)} jobs)"

    def named(self, column: str) -> NDArray[Any]:
        """Return each job's user, group, executable, queue or partition by name; "" = unknown.

        A number without a name is its own.
        """
        if column == "partition" and self.requests is not None and column not in self.names:
            return np.array(self.requests["partition"], dtype=object)
        known = dict(enumerate(self.names.get(column, ()), start=1)) or self._header_names(column)
        numbers, places = np.unique(self.records[column].to_numpy(), return_inverse=True)
        texts = [known.get(number, str(number) if number >= 0 else "") for number in numbers]
        return np.array(texts, dtype=object)[places]

    def _header_names(self, column: str) -> dict[int, str]:
        """Return the names that comments such as "; User: 1 ana" give to numbers."""
        pairs = (text.split(maxsplit=1) for text in self.header_values(column))
        return {int(pair[0]): pair[1] for pair in pairs if len(pair) == 2 and pair[0].isdecimal()}

    def header_values(self, key: str) -> list[str]:
        """Return the text of every header line with a key, such as `Note`, in order of the file.

        Keys match in any case, with or without a space after the semicolon, indented or not.
        """
        matches = (_HEADER_KEY.fullmatch(line) for line in self.header)
        return [m[2] for m in matches if m and m[1].casefold() == key.casefold()]

    def header_value(self, key: str) -> str | None:
        """Return the first text that is not empty for a key, such as "Computer", or None."""
        return next((value for value in self.header_values(key) if value), None)

    def header_number(self, key: str) -> int | None:
        """Return the first whole number for a key, such as 338 of "338 (512 total)", or None.

        A text without digits, such as "N/A", is no number.

        Raises:
            TraceError: There are digits, yet no whole number, alone or before " (", or too large a
                one.
        """
        for line, comment in enumerate(self.header):
            named = _HEADER_KEY.fullmatch(comment)
            if named is None or named[1].casefold() != key.casefold():
                continue
            text = re.split(r"\s\(", named[2], maxsplit=1)[0].strip()
            if re.fullmatch(r"[+-]?0*\d{1,16}", text) and abs(int(text)) < LARGEST_NUMBER:
                return int(text)
            if re.search(r"\d", text):
                raise TraceError(
                    f"{self._place_of_comment(line)}: {key} is {_shortened(named[2])!r}; allowed: "
                    f"one whole number below {LARGEST_NUMBER}, then a text in brackets"
                )
        return None

    def _place_of_comment(self, row: int) -> str:
        """Return where a line of the header is, as "file:line"."""
        if self.path is None:
            return f"{self.name}: header line {row + 1}"
        lines = enumerate(_lines_of(self.path), start=1)
        numbers = (number for number, line in lines if line.lstrip().startswith(";"))
        return f"{self.path}:{next(islice(numbers, row, None))}"


def may_be_swf(head: str) -> bool:
    """Tell whether a text is a log in SWF, perhaps a damaged one.

    Its header has a key of SWF, it has comments alone, or most of what spaces part in its first
    line are numbers.

    Example:
        >>> may_be_swf("1 0 -1 x"), may_be_swf("JobID|State"), may_be_swf("; MaxProcs: 4")
        (True, False, True)
    """
    lines = (line.partition(";")[0].split() for line in head.split("\n"))
    first = next(filter(None, lines), [])
    numbers = [text for text in first if _NUMBER.fullmatch(text)]
    return not first or 2 * len(numbers) > len(first) or _SWF_KEY.search(head) is not None


def _what_else(head: str) -> str:
    """Say what a text is that is no log in SWF."""
    said = next(filter(None, (name(head) for name in NAMED_BY)), "")
    return said or (
        f"it begins with {begins_with(head)}, so it is no log in SWF; hpcgym.trace.read_log knows "
        "other formats by their content"
    )


def begins_with(head: str) -> str:
    """Return the beginning of a text's first line, as messages show it."""
    return repr(_shortened(head.strip().partition("\n")[0]))


def read_swf(path: str | Path, *, on_bad_line: str = "raise") -> SwfLog:
    """Read a log in the Standard Workload Format, plain or packed; nothing is cleaned.

    The first bytes of a file say whether it is packed by gzip, bzip2 or xz. `on_bad_line="drop"`
    leaves malformed lines out and lists them in `bad_lines`.

    Raises:
        TraceError: The file is missing, empty, cut short, not text or without a job. Or a line is
            malformed and not dropped: it has other than 18 fields, or something that is no number.
            Where all lines have more, what follows the 18 is not read, and `reading` says so.

    Example:
        >>> from hpcgym.trace import find_trace
        >>> log = read_swf(find_trace("tiny"))
        >>> len(log), log.header_number("MaxProcs")
        (8, 4)
    """
    if on_bad_line not in ("raise", "drop"):
        raise TraceError(f'on_bad_line={on_bad_line!r}; allowed: "raise", "drop"')
    path = Path(path)
    content = read_bytes(path).removeprefix(_BYTE_ORDER_MARK)
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise TraceError(f"{path}:{line}: not a text file, so not a log in SWF")
    header = tuple(_comment_lines(content))
    records = _parse(content)
    bad_lines: tuple[BadLine, ...] = ()
    said = ""
    if records is None:
        lines, bad_lines, n_fields = _sort_out(content)
        if not lines and not may_be_swf(head := content[:_HEAD].decode("latin-1")):
            raise TraceError(f"{path}: {_what_else(head)}")
        if n_fields > len(FIELDS):
            said = f"SWF of {n_fields} fields: those after field {len(FIELDS)} are not read"
        if bad_lines and on_bad_line == "raise":
            more = f" (and {len(bad_lines) - 1} more such lines)" if len(bad_lines) > 1 else ""
            why = f"{bad_lines[0].reason}{more}{_advice(content)}"
            raise TraceError(f"{path}:{bad_lines[0].number}: {why}")
        records = _parse("\n".join(lines).encode())
    if records is None or records.empty:
        dropped = f"; {len(bad_lines)} malformed lines were dropped" if bad_lines else ""
        raise TraceError(f"{path}: no job in this file{dropped}{_advice(content)}")
    return SwfLog(log_name(path), path, header, records, bad_lines, reading=said)


def write_swf(path: str | Path, log: SwfLog, *, force: bool = False) -> None:
    """Write a log in the Standard Workload Format, gzipped where the name ends in `.gz`.

    Equal logs give equal bytes: the gzip header carries no time and no name.

    Raises:
        OutputError: The file exists and `force` is False, or it cannot be written.
    """
    text = io.StringIO()
    for line in log.header:
        text.write(line + "\n")
    log.records.to_csv(text, sep=" ", header=False, index=False, lineterminator="\n")
    content = text.getvalue().encode("latin-1", "replace")
    path = Path(path)
    if path.suffix == ".gz":
        content = gzip.compress(content, compresslevel=9, mtime=0)
    with writing(path, force=force) as target:
        target.write_bytes(content)


def log_of(workload: Workload, header: Sequence[str] = ()) -> SwfLog:
    """Lay a workload out as a log, with submit times on the log's own clock; other fields are -1.

    `header` are further comment lines, with their semicolon.

    Example:
        >>> from hpcgym.trace import load_workload
        >>> log_of(load_workload("tiny")).header_number("MaxProcs")
        4
    """
    import pandas as pd

    known = {COLUMNS[key].swf: values for key, values in workload.columns().items()}
    known["submit_time"] = workload.submit_time + workload.time_offset
    if workload.after is not None:
        named = workload.after >= 0
        known["preceding_job"] = workload.stated_columns()["after"]
        think_time = 0 if workload.think_time is None else workload.think_time
        known["think_time"] = np.where(named, think_time, -1)
    records = pd.DataFrame({field: known.get(field, -1) for field in FIELDS})
    sizes: dict[str, str | int] = {
        "Version": "2.2",
        "Computer": workload.name,
        "MaxJobs": len(workload),
        "MaxRecords": len(workload),
        "MaxProcs": workload.machine_processors,
    }
    if workload.unix_start is not None:
        sizes["UnixStartTime"] = workload.unix_start - workload.time_offset
    lines = tuple(f"; {key}: {value}" for key, value in sizes.items())
    return SwfLog(workload.name, None, (*lines, *header), records)


def per_processor(memory_kb: Any, processors: Any) -> NDArray[np.int64]:
    """Return memory of jobs in KB for each processor, rounded up, -1 where none is stated.

    Example:
        >>> per_processor(np.array([100, -1, 0]), np.array([3, 3, 3]))
        array([34, -1, -1])
    """
    known = memory_kb > 0
    return np.where(known, -(-memory_kb // np.maximum(processors, 1)), -1).astype(np.int64)


def log_name(path: str | Path) -> str:
    """Return the name of a log: its file's name without `.swf`, and `.gz`, `.bz2` or `.xz`.

    Example:
        >>> log_name("logs/KTH-SP2-1996-2.1-cln.swf.gz")
        'KTH-SP2-1996-2.1-cln'
    """
    return unpacked_name(path).removesuffix(".swf")


def place_of(log: SwfLog, row: int) -> str:
    """Return where a record is, as "file:line"; the file is read again, for messages of errors."""
    if log.path is None:
        return f"{log.name}: row {row + 1}"
    if log.requests is not None:
        between = ": row " if log.path.suffix == ".parquet" else ":"
        return f"{log.path}{between}{log.requests.index[row]}"
    dropped = {bad.number for bad in log.bad_lines}
    lines = (
        number
        for number, line in enumerate(_lines_of(log.path), start=1)
        if line.partition(";")[0].strip() and number not in dropped
    )
    return f"{log.path}:{next(islice(lines, row, None))}"


def _advice(content: bytes) -> str:
    """Say so if a log that cannot be read has no line feeds."""
    if b"\n" in content or b"\r" not in content:
        return ""
    return "; its lines end in carriage returns alone: convert them to line feeds"


def _lines_of(path: Path) -> list[str]:
    """Return the lines of a log's text."""
    return read_bytes(path).removeprefix(_BYTE_ORDER_MARK).decode("latin-1").split("\n")


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _comment_lines(content: bytes) -> Iterator[str]:
    """Yield the lines that begin with a semicolon, blanks aside, anywhere in the file."""
    semicolon = content.find(b";")
    while semicolon >= 0:
        start = content.rfind(b"\n", 0, semicolon) + 1
        end = content.find(b"\n", semicolon)
        end = len(content) if end < 0 else end
        if not content[start:semicolon].decode("latin-1").strip():
            yield content[start:end].decode("latin-1").rstrip("\r")
        semicolon = content.find(b";", end)


def _parse(content: bytes) -> pd.DataFrame | None:
    """Parse all lines at once with pandas' C reader; return None if any of them is malformed."""
    import pandas as pd

    if content.count(b"\r") != content.count(b"\r\n"):
        return None  # pandas would take a carriage return among the fields for the end of a line
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of float_precision
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.BytesIO(content),
                sep=r"\s+",
                comment=";",
                header=None,
                names=(*FIELDS, "excess"),
                index_col=False,
                quoting=3,
                na_values=[""],
                keep_default_na=False,
                encoding="latin-1",
                low_memory=False,
                float_precision="round_trip",  # pandas before 3.1 is off by the last bit without
                engine="c",
            )
    except pd.errors.EmptyDataError:
        return pd.DataFrame(columns=list(FIELDS))
    except (pd.errors.ParserError, pd.errors.ParserWarning, OverflowError):
        return None
    if frame.pop("excess").notna().any():
        return None
    for field in FIELDS:
        values = frame[field].to_numpy()
        if values.dtype.kind not in "if" or not len(values):
            return None if len(values) else frame
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            return None
        if values.min() <= -LARGEST_NUMBER or values.max() >= LARGEST_NUMBER:
            return None
        if values.dtype.kind == "f" and (values == np.floor(values)).all():
            frame[field] = values.astype(np.int64)
    return frame


def _sort_out(content: bytes) -> tuple[list[str], tuple[BadLine, ...], int]:
    """Separate good lines from malformed: longer ones are good if none has 18 fields, or 36."""
    lines = content.decode("latin-1").split("\n")
    rows = [(number, line.partition(";")[0].split()) for number, line in enumerate(lines, start=1)]
    lengths = {len(fields) for _, fields in rows if len(fields) >= len(FIELDS)}
    most = most_fields(set() if _advice(content) else lengths)
    good: list[str] = []
    bad: list[BadLine] = []
    for number, fields in rows:
        kept = fields[: len(FIELDS)] if most > len(FIELDS) else fields
        if kept and (reason := _fault(kept)):
            bad.append(BadLine(number, reason))
        elif kept:
            good.append(" ".join(kept))
    return good, tuple(bad), most


def most_fields(lengths: Collection[int]) -> int:
    """Return how many fields a line may have, of the numbers that lines of 18 and more have.

    Example:
        >>> most_fields({20, 21}), most_fields({18, 20}), most_fields({36})
        (21, 18, 18)
    """
    most = max(lengths, default=0)
    is_long = len(FIELDS) < most < 2 * len(FIELDS)  # no two jobs in a line
    return most if is_long and not {len(FIELDS), GWF_FIELDS} & {*lengths} else len(FIELDS)


def wrong_length(n_fields: int) -> str:
    """Say that a line has a wrong number of fields."""
    return f"{n_fields} fields where the format has {len(FIELDS)}"


def _fault(fields: list[str]) -> str | None:
    """Return what is wrong with the fields of one line, or None."""
    for position, text in enumerate(fields[: len(FIELDS)], start=1):
        if not _NUMBER.fullmatch(text):
            field = f"field {position} ({FIELDS[position - 1]})"
            what = f"{field} is {_shortened(text)!r}, which is not a number"
            inner = [match[0] for match in _NUMBER.finditer(text)]
            touching = len(inner) > 1 and "".join(inner) == text
            return f"{what}; do two fields touch?" if touching else what
        if abs(float(text)) >= LARGEST_NUMBER:
            shown = _shortened(text)
            return f"field {position} ({FIELDS[position - 1]}) is {shown}, beyond {LARGEST_NUMBER}"
    return wrong_length(len(fields)) if len(fields) != len(FIELDS) else None
