"""What a site says of its scheduler: its configuration, shares, limits and outages, by files."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpcgym.base.errors import LARGEST_WHOLE, MachineError, PolicyError
from hpcgym.core.events import Event, as_events
from hpcgym.core.policy import as_policy
from hpcgym.machine.files.outages import read_outages
from hpcgym.machine.files.records import text_of
from hpcgym.trace.accounting.cells import Clock

PRIORITIES = re.compile(r"^[ \t]*PriorityWeight\w+[ \t]*=[ \t]*[1-9]", re.I | re.M)
CONFIGURATION = re.compile(r"^[ \t]*(?:Priority|Sched|Select|Node|Part)\w*[ \t]*=", re.I | re.M)
SCHEDULING = re.compile(r"^[ \t]*Scheduler(?:Type|Parameters)[ \t]*=", re.I | re.M)


@dataclass(frozen=True)
class Told:
    """What a site says of its scheduler."""

    policy: str | None = None  # its order, as the text of a policy; None = not told
    backfill: str | None = None  # its backfilling, as the text of a mode; None = not told
    # Limits and outages, which every candidate has; outages in Unix time where the log has dates.
    events: tuple[Event, ...] = ()
    files: tuple[str, ...] = ()  # names of the files that say so
    notes: tuple[str, ...] = ()  # what is to be said of them

    def on_clock(self, begin: int, time_offset: int, end: int) -> tuple[Event, ...]:
        """Return the events on the clock of a log that begins at `begin`; what is over is left.

        Nodes that are down for good are so until its `end`, s: what comes then is not known.
        """
        later = time_offset - begin
        made: list[Event] = []
        for event in self.events:
            if not hasattr(event, "announced"):
                made.append(event)  # a limit
                continue
            times: list[int] = [getattr(event, key) for key in ("from_", "to", "announced")]
            if times[1] >= LARGEST_WHOLE:
                times[1] = end - later
            if times[1] + later > max(0, times[0] + later):
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
        if CONFIGURATION.search(text) is None:
            raise MachineError(f"{scheduler}: no configuration of Slurm; use: scontrol show config")
        if PRIORITIES.search(text) or shares is not None:
            policy = f"slurm:{scheduler}{'' if shares is None else f',{shares}'}"
        backfill = f"slurm:{scheduler}" if SCHEDULING.search(text) else "slurm"
    elif scheduler is not None:
        try:
            as_policy(scheduler)
        except PolicyError as error:
            raise PolicyError(f"{scheduler} is no file, and as a policy: {error}") from None
        policy = scheduler
    events, notes = [] if limits is None else [f"limits:{limits}"], list[str]()
    if outages is not None:
        clock = Clock(timezone)
        stated, notes = read_outages(outages, node_names, lambda text: clock.read(text)[0])
        events += map(str, stated)
    named = [scheduler, shares, *(limits or "").split(","), outages]
    files = tuple(Path(name).name for name in named if name)
    return Told(policy, backfill, as_events(events), files, tuple(notes))
