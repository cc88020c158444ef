"""What a site says of its scheduler: its configuration, shares, limits and outages, by files."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpcgym.core.events import Event, as_events
from hpcgym.machine.files.outages import read_outages
from hpcgym.machine.files.records import text_of
from hpcgym.trace.accounting.cells import Clock

PRIORITIES = re.compile(r"^[ \t]*PriorityWeight\w+[ \t]*=[ \t]*[1-9]", re.I | re.M)
SCHEDULING = re.compile(r"^[ \t]*Scheduler(?:Type|Parameters)[ \t]*=", re.I | re.M)


@dataclass(frozen=True)
class Told:
    """What a site says of its scheduler.

    Attributes:
        policy: Its order, as the text of a policy; None = not told.
        backfill: Its backfilling, as the text of a mode; None = not told.
        events: Limits and outages, which every candidate has. Outages are in Unix time where the
            log has dates.
        files: Names of the files that say so.
        notes: What is to be said of them.
    """

    policy: str | None = None
    backfill: str | None = None
    events: tuple[Event, ...] = ()
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def on_clock(self, begin: int, time_offset: int) -> tuple[Event, ...]:
        """Return the events on the clock of a log that begins at `begin`; what is over is left."""
        later = time_offset - begin
        made: list[Event] = []
        for event in self.events:
            if not hasattr(event, "announced"):
                made.append(event)  # a limit
                continue
            times: list[int] = [getattr(event, key) for key in ("from_", "to", "announced")]
            if times[1] + later > 0:
                begins, ends, known = (max(0, instant + later) for instant in times)
                moved: Any = {"from_": begins, "to": ends, "announced": known}
                made.append(replace(event, **moved))
        return tuple(made)


def read_told(
    scheduler: str | None = None,
    *,
    shares: Path | None = None,
    limits: str | None = None,
    outages: Path | None = None,
    node_names: tuple[str, ...] = (),
    timezone: str | None = None,
) -> Told:
    """Read what a site says of its scheduler.

    Args:
        scheduler: A `slurm.conf`, what `scontrol show config` prints, or the text of a policy.
        shares: What `sshare` or `sacctmgr show assoc tree` prints; only beside such a file.
        limits: Files of `sacctmgr`, parted by commas.
        outages: As of `hpcgym.machine.files.outages`.
        node_names: As there.
        timezone: As there.

    Raises:
        MachineError: A file cannot be read, or states what is not modelled.
        PolicyError: No such policy.
    """
    policy = backfill = None
    if scheduler is not None and Path(scheduler).is_file():
        text = text_of(scheduler)
        if PRIORITIES.search(text) or shares is not None:
            policy = f"slurm:{scheduler}{'' if shares is None else f',{shares}'}"
        backfill = f"slurm:{scheduler}" if SCHEDULING.search(text) else "slurm"
    elif scheduler is not None:
        policy = scheduler
    events, notes = [] if limits is None else [f"limits:{limits}"], list[str]()
    if outages is not None:
        clock = Clock(timezone)
        stated, notes = read_outages(outages, node_names, lambda text: clock.read(text)[0])
        events += map(str, stated)
    named = [scheduler, shares, *(limits or "").split(","), outages]
    files = tuple(Path(name).name for name in named if name)
    return Told(policy, backfill, as_events(events), files, tuple(notes))
