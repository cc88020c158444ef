"""Jobs that are not submitted yet: when each shape would start, if it were submitted now."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hpcgym.base.errors import LiveError, unknown_name
from hpcgym.base.text_table import duration
from hpcgym.site.live.advice import range_columns, ranges_now
from hpcgym.site.live.ranges import Range, in_words
from hpcgym.site.live.readings import Reading, WaitingJob, span
from hpcgym.site.live.replay import Forecasts, replay_of
from hpcgym.site.live.run_times import Past
from hpcgym.site.live.snapshot import snapshots_of
from hpcgym.site.live.stage import BACKFILL, Stage

KEYS = ("cpus", "time", "nodes", "gres", "partition")
_LAST_ID = 2**40  # of a job that comes after all others


@dataclass(frozen=True)
class Shape:
    """A job as it might be submitted."""

    text: str  # as given
    cpus: int
    limit_s: int
    nodes: int
    partition: str


@dataclass(frozen=True)
class Outlook:
    """When a shape would start."""

    shape: Shape
    wait: float | None  # expected wait, s; None where it would never start
    range: Range | None
    why: str  # why it would never start, or ""

    def row(self, now: int) -> dict[str, Any]:
        """Return it as a row of a table for programs; `now` is Unix s."""
        known = self.wait is not None and self.wait < math.inf
        return {
            "job": self.shape.text,
            "cpus": self.shape.cpus,
            "limit_s": self.shape.limit_s,
            "partition": self.shape.partition,
            "start": now + round(self.wait or 0) if known else None,
            **range_columns(self.range, now),
            "why": self.why,
        }


def shape_of(text: str, reading: Reading) -> Shape:
    """Read cpus=64,time=4:00:00[,nodes=2][,gres=gpu:1][,partition=batch]."""
    words: dict[str, str] = {}
    for pair in text.split(","):
        key, _, value = (part.strip() for part in pair.partition("="))
        if key not in KEYS:
            raise LiveError(f"--job {text}: {unknown_name('key', key, KEYS)}")
        if key in words or not value:
            raise LiveError(f"--job {text}: {key} needs one value, as in cpus=64,time=4:00:00")
        words[key] = value
    numbers = {}
    for key, read in (("cpus", int), ("time", span), ("nodes", int)):
        try:
            numbers[key] = read(words.get(key, "1" if key == "nodes" else ""))
        except ValueError:
            numbers[key] = 0
        if numbers[key] < 1:
            shown = words.get(key, "missing")
            allowed = "[D-][HH:]MM:SS" if key == "time" else "a whole number, 1 or more"
            raise LiveError(f"--job {text}: {key} is {shown}; allowed: {allowed}")
    names = sorted({node.partition for node in reading.nodes})
    partition = words.get("partition") or _partition(reading)
    if not partition:
        raise LiveError(f"--job {text}: write partition=NAME in it; there are {', '.join(names)}")
    if partition not in names:
        raise LiveError(f"--job {text}: {unknown_name('partition', partition, names)}")
    return Shape(text, numbers["cpus"], numbers["time"], numbers["nodes"], partition)


def _partition(reading: Reading) -> str | None:
    """Return Slurm's default partition; else that of most nodes of the only machine, if it is."""
    default = [node.partition for node in reading.nodes if node.is_default]
    counts = Counter(node.partition for node in reading.nodes)
    largest = min(counts, key=lambda name: (-counts[name], name))
    only = largest if len(snapshots_of(reading)) == 1 else None
    return default[0] if default else only


def outlooks(
    reading: Reading, past: Past, shapes: Sequence[Shape]
) -> tuple[list[Outlook], list[str]]:
    """Return when each shape would start, if it alone were submitted now, after all that wait.

    Also returns where ranges come from, or why there are none, in sentences.
    """
    known: dict[tuple[str, ...], Forecasts] = {}
    made = [_outlook(reading, past, shape, known) for shape in shapes]
    return made, [in_words(forecasts) for forecasts in known.values()]


def _outlook(
    reading: Reading, past: Past, shape: Shape, known: dict[tuple[str, ...], Forecasts]
) -> Outlook:
    job = _submitted(shape, reading)
    (snapshot,) = snapshots_of(replace(reading, waiting=(*reading.waiting, job)), [shape.partition])
    if job.job_id not in {each.job_id for each in snapshot.waiting}:
        (why,) = (kept.why for kept in snapshot.kept_out if kept.job.job_id == job.job_id)
        return Outlook(shape, None, None, why)
    if snapshot.partitions not in known:
        known[snapshot.partitions] = replay_of(Stage(snapshot, past))
    stage = Stage(snapshot, past)
    at = [each.job_id for each in snapshot.waiting].index(job.job_id)
    likely = ranges_now(stage, known[snapshot.partitions], is_new=True)[at]
    if likely is not None:
        return Outlook(shape, likely.middle, likely, "")
    (row,) = (stage.tasks == at).nonzero()[0]
    starts = stage.starts(stage.slurm_order(), BACKFILL)
    return Outlook(shape, float(starts[row] - snapshot.now), None, "too few like jobs")


def _submitted(shape: Shape, reading: Reading) -> WaitingJob:
    """Return the job as Slurm would list it, behind all that wait in its tier."""
    lowest = min((job.priority for job in reading.waiting if job.priority), default=1)
    return WaitingJob(
        job_id=_LAST_ID,
        array_id=shape.text,
        user="",
        account="",
        partition=shape.partition,
        qos="",
        state="PENDING",
        reason="Priority",
        priority=lowest,
        nice=0,
        submit_time=reading.now,
        eligible_time=reading.now,
        start_time=None,
        pending_s=0,
        elapsed_s=0,
        limit_s=shape.limit_s,
        cpus=shape.cpus,
        nodes=shape.nodes,
        exclusive=False,
        dependency="",
        node_list="",
    )


def sooner(outlooks: Sequence[Outlook]) -> str:
    """Say which shape is expected to start first, and whether ranges leave that open."""
    by_wait = sorted(
        (each for each in outlooks if each.wait is not None), key=lambda each: each.wait or 0.0
    )
    if len(by_wait) < 2:
        return ""
    first, second = by_wait[:2]
    if first.wait == second.wait:
        return "The first two are expected to start at the same time."
    ahead = (second.wait or 0.0) - (first.wait or 0.0)
    by = f", {duration(ahead)} before the next" if ahead < math.inf else ""
    if first.range is None or second.range is None:
        return f"Expected to start first: {first.shape.text}{by}; without ranges that is a guess."
    overlap = first.range.high >= second.range.low
    return f"Expected to start first: {first.shape.text}{by}; " + (
        "ranges overlap, so it may be otherwise." if overlap else "ranges do not overlap."
    )
