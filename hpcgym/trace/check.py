"""Check a person's own log: what it has, what it lacks, and what cleaning would drop."""

from __future__ import annotations

from dataclasses import dataclass

from hpcgym.base.errors import TraceError
from hpcgym.base.text_table import printable
from hpcgym.trace.clean import clean
from hpcgym.trace.cleaning_report import CleaningReport
from hpcgym.trace.swf import FIELDS, SwfLog

SHOWN_LINES = 5  # number of malformed lines that are printed

_HEADER = ("Computer", "MaxProcs", "MaxNodes", "MaxRuntime", "UnixStartTime", "TimeZoneString")
_LACKS = {
    "wait_time": "wait times: the submit time is taken as it stands, though it may be the start",
    "requested_time": (
        "requested times: by default the run time stands in, which shows a job's end to the "
        'scheduler; missing_request="tsafrir" (--missing-request) makes synthetic ones'
    ),
    "requested_processors": "requested processors: the allocated ones are taken",
    "user": "users: no policy can learn from a user's past",
}
_LACKS_OF_HEADER = {
    "UnixStartTime": "UnixStartTime: the hour of the week is not known",
    "MaxRuntime": "MaxRuntime: the longest request stands in where a limit is needed",
}


@dataclass(frozen=True)
class FieldContent:
    """How many jobs have a field, and its range of known values (None where no job does)."""

    name: str
    known: int
    smallest: float | None
    largest: float | None


@dataclass(frozen=True)
class LogCheck:
    """What a log has, what it lacks, and what cleaning would drop or change; it prints.

    Attributes:
        fields: The content of each of the 18 fields.
        header: What the header says of machine and calendar, None where it says nothing.
        lacks: What no job has, or the header lacks, and what follows from that.
        cleaning: The report of cleaning with default options, or None where that fails.
        refusal: Why it fails, or None.
        dependencies: What fields 17 and 18 say of jobs that are after others.
    """

    log: SwfLog
    fields: tuple[FieldContent, ...]
    header: dict[str, str | None]
    lacks: tuple[str, ...]
    cleaning: CleaningReport | None
    refusal: str | None
    dependencies: str | None = None

    def __str__(self) -> str:
        n_jobs, bad_lines = len(self.log), self.log.bad_lines
        lines = [f"{printable(self.log.name)}: {n_jobs} jobs", ""]
        lines.append(f"{'field':<21}{'known':>8}{'smallest':>14}{'largest':>14}")
        for field in self.fields:
            if field.known:
                ends = f"{field.smallest:>14.10g}{field.largest:>14.10g}"
                lines.append(f"{field.name:<21}{field.known / n_jobs:>8.1%}{ends}")
            else:
                lines.append(f"{field.name:<21}{'none':>8}")
        lines += ["", *(f"{k:<21}{v or '(not in the header)'}" for k, v in self.header.items())]
        if self.dependencies is not None:
            lines += ["", self.dependencies]
        lines += ["", *(f"lacks {text}" for text in self.lacks)]
        if bad_lines:
            plural = "s" if len(bad_lines) > 1 else ""
            lines.append(f"{len(bad_lines)} malformed line{plural}, refused unless dropped:")
            lines += [f"  line {bad.number}: {bad.reason}" for bad in bad_lines[:SHOWN_LINES]]
        lines += ["", str(self.cleaning or f"It cannot be simulated as it is: {self.refusal}")]
        if self.cleaning is not None and self.cleaning.cut_warning:
            lines.append(f"warning: {self.cleaning.cut_warning}")
        return "\n".join(lines)

    def dropped(self) -> dict[str, int]:
        """Return how many rows each step drops; none where the log cannot be cleaned."""
        steps = () if self.cleaning is None else self.cleaning.steps
        return {step.name: step.jobs for step in steps if step.action == "dropped"}


def check_log(log: SwfLog, *, machine_processors: int | None = None) -> LogCheck:
    """Check a log before it is simulated; the machine's size is by default the header's.

    Read the log with `on_bad_line="drop"`, so that malformed lines are listed too.

    Source: Specification, section 1, "Reading SWF".

    Example:
        >>> from hpcgym.trace import find_trace, read_swf
        >>> check_log(read_swf(find_trace("tiny"))).cleaning.jobs
        8
    """
    fields = tuple(_content(log, name) for name in FIELDS)
    unknown = {field.name for field in fields if field.known == 0}
    lacks = [text for name, text in _LACKS.items() if name in unknown]
    lacks += [text for key, text in _LACKS_OF_HEADER.items() if _lacks(log, key)]
    cleaning, refusal = None, None
    try:
        cleaning = clean(log, machine_processors=machine_processors)[1]
    except TraceError as error:
        refusal = str(error)
    header = {key: log.header_value(key) for key in _HEADER}
    said = _dependencies(log, machine_processors)
    return LogCheck(log, fields, header, tuple(lacks), cleaning, refusal, said)


def _dependencies(log: SwfLog, machine_processors: int | None) -> str | None:
    """Count the jobs that are after others, or say why they cannot be; None if there are none."""
    if log.requests is not None or not (named := log.records["preceding_job"] > 0).any():
        return None
    thinks = int((log.records["think_time"][named] > 0).sum())
    text = f"{int(named.sum())} jobs are after another job, {thinks} of them by a think time"
    try:
        report = clean(log, machine_processors=machine_processors, dependencies=True)[1]
    except TraceError as error:
        return f"{text}; dependencies cannot be simulated: {error}"
    n_kept = report.count("job before it")
    return f"{text}; {n_kept} remain after cleaning (simulate --dependencies start)"


def _lacks(log: SwfLog, key: str) -> bool:
    """Tell whether the header states no number for a key; a malformed one is for the cleaning."""
    try:
        return log.header_number(key) is None
    except TraceError:
        return False


def _content(log: SwfLog, name: str) -> FieldContent:
    """Find what one field holds; 0 processors and a request of 0 s count as unknown, like -1."""
    values = log.records[name].to_numpy()
    zero_is_known = not name.endswith("processors") and name != "requested_time"
    known = values[values >= 0] if zero_is_known else values[values > 0]
    if len(known) == 0:
        return FieldContent(name, 0, None, None)
    return FieldContent(name, len(known), float(known.min()), float(known.max()))
