"""Put the waiting jobs of a live Slurm in a wanted order by their site factors, and take it back.

One cycle reads priorities, plans, notes in the journal what it is about to tell, tells it to one
`scontrol`, and notes what has come back to 0. Killed at any instant, it leaves a journal that names
every job to be restored.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from hpcgym.base.errors import LiveError
from hpcgym.site.live.changes import FLOOR, Bounds, MovableJob, planned
from hpcgym.site.live.journal import Journal
from hpcgym.site.live.readings import TERMS, TIMEOUT_S, WaitingJob, asked, printed, rows_of, run

if TYPE_CHECKING:
    from hpcgym.site.live.stage import Stage

ROUNDING = 10
"""Points by which the sum of printed terms may differ from a priority that is their sum."""

FORGETS_S = 600
"""How long after the last change a controller that was killed may bring site factors back."""

_ENDED = ("Invalid job id", "Job has already finished", "Job/step already completing or completed")
_OF_A_JOB = re.compile(r"(?P<what>.*) for job (?P<job>\d+)")
_OF_TASKS = re.compile(r"(?P<job>\d+)_\S+: (?P<what>.*)")
_PRIVILEGED = ("Operator", "Administrator")


@dataclass(frozen=True)
class Factors:
    """What `sprio` says of a job."""

    priority: int
    site: int
    total: float  # the sum of its terms, the site factor among them
    is_bare: bool
    terms: Mapping[str, float] = field(default_factory=dict)  # by what is weighed, and the nice

    @property
    def is_set(self) -> bool:
        """Whether somebody has set the priority, so that it is no sum of terms."""
        if self.is_bare:
            return self.priority > 1
        return abs(self.priority - max(self.total, 1)) > ROUNDING


@dataclass
class Plan:
    """What a cycle is to tell Slurm."""

    factors: Mapping[int, list[Factors]]  # as Slurm has them now, by job id
    # Site factors to tell, by job id.
    told: dict[int, int] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)  # jobs of the journal that are of no concern
    # Waiting jobs that are left alone, by reason.
    left: dict[str, list[str]] = field(default_factory=dict)

    def priority(self, job: WaitingJob) -> float:
        """Return the priority that a job will have."""
        site = self.told.get(job.job_id)
        if site is None or job.job_id not in self.factors:
            return job.priority
        return _priority(self.factors[job.job_id][0]) + site - self.factors[job.job_id][0].site


@dataclass
class Outcome:
    """What a cycle, or a restoring, has done."""

    # Site factors that Slurm was told, by job id.
    told: dict[int, int] = field(default_factory=dict)
    cleared: set[int] = field(default_factory=set)  # jobs that are of no concern any more
    expires: float = 0.0  # until when site factors hold, Unix s


def refuse_unfit() -> None:
    """Refuse a Slurm whose priorities take no site factors back and forth, or none of this user."""
    ensure_controller()
    lines = (line.partition("=") for line in printed("scontrol", "show", "config").splitlines())
    config = {key.strip(): value.strip() for key, _, value in lines}
    kind = config.get("PriorityType", "unknown")
    if kind != "priority/multifactor":
        raise LiveError(f"--apply needs PriorityType=priority/multifactor, and Slurm has {kind}")
    if "INCR_ONLY" in config.get("PriorityFlags", ""):
        raise LiveError(
            "--apply is refused under PriorityFlags=INCR_ONLY: priorities would not come down again"
        )
    plugin = config.get("PrioritySiteFactorPlugin", "(null)")
    if plugin not in ("(null)", "", "site_factor/none"):
        raise LiveError(
            f"--apply is refused: site factors are those of PrioritySiteFactorPlugin={plugin}"
        )
    _refuse_unprivileged(config.get("SlurmUser", "").partition("(")[0])


def _refuse_unprivileged(slurm_user: str) -> None:
    """Refuse a user whom Slurm would not let change site factors."""
    if os.geteuid() == 0:
        return
    name = pwd.getpwuid(os.geteuid()).pw_name
    if name == slurm_user:
        return
    level = printed("sacctmgr", "-n", "-P", "show", "user", name, "format=AdminLevel").strip()
    if level not in _PRIVILEGED:
        raise LiveError(
            f"--apply runs as a Slurm operator, and {name} is none: "
            f"sacctmgr modify user {name} set adminlevel=operator"
        )


def ensure_controller() -> None:
    """Refuse by a LiveError to go on where no controller answers."""
    try:  # the exit code also tells of a backup that is down
        answer = run("scontrol", "ping").stdout.decode("utf-8", errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        answer = str(error)
    if " is UP" not in answer:
        said = next(iter(answer.splitlines()), "no answer")
        raise LiveError(
            f"scontrol ping: {said}; nothing is changed. "
            "Site factors are as the controller saved them; try again when it is up"
        )


def read_factors() -> dict[int, list[Factors]]:
    """Return what `sprio` says of each job, once for each of its partitions."""
    factors: dict[int, list[Factors]] = {}
    for _, values in rows_of("factors", asked("factors")):
        terms = {term.name: values[term.name] for term in TERMS} | {"nice": -values["nice"]}
        summed = [values["site"], *terms.values()]
        made = Factors(values["priority"], values["site"], sum(summed), not any(summed), terms)
        factors.setdefault(values["job_id"], []).append(made)
    return factors


def plan_of(
    lines: Sequence[Sequence[WaitingJob]],
    waiting: Sequence[WaitingJob],
    partitions: Sequence[str],
    bounds: Bounds,
    journal: Journal,
    factors: Mapping[int, list[Factors]],
) -> Plan:
    """Plan to put waiting jobs in order, and to take back what is no longer wanted.

    Args:
        lines: Jobs, best first, of each line: those that compete by priority.
        waiting: All waiting jobs.
        partitions: Those whose jobs may be moved.
        factors: As of `read_factors`.
    """
    plan = Plan(factors)
    movable = _movable(lines, waiting, partitions, journal, plan)
    plan.told = planned(movable, bounds)
    stay = {job.job_id: job.site for line in movable for job in line}
    back, plan.gone = _to_restore(journal, factors, stay)
    plan.told |= dict.fromkeys(back, 0)
    plan.told |= _told_again(plan.told, stay, waiting)
    return plan


def cycle(plan: Plan, journal: Journal, hold_s: float) -> Outcome:
    """Tell Slurm what is planned; it holds for `hold_s` seconds unless a later cycle renews it."""
    now = time.time()
    outcome = Outcome(expires=now + hold_s)
    journal.intend(now, outcome.expires, plan.told)
    _tell(plan.told, plan.gone, journal, outcome)
    return outcome


def lines_of(stage: Stage, order: Iterable[int]) -> Iterator[list[WaitingJob]]:
    """Yield the waiting jobs of each priority tier of a machine, in an order that has tiers."""
    for _, line in groupby((stage.snapshot.waiting[at] for at in order), stage.snapshot.tier):
        yield list(line)


def restore(journal: Journal, *, only_expired: bool = False) -> Outcome:
    """Take back all site factors of a journal, or none before they have expired.

    Those that somebody else has changed meanwhile stay.
    """
    outcome = Outcome()
    now = time.time()
    over = journal.has_expired(now) if journal.sites else now < journal.last_at + FORGETS_S
    if only_expired and not over:
        return outcome
    ensure_controller()
    back, gone = _to_restore(journal, read_factors(), {})
    _tell(dict.fromkeys(back, 0), gone, journal, outcome)
    stuck = [job for job, of_job in read_factors().items() if job in back and of_job[0].site]
    if stuck:
        raise LiveError(f"site factors of jobs {stuck} are not 0; --restore again")
    return outcome


def _movable(
    lines: Sequence[Sequence[WaitingJob]],
    waiting: Sequence[WaitingJob],
    partitions: Sequence[str],
    journal: Journal,
    plan: Plan,
) -> list[list[MovableJob]]:
    """Return the jobs that may be moved, and note why others are left alone."""
    factors = plan.factors
    refused = {job.job_id: _why_left(job, partitions, factors, journal) for job in waiting}
    whole = {  # what is told of an array reaches each of its tasks
        _array(job)
        for job in waiting
        if refused[job.job_id] in (_SET, _ANOTHERS) and _array(job) != job.job_id
    }
    movable: list[list[MovableJob]] = []
    for line in lines:
        movable.append([])
        for job in line:
            why = refused[job.job_id]
            if why is None and job.job_id in whole:
                why = "an array with such tasks"
            if why is None:
                of_job = factors[job.job_id][0]
                movable[-1].append(MovableJob(job.job_id, job.user, _priority(of_job), of_job.site))
            else:
                plan.left.setdefault(why, []).append(job.array_id)
    return movable


_SET, _ANOTHERS = "priority set by hand", "site factor of somebody else"


def _why_left(
    job: WaitingJob,
    partitions: Sequence[str],
    factors: Mapping[int, list[Factors]],
    journal: Journal,
) -> str | None:
    """Return why a job may not be moved, None where it may."""
    if not set(job.partition.split(",")) <= set(partitions):
        return "in a partition that is not named"
    if "+" in job.array_id:
        return "part of a heterogeneous job"
    of_job = factors.get(job.job_id, [])
    if not of_job:
        return "without a priority now"
    if any(each.is_set for each in of_job):
        return _SET
    ours = journal.known(job.job_id) + journal.known(_array(job))
    if any(each.site and each.site not in ours for each in of_job):
        return _ANOTHERS
    if len(of_job) > 1 or "," in job.partition:
        return "in several partitions"
    return "priority at its lowest" if _priority(of_job[0]) - of_job[0].site < FLOOR else None


def _priority(of_job: Factors) -> int:
    """Return a job's priority; the sum of its terms where Slurm shows none so low.

    So a job that its site factor has put there is not taken for one that is there by itself.
    """
    return of_job.priority if of_job.priority >= FLOOR else min(round(of_job.total), FLOOR - 1)


def _array(job: WaitingJob) -> int:
    """Return the id of the array that a job is of; its own where it is of none."""
    return int(job.array_id.partition("_")[0].partition("+")[0])


def _to_restore(
    journal: Journal, factors: Mapping[int, list[Factors]], stay: Mapping[int, int]
) -> tuple[list[int], set[int]]:
    """Return the jobs of a journal to set to 0, and those of no concern; none of those that stay.

    Jobs without a priority, such as held or running ones, still have their site factor, and would
    have it again in the queue.
    """
    back, gone = [], set()
    for job in journal.sites.keys() | (journal.former.keys() & factors.keys()):
        if job in stay:
            continue
        of_job = factors.get(job)
        if of_job is None or (of_job[0].site and of_job[0].site in journal.known(job)):
            back.append(job)
        else:
            gone.add(job)
    return back, gone & journal.sites.keys()


def _told_again(
    told: Mapping[int, int], stay: Mapping[int, int], waiting: Iterable[WaitingJob]
) -> dict[int, int]:
    """Return the site factors of tasks whose array is told one, which reaches them, too."""
    return {
        job.job_id: stay[job.job_id]
        for job in waiting
        if job.job_id in stay
        and job.job_id not in told
        and _array(job) != job.job_id
        and _array(job) in told
    }


def _tell(told: Mapping[int, int], gone: Iterable[int], journal: Journal, outcome: Outcome) -> None:
    """Tell one `scontrol` all site factors, arrays before tasks; journal what is 0 or has ended."""
    text = "".join(f"update JobId={job} SiteFactor={told[job]}\n" for job in sorted(told))
    ended, refused, complaints = _fed_to_scontrol(text, journal) if text else (set(), [], [])
    outcome.told.update(told)
    if len(complaints) == len(refused):  # each is about a job
        back = {job for job, site in told.items() if not site}
        outcome.cleared = (back | ended | set(gone)).difference(refused)
        journal.clear(time.time(), outcome.cleared & journal.sites.keys())
    if complaints:
        raise LiveError(
            f"scontrol: {'; '.join(complaints)[:300]}; what was told stands in {journal.path}; "
            f"`hpcgym advise --restore --journal {shlex.quote(str(journal.path))}` takes it back"
        )


def _fed_to_scontrol(text: str, journal: Journal) -> tuple[set[int], list[int], list[str]]:
    """Return jobs that have ended, those that were refused, and all complaints but of the former.

    The text is whole before `scontrol` begins, and its lock on the journal outlives this process.
    """
    with tempfile.TemporaryFile() as whole:
        whole.write(text.encode("ascii"))
        whole.seek(0)
        try:
            done = run("scontrol", stdin=whole, pass_fds=journal.descriptors)
        except subprocess.TimeoutExpired:
            raise LiveError(
                f"scontrol: no answer within {TIMEOUT_S} s; what was told stands in {journal.path}"
            ) from None
        except OSError as error:
            raise LiveError(f"scontrol: {error.strerror}; Slurm is told nothing") from None
    lines = [line for line in done.stderr.decode("utf-8", errors="replace").splitlines() if line]
    ended, refused, complaints = answers_of(lines)
    if done.returncode and not lines:
        complaints.append(f"exit code {done.returncode}")
    return ended, refused, complaints


def answers_of(lines: Iterable[str]) -> tuple[set[int], list[int], list[str]]:
    """Return jobs that have ended, those that were refused, and what `scontrol` says of others.

    Where tasks of an array fare differently there is a line for each group of them, and those that
    were told are among them. An array has ended where all its tasks have, and is refused once for
    each line that says so.
    """
    ended: set[int] = set()
    told: set[int] = set()
    refused: list[int] = []
    complaints: list[str] = []
    for line in lines:
        answer = _OF_TASKS.match(line) or _OF_A_JOB.match(line)
        if answer and answer["what"].startswith("No error"):
            told.add(int(answer["job"]))
        elif answer and answer["what"].startswith(_ENDED):
            ended.add(int(answer["job"]))
        else:
            complaints.append(line)
            if answer:
                refused.append(int(answer["job"]))
    return ended - told, refused, complaints
