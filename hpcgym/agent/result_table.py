"""Results of agents: `results.csv`, which lies beside the cards of a folder.

One row per agent and scenario. `python scripts/update_agents.py` writes it; nobody edits it.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from hpcgym.base.errors import CardError, unknown_name, unreadable
from hpcgym.base.output import writing

FILE = "results.csv"  # name of the table in a folder of cards


@dataclass(frozen=True, kw_only=True)
class Result:
    """Metrics of one agent on one scenario, to the digits its command prints."""

    scenario: str
    n_weeks: int  # weeks it was run on
    replicas: int  # jittered copies of each week, besides the original
    # Mean over the weeks of the mean over a week's replicas; `sum_bsld` is their sum.
    mean_bsld: float
    sum_bsld: float
    ratio_to_saf: float  # the sum over SAF's
    ratio_low: float | None  # its 95 % interval over weeks; None where there is one week
    ratio_high: float | None
    mean_log_ratio: float  # mean natural log of the paired ratio to SAF
    mean_pp_bsld: float  # mean bounded slowdown per processor
    p99_bsld: float  # mean over the weeks of the 99th percentile
    max_wait_time: int  # longest wait of any job, s
    utilisation: float  # mean over the weeks
    contest: str  # see `hpcgym.agent.contest`
    p999_wait_time: int  # the wait that one job in 1000 exceeds, s; see `hpcgym.evaluation.waits`
    # Its ratio to SAF's; None where SAF has none, as the other ratios below.
    p999_wait_ratio: float | None
    max_wait_ratio: float | None  # ratio of the longest waits
    # Share of jobs that wait longer than the threshold; None without one.
    share_beyond_threshold: float | None
    share_beyond_ratio: float | None  # its ratio to SAF's
    # Ratio of sums to its own mean action, held, and the ends of its interval; None of agents that
    # are rules, as what follows. See `hpcgym.evaluation.looks`.
    to_mean: float | None = None
    to_mean_low: float | None = None
    to_mean_high: float | None = None
    to_shuffled: float | None = None  # likewise to its own actions, shuffled in time
    to_shuffled_low: float | None = None
    to_shuffled_high: float | None = None
    command: str = ""  # what printed them

    @property
    def looks(self) -> bool | None:
        """Whether it is surely better than both; None where nobody has tried."""
        if self.to_mean is None:
            return None
        ends = (self.to_mean_high, self.to_shuffled_high)
        return all(end is not None and end < 1 for end in ends)

    @property
    def ratio_text(self) -> str:
        """The ratio to SAF as tables show it, with its interval if it has one."""
        low, high = self.ratio_low, self.ratio_high
        return f"{self.ratio_to_saf:.3f}" + ("" if low is None else f" [{low:.3f}, {high:.3f}]")

    def control_text(self, name: str) -> str:
        """Return the ratio to a control, "to_mean" or "to_shuffled", with its interval."""
        value, low, high = (getattr(self, name + end) for end in ("", "_low", "_high"))
        return f"{value:.3f}" + ("" if low is None else f" [{low:.3f}, {high:.3f}]")

    def wait_ratio_text(self, name: str) -> str:
        """One of `WAIT_RATIOS` as tables show it; "-" where SAF has none."""
        value = getattr(self, name)
        return "-" if value is None else f"{value:.3f}"


WAIT_RATIOS = {
    "p999_wait_ratio": "p99.9 wait",
    "max_wait_ratio": "longest wait",
    "share_beyond_ratio": "jobs beyond the threshold",
}
"""Ratios of long waits to SAF's: the field of `Result`, and what it is called."""

COLUMNS = ("agent", *(field.name for field in fields(Result)))
_TYPES = {field.name: str(field.type) for field in fields(Result)}
_READ = {"int": (int, "a whole number"), "float": (float, "a number")}


def read_results(folder: Path) -> dict[str, tuple[Result, ...]]:
    """Read the results in a folder of cards: by agent, one per scenario, sorted by scenario.

    Raises:
        CardError: A column is unknown or missing, or a cell has another type; the message names the
            file, the line and the column.
    """
    path, results = folder / FILE, dict[str, tuple[Result, ...]]()
    if not path.exists():
        return results
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            _check_columns(rows.fieldnames or ())
            for row in rows:
                if None in row or None in row.values():
                    n_cells = len(rows.fieldnames or ())
                    raise CardError(f"line {rows.line_num}: a row has {n_cells} cells")
                cells = {key: _cell(key, text, rows.line_num) for key, text in row.items()}
                agent = cells.pop("agent")
                results[agent] = (*results.get(agent, ()), Result(**cells))
    except OSError as error:
        raise CardError(unreadable(path, error)) from None
    except (CardError, UnicodeDecodeError, csv.Error) as error:
        raise CardError(f"{path}: {error}") from None
    return results


def write_results(folder: Path, results: Mapping[str, Result]) -> None:
    """Write one new result of each agent, in place of its result on the same scenario."""
    table = read_results(folder)
    for agent, result in results.items():
        by_scenario = {row.scenario: row for row in (*table.get(agent, ()), result)}
        table[agent] = tuple(by_scenario[name] for name in sorted(by_scenario))
    _write(folder, table)


def forget_results(folder: Path, agent: str) -> None:
    """Remove the results of an agent that is another one from now on."""
    table = read_results(folder)
    if table.pop(agent, None) is not None:
        _write(folder, table)


def _write(folder: Path, table: Mapping[str, tuple[Result, ...]]) -> None:
    """Write a whole table, sorted by agent."""
    with writing(folder / FILE, force=True) as path, path.open("w", newline="") as file:
        rows = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        rows.writeheader()
        for agent in sorted(table):
            rows.writerows({"agent": agent, **asdict(result)} for result in table[agent])


def _check_columns(columns: tuple[str, ...] | list[str] | Any) -> None:
    for column in columns:
        if column not in COLUMNS:
            raise CardError(unknown_name("column", column, COLUMNS))
    missing = [column for column in COLUMNS if column not in columns]
    if missing:
        raise CardError(f"{', '.join(missing)} missing")


def _cell(column: str, text: str, line: int) -> Any:
    kind, _, optional = _TYPES.get(column, "str").partition(" | ")
    if kind == "str" or (optional and not text):
        return text or None
    convert, words = _READ[kind]
    try:
        return convert(text)
    except ValueError:
        raise CardError(f"line {line}: {column} must be {words}, got {text!r}") from None
