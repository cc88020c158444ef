"""The reference of trials, young jobs that give way, a cap and outages together.

It follows section 15 of the specification, "Outages beside caps and trials", and joins the machines
of `reference_trials` and `reference_outages`. It shares no code with `hpcgym`.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from reference import Start
from reference_outages import Booked, WithOutages
from reference_trials import Lives


class LivesWithOutages(Lives, WithOutages):
    """A machine whose jobs may be tried and killed, and that lacks processors at times."""

    again: Collection[int] | None = None  # jobs that outages do not lose; None = all

    # --- What is there ----------------------------------------------------------------------------

    def used_for_good(self, t: int) -> int:
        """Return the processors that a pass cannot have."""
        return super().used_for_good(t) + self.down

    def idle(self, t: int) -> int:
        """Return the processors that hold nothing, and are there."""
        return super().idle(t) - self.down

    # --- An instant -------------------------------------------------------------------------------

    def next_instant(self) -> float:
        """Return when something happens next."""
        return min(super().next_instant(), *self.instants[:1], math.inf)

    def happen(self, t: int) -> None:
        """Make the steps of one instant."""
        while self.next_end() == t:  # 1
            self.finish(t)
        if self.instants[:1] == [t]:  # 2
            del self.instants[0]
            self.change_capacity(t)
        super().happen(t)

    def change_capacity(self, t: int) -> None:
        """Let outages end and begin; trials make room first, then guaranteed ones, then others."""
        self.down = sum(o.processors for o in self.outages if o.begin <= t < o.end)
        while self.idle(t) < 0:
            guaranteed = self.guaranteed(t)
            plain = [j for j in self.on_trial if j not in guaranteed]
            held = self.on_trial | self.running
            group = plain or guaranteed or list(self.running)
            self.go_down(max(group, key=lambda j: (held[j].useful, j)), t)

    def go_down(self, j: int, t: int) -> None:
        """Take job j off the machine; that is neither a trial in vain nor a way given."""
        tried, gave_way = self.tried[j], self.gave_way[j]
        was_running = j in self.running
        is_lost = was_running and self.again is not None and j not in self.again
        self.kill(j, t, "node down")
        self.tried[j], self.gave_way[j] = tried, gave_way
        if is_lost:
            self.leave([j])
            self.starts[j] = Start(-1, False, False)

    # --- Looking ahead ----------------------------------------------------------------------------

    def room_ahead(self, t: int, span: int) -> int:
        """Return what idles now and is there for so many seconds."""
        downs = [
            sum(o.processors for o in self.foreseen(t) if o.begin <= u < o.end)
            for u in range(t, t + span)
        ]
        return self.idle(t) - self.kept - (max(downs) - downs[0])

    def fits_idle(self, j: int, t: int) -> bool:
        """Say whether a candidate goes on trial on idle processors."""
        fits = self.jobs[j].processors <= self.room_ahead(t, self.limit)
        return fits and super().fits_idle(j, t)

    def victims(self, needed: int, t: int) -> list[int] | None:
        """Return the young jobs that give way; what a known outage takes is not there for them."""
        lacking = self.idle(t) - self.kept - self.room_ahead(t, self.guarantee)
        return super().victims(needed + lacking, t)

    def goes_until(self, j: int, t: int) -> int:
        """Return until when job j would hold processors if the pass started it."""
        return max(self.end_by_estimate(j, t), t)

    def may_begin(self, j: int, t: int, booked: list[Booked]) -> bool:
        """Say whether the pass may start job j by what is known of the time to come."""
        q = self.jobs[j].processors
        own = []
        if j in self.now_guaranteed:
            own = [(t, self.on_trial[j].guarantee, -q)]
        elif q > self.free:
            return False
        until = self.goes_until(j, t)
        taken = [*booked, *own]
        falls = [o.begin for o in self.foreseen(t)] + [at for b, e, _ in taken for at in (b, e)]
        instants = [t, *(at for at in falls if t < at)]
        return all(self.free_at(u, t, taken) >= q for u in instants if u < until)

    def schedule(self, t: int) -> None:
        """Decide a whole pass, then let it happen."""
        if not self.foreseen(t):
            super().schedule(t)
            return
        self.W = sum(self.jobs[j].processors for j in self.primary.score)
        self.is_pressed = self.pressed * self.processors <= self.W
        self.take_stock(t)
        decided: list[tuple[int, bool]] = []
        queue, head, one_waits = list(self.in_order(self.primary, t)), None, False
        for j in queue:
            if self.is_blocked(j, t):
                one_waits = True
            elif self.may_begin(j, t, []):
                self.decide(j, t)
                decided.append((j, one_waits))
            else:
                head = j
                break
        if head is not None:
            same = self.secondary is self.primary
            others = queue if same else list(self.in_order(self.secondary, t))
            started = {head} | {j for j, _ in decided}
            u = self.first_hole(head, t)
            booked = [(u, u + self.estimate[head], self.jobs[head].processors)]
            for j in others:
                if j in started or self.is_blocked(j, t):
                    continue
                if self.may_begin(j, t, booked):
                    self.decide(j, t)
                    decided.append((j, True))
        self.free, self.releases = 0, []
        self.happened(decided, t)
