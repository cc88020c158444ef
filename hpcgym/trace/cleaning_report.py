"""What the cleaning of a log did, step by step, and as text.

Source: Specification, section 1, "Reading SWF".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hpcgym.base.errors import TraceError, unknown_name
from hpcgym.base.text_table import printable

StepAction = Literal["dropped", "changed", "kept", "ignored"]

MOST_CUT = 0.01  # share of a log's work from which on cutting runs at their requests is warned of
OVER_REQUEST = "run over request"  # the step that finds jobs that ran longer than they asked for


@dataclass(frozen=True)
class CleaningStep:
    """What one step did, with how many jobs.

    "kept" means worth knowing, nothing done; "ignored", that the log states what no simulation of
    it takes into account.
    """

    name: str
    action: StepAction
    jobs: int
    detail: str


@dataclass(frozen=True)
class CleaningReport:
    """What the cleaning of one log dropped, changed and noticed, in order; it prints.

    Attributes:
        records: Lines of jobs in the file, malformed ones included.
        jobs: Jobs that remain.
        widest: Processors of the widest job, those larger than the machine included.
        machine_processors: Processors of the machine.
        machine_source: Where that number comes from.
        time_offset: Submit time that became 0, s on the log's clock.
        cut_work: Share of the work that is lost where jobs are killed at their requests.
        steps: Every step, also those that met no job.
        reading: What was read, left out and taken for granted, where the log is accounting.
    """

    name: str
    records: int
    jobs: int
    widest: int
    machine_processors: int
    machine_source: str
    time_offset: int
    cut_work: float
    steps: tuple[CleaningStep, ...]
    reading: str = ""

    @property
    def cut_warning(self) -> str | None:
        """Say what is lost where jobs are killed at their requests, if it is above `MOST_CUT`."""
        if self.cut_work <= MOST_CUT:
            return None
        return (
            f"{self.name}: {self.count(OVER_REQUEST)} jobs ran longer than they requested; killing "
            f"them at the request takes {self.cut_work:.1%} of the log's work; simulate "
            "--no-kill (in Python and in scenarios kill_at_limit=False) lets them run"
        )

    def count(self, name: str) -> int:
        """Return how many jobs met a step, such as "no run time".

        Raises:
            TraceError: No step has that name.
        """
        for step in self.steps:
            if step.name == name:
                return step.jobs
        raise TraceError(unknown_name("cleaning step", name, [step.name for step in self.steps]))

    def __str__(self) -> str:
        lines = [
            f"{printable(self.name)}: {self.jobs} of {self.records} jobs kept",
            f"  machine    {self.machine_processors} processors ({self.machine_source})",
            f"  time 0     {self.time_offset} s on the log's clock",
        ]
        width = len(str(self.records))
        lines += [
            f"  {step.action:<10} {step.jobs:>{width}}  {step.name}: {step.detail}"
            for step in self.steps
            if step.jobs and not (step.name == OVER_REQUEST and self.cut_warning)
        ]
        return "\n".join(lines)
