"""The reference of trial runs, of young jobs that give way, and of the cap by request.

It follows section 15 of the specification, step by step, and shares no code with `hpcgym`. An
attempt is a start; each takes processors at `taken`, runs usefully from `useful` on, and ends by
itself or by a kill.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Collection
from heapq import heapify, heappush
from typing import Any, NamedTuple

import reference_capped
from reference import Start, added


class Attempt(NamedTuple):
    """A start and an end of a job, with the reason of the end."""

    job: int
    taken: int
    useful: int
    end: int
    reason: str


class Holding(NamedTuple):
    """What a job on the machine holds: since when, and for a trial how long it is guaranteed."""

    taken: int
    useful: int
    guarantee: int = -1  # the instant at which the guarantee ends; -1 = a plain trial, or no trial
    over: int = -1  # the instant at which a trial is over


class Lives(reference_capped.CostBenefit):
    """A machine whose jobs may be tried, killed and tried again.

    The backfill is a mode of `reference_capped`, then "+trial:limit=300,kills=2" with
    "young=1800,request=7200,times=2,share=0.25,guarantee=300,victim=0.25,overhead=30" and
    "restart=121" besides.
    """

    MODES = ("easy", "easy+trial", "cost-benefit", "cost-benefit+trial")
    requeue: Collection[int] | None = None  # jobs that may be killed; None = all

    def __init__(self, *settings: Any) -> None:
        """Read the rules behind the mode, and what they add to the cap."""
        jobs, processors, policy, backfill, *others = settings
        mode, _, rule = backfill.partition("+trial")
        self.tries = "+trial" in backfill
        name, _, rest = mode.partition(":")
        given = dict(part.split("=") for part in rest.split(",") if part)
        self.by_request = given.pop("by", "expectation") == "request"
        self.widest = float(given.pop("widest", math.inf))
        self.pressed = float(given.pop("pressed", 0))
        mode = name + ":" * bool(given) + ",".join(f"{key}={given[key]}" for key in given)
        super().__init__(jobs, processors, policy, mode, *others)
        said = dict(part.split("=") for part in rule.removeprefix(":").split(",") if part)
        self.overhead = int(said.get("overhead", 0))
        self.limit = int(said.get("limit", 300))
        self.most_kills = int(said.get("kills", 2))
        self.young = int(said.get("young", 0))
        self.long_request = int(said.get("request", 7200))
        self.most_times = int(said.get("times", 2))
        self.share = float(said.get("share", 0.25))
        self.guarantee = int(said.get("guarantee", 300))
        self.restart = int(said.get("restart", 0))
        self.victim = float(said.get("victim", math.inf))
        self.done = -1  # the last instant
        self.kept = 0  # idle processors that no trial takes
        n = len(jobs)
        self.running: dict[int, Holding] = {}
        self.on_trial: dict[int, Holding] = {}  # these are in the queue, too
        self.busy: list[tuple[int, int]] = []  # (until, processors) of kills at the limit
        self.tried = [0] * n  # trial kills
        self.gave_way = [0] * n
        self.ran = [0] * n  # longest useful run of an attempt that was killed
        self.killed_at = [-1] * n
        self.attempts: list[Attempt] = []

    # --- What is held -----------------------------------------------------------------------------

    def q(self, jobs: Collection[int]) -> int:
        """Return the processors of some jobs together."""
        return sum(self.jobs[j].processors for j in jobs)

    def guaranteed(self, t: int) -> list[int]:
        """Return the jobs whose trial is guaranteed now."""
        return [j for j, held in self.on_trial.items() if t < held.guarantee]

    def used_for_good(self, t: int) -> int:
        """Return the processors that a pass cannot have."""
        held = sum(processors for until, processors in self.busy if until > t)
        return self.q(self.running) + self.q(self.guaranteed(t)) + held

    def idle(self, t: int) -> int:
        """Return the processors that hold nothing."""
        held = sum(processors for until, processors in self.busy if until > t)
        return self.processors - self.q(self.running) - self.q(self.on_trial) - held

    def may_be_killed(self, j: int) -> bool:
        """Say whether job j takes part."""
        return self.requeue is None or j in self.requeue

    # --- A job's life -----------------------------------------------------------------------------

    def take(self, j: int, t: int, delay: int, guarantee: int = -1, *, trial: bool) -> None:
        """Give job j processors at t, to run usefully after a delay."""
        useful = t + delay
        held = Holding(t, useful, -1, useful + self.limit)
        if guarantee >= 0:
            held = Holding(t, useful, useful + guarantee, useful + guarantee)
        (self.on_trial if trial else self.running)[j] = held
        heappush(self.ends, (useful + self.executed[j], j, j))

    def kill(self, j: int, t: int, reason: str) -> None:
        """Take processors back from job j, whose work is lost."""
        is_trial = j in self.on_trial
        held = (self.on_trial if is_trial else self.running).pop(j)
        self.ends = [end for end in self.ends if end[2] != j]
        heapify(self.ends)
        self.ran[j] = max(self.ran[j], t - held.useful)
        self.killed_at[j] = t
        self.attempts.append(Attempt(j, *held[:2], t, reason))
        if is_trial:
            self.tried[j] += 1
            self.wait_anew(j, t)
            if reason == "trial over" and self.overhead:
                insort(self.busy, (t + self.overhead, self.jobs[j].processors))
            return
        self.gave_way[j] += 1
        self.counted.discard(j)
        for ranking in self.rankings:
            ranking.add(j, self.first_score(ranking, j))
            ranking.score = dict(sorted(ranking.score.items()))
        self.wait_anew(j, t)

    def wait_anew(self, j: int, t: int) -> None:
        """Put a job that was killed at the end of orders by submit time."""
        if not self.restart:
            return
        for ranking in self.rankings:
            if ranking.policy in ("FCFS", "LCFS"):
                ranking.remove(j)
                sign = 1 if ranking.policy == "FCFS" else -1
                ranking.add(j, sign * (t + self.restart))
                ranking.score = dict(sorted(ranking.score.items()))

    def is_away(self, j: int, t: int) -> bool:
        """Say whether job j is on trial without promotion, or cannot start again yet."""
        killed_at = self.killed_at[j]
        too_soon = killed_at >= 0 and t < killed_at + self.restart
        return self.restart > 0 and (j in self.on_trial or too_soon)

    def finish(self, t: int) -> None:
        """End the first attempt to end by itself."""
        j = self.ends[0][2]
        is_trial = j in self.on_trial
        held = (self.on_trial if is_trial else self.running).pop(j)
        if is_trial:
            self.begun(j, held, backfilled=False)
        self.attempts.append(Attempt(j, *held[:2], t, "completed"))
        self.complete()

    # --- The cap ----------------------------------------------------------------------------------

    def is_long(self, j: int, t: int) -> bool:
        """Say whether job j would count if it started now."""
        if not self.by_request or self.cap == math.inf:
            return super().is_long(j, t)
        guarded = self.guarded and self.is_thresholded(j, t)
        return not guarded and self.jobs[j].requested_time > self.long

    def is_blocked(self, j: int, t: int) -> bool:
        """Say whether a pass goes on as if job j did not wait."""
        if self.is_away(j, t):
            return True
        binds = self.is_pressed and self.jobs[j].processors <= self.widest * self.processors
        return binds and super().is_blocked(j, t)

    # --- An instant -------------------------------------------------------------------------------

    def run_batch(self) -> None:
        """Handle one instant after the other."""
        while (t := self.next_instant()) < math.inf:
            self.happen(int(t))

    def next_instant(self) -> float:
        """Return when something happens next."""
        instants = [self.next_submission(), self.next_end()]
        instants += [held.over for held in self.on_trial.values()]
        instants += [until for until, _ in self.busy]
        if self.restart:
            again = [killed + self.restart for killed in self.killed_at if killed >= 0]
            instants += [instant for instant in again if instant > self.done]
        return min(instants)

    def happen(self, t: int) -> None:
        """Make the steps of one instant."""
        self.done = t
        while self.next_end() == t:  # 1
            self.finish(t)
        self.busy = [(until, processors) for until, processors in self.busy if until > t]
        while self.next_submission() == t:  # 3
            self.submit()
        self.schedule(t)  # 4
        for j in sorted(self.on_trial):  # 5
            if self.on_trial[j].over <= t:
                self.kill(j, t, "trial over")
        self.try_jobs(t)

    def try_jobs(self, t: int) -> None:
        """Make the last two steps of an instant."""
        if self.tries:
            self.try_idle(t)  # 6
        if self.young:
            self.make_way(t)  # 7

    def candidates(self, t: int) -> list[int]:
        """Return the waiting jobs that may be tried, in the order in which they are."""
        waiting = [
            j
            for j in self.primary.score
            if j not in self.on_trial and self.killed_at[j] != t and self.may_be_killed(j)
            if not self.is_away(j, t)
        ]
        return sorted(
            waiting, key=lambda j: (max(self.estimate[j], 10) * self.jobs[j].processors, j)
        )

    def try_idle(self, t: int) -> None:
        """Put waiting jobs on trial on idle processors."""
        for j in self.candidates(t):
            if self.fits_idle(j, t):
                self.take(j, t, self.overhead, trial=True)

    def fits_idle(self, j: int, t: int) -> bool:
        """Say whether a candidate goes on trial on idle processors."""
        return (
            self.jobs[j].processors <= self.idle(t) - self.kept
            and self.tried[j] < self.most_kills
            and self.ran[j] < self.limit
        )

    def make_way(self, t: int) -> None:
        """Have young jobs give way to jobs that have never been tried."""
        for j in self.candidates(t):
            victims = self.victims_for(j, t)
            if victims is not None:
                self.give_way(j, victims, t)

    def victims_for(self, j: int, t: int) -> list[int] | None:
        """Return the young jobs that give way to a candidate; None if it is not to be."""
        if any(self.is_thresholded(k, t) for k in self.primary.score if k not in self.on_trial):
            return None
        q = self.jobs[j].processors
        guaranteed = self.q(self.guaranteed(t))
        if self.tried[j] or self.ran[j] or q + guaranteed > self.share * self.processors:
            return None
        return self.victims(q - (self.idle(t) - self.kept), t)

    def give_way(self, j: int, victims: list[int], t: int) -> None:
        """Have young jobs give way to job j."""
        for victim in victims:
            self.kill(victim, t, "gave way")
        delay = self.overhead * (1 + bool(victims))
        self.take(j, t, delay, self.guarantee, trial=True)

    def victims(self, needed: int, t: int) -> list[int] | None:
        """Return the young jobs that give way so many processors; None if there are too few."""
        young = [
            j
            for j, held in self.running.items()
            if 0 <= t - held.useful < self.young
            and self.jobs[j].requested_time > self.long_request
            and self.gave_way[j] < self.most_times
            and self.jobs[j].processors <= self.victim * self.processors
            and not self.is_thresholded(j, t)
            and self.may_be_killed(j)
        ]
        young.sort(key=lambda j: (self.jobs[j].processors * (t - self.running[j].useful), j))
        chosen = []
        for j in young:
            if needed <= 0:
                break
            chosen.append(j)
            needed -= self.jobs[j].processors
        return chosen if needed <= 0 else None

    # --- A pass -----------------------------------------------------------------------------------

    def end_by_estimate(self, j: int, t: int) -> int:
        """Return when job j would end by its estimate if the pass started it."""
        if j in self.on_trial:
            return self.on_trial[j].useful + self.estimate[j]
        return t + self.delay(j) + self.estimate[j]

    def delay(self, j: int) -> int:
        """Return how long a start of job j takes before it runs usefully."""
        return self.overhead if self.killed_at[j] >= 0 else 0

    def take_stock(self, t: int) -> None:
        """Note what a pass begins with."""
        self.free = self.processors - self.used_for_good(t)
        guaranteed = self.guaranteed(t)
        self.releases = sorted(
            [(held.useful + self.estimate[j], j) for j, held in self.running.items()]
            + [(self.on_trial[j].guarantee, j) for j in guaranteed]
        )
        self.now_guaranteed = set(guaranteed)

    def schedule(self, t: int) -> None:
        """Decide a whole pass, then let it happen."""
        self.W = sum(self.jobs[j].processors for j in self.primary.score)
        self.is_pressed = self.pressed * self.processors <= self.W
        self.take_stock(t)
        decided: list[tuple[int, bool]] = []
        queue, head, one_waits = list(self.in_order(self.primary, t)), None, False
        for j in queue:
            if self.is_blocked(j, t):
                one_waits = True
                continue
            if j not in self.now_guaranteed and self.jobs[j].processors > self.free:
                head = j
                break
            self.decide(j, t)
            decided.append((j, one_waits))
        if head is not None:
            same = self.secondary is self.primary
            others = queue if same else list(self.in_order(self.secondary, t))
            started = {j for j, _ in decided}
            behind = self.start_behind(head, [j for j in others if j not in started], t)
            decided += [(j, True) for j in behind]
        self.free, self.releases = 0, []
        self.happened(decided, t)

    def reservation(self, head: int, t: int) -> tuple[int, int]:
        """Return the shadow time of the head and the extra processors at it."""
        held = [(until, processors) for until, processors in self.busy if until > t]
        needed = self.jobs[head].processors
        free, shadow = self.free, t
        ends = [(max(end, t), self.jobs[j].processors) for end, j in self.releases] + held
        for end, processors in sorted(ends):
            if free >= needed and end > shadow:
                break
            free += processors
            shadow = end
        return shadow, free - needed

    def decide(self, j: int, t: int) -> None:
        """Have the pass start job j, or keep it where it is on trial."""
        if self.is_long(j, t):
            self.counted.add(j)
        if j in self.now_guaranteed:
            self.releases.remove((self.on_trial[j].guarantee, j))
        else:
            self.free -= self.jobs[j].processors
        insort(self.releases, (self.end_by_estimate(j, t), j))

    def start_behind(self, head: int, others: list[int], t: int) -> list[int]:
        """Decide the starts behind the head, and return them."""
        shadow, X = self.reservation(head, t)
        S, k = shadow - t, self.weight(head, t)
        wait = set(others) | {head}
        wide = [j for j in self.primary.score if j in wait and self.jobs[j].processors > self.free]
        R = added(map(self.rate, wide)) if k > 0 else 0.0
        started = []
        for j in others:
            q = self.jobs[j].processors
            is_guaranteed = j in self.now_guaranteed
            if j == head or (q > self.free and not is_guaranteed) or self.is_blocked(j, t):
                continue
            outlives = self.end_by_estimate(j, t) > shadow
            if is_guaranteed and self.on_trial[j].guarantee >= shadow:
                pass  # the reservation counts on none of its processors
            elif q <= X:
                X -= q * outlives
            elif outlives:
                if is_guaranteed or k == 0:
                    continue
                run = self.run_time(j)
                cost = (
                    R * (run * math.exp(-S / run)) * min(1.0, (q - X) / self.jobs[head].processors)
                )
                if cost > self.rate(j) * (k * (S + self.run_time(head))):
                    continue
            self.decide(j, t)
            started.append(j)
        return started

    def happened(self, decided: list[tuple[int, bool]], t: int) -> None:
        """Promote and start what a pass has decided; trials give way to starts."""
        for j, backfilled in decided:
            if j in self.on_trial:
                held = self.on_trial.pop(j)
                self.running[j] = Holding(*held[:2])
                self.begun(j, held, backfilled)
        for j, backfilled in decided:
            if j in self.running:
                continue
            evicts = False
            while self.idle(t) < self.jobs[j].processors:
                plain = [k for k, held in self.on_trial.items() if t >= held.guarantee]
                last = max(plain, key=lambda k: (self.on_trial[k].taken, -k))
                self.kill(last, t, "evicted")
                evicts = True
            delay = self.delay(j) + self.overhead * evicts
            self.take(j, t, delay, trial=False)
            self.begun(j, self.running[j], backfilled)

    def begun(self, j: int, held: Holding, backfilled: bool) -> None:
        """Note a start for good, and take job j out of the queue."""
        if self.starts[j] is None:
            self.started += 1
        self.starts[j] = Start(held.useful, backfilled, self.is_thresholded(j, held.taken))
        self.leave([j])
