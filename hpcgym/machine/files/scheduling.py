"""Slurm's backfilling as a site has it: `SchedulerParameters` of its configuration.

They are in `slurm.conf`, and in what `scontrol show config` prints.

Source: Specification, section 16, "Slurm's files".
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hpcgym.base.errors import MachineError
from hpcgym.machine.files.priorities import read_cell
from hpcgym.machine.files.records import count_of, text_of

_PAIR = re.compile(r"^[ \t]*Scheduler(Type|Parameters)[ \t]*=[ \t]*([^\s#]*)", re.I | re.M)

READ = {
    "bf_max_job_test": "max_job_test",
    "bf_max_job_user": "max_job_user",
    "bf_max_job_part": "max_job_part",
    "bf_window": "window",
    "bf_resolution": "resolution",
    "bf_interval": "interval",
}
"""Parameters that are keys of the mode `slurm`."""

WITHOUT_EFFECT = (
    *("batch_sched_delay", "bf_continue", "bf_max_time", "bf_yield_interval", "bf_yield_sleep"),
    *("default_queue_depth", "max_rpc_cnt", "max_sched_time", "sched_interval"),
    *("sched_max_job_start", "sched_min_interval"),
)
"""Parameters of how long scheduling takes, and how much of it is done at once."""

NO_LIMIT_AT_0 = (
    *("bf_job_part_count_reserve", "bf_max_job_assoc", "bf_max_job_start", "bf_max_job_user_part"),
    *("bf_min_age_reserve", "bf_min_prio_reserve", "partition_job_depth"),
)
"""Parameters that limit nothing where they are 0; other values are refused."""


def read_backfilling(path: str | Path) -> dict[str, Any]:
    """Read Slurm's backfilling, as keywords of the mode `slurm`."""
    text = text_of(path)
    stated: dict[str, Any] = {}
    said = False
    for pair in _PAIR.finditer(text):
        said, where = True, f"{path}:{text.count(chr(10), 0, pair.start()) + 1}"
        if pair[1].casefold() == "parameters":
            stated |= _parameters(pair[2], where)
        elif pair[2] != "sched/backfill":
            raise MachineError(
                f"{where}: SchedulerType is {pair[2]!r}; allowed: 'sched/backfill'. "
                "What sched/builtin does is backfill 'none'"
            )
    if not said:
        raise MachineError(
            f"{path}: no SchedulerParameters nor SchedulerType; print them by: scontrol show config"
        )
    return stated


def _parameters(text: str, where: str) -> dict[str, float]:
    """Return what the value of SchedulerParameters means."""
    stated: dict[str, float] = {}
    for parameter in filter(None, text.split(",")):
        name, _, value = parameter.partition("=")
        key = name.casefold()
        if key in READ:
            number = read_cell(count_of, value, f"{where}: {name}")
            if number == 0 and key not in ("bf_max_job_user", "bf_max_job_part"):
                raise MachineError(f"{where}: {name} is {value!r}; allowed: 1 or more")
            stated[READ[key]] = number or float("inf")
        elif (
            parameter != "(null)"
            and key not in WITHOUT_EFFECT
            and (key not in NO_LIMIT_AT_0 or value != "0")
        ):
            raise MachineError(
                f"{where}: SchedulerParameters has {parameter[:60]!r}, which is not modelled; "
                f"allowed: {', '.join(READ)}; without effect: {', '.join(WITHOUT_EFFECT)}"
            )
    return stated
