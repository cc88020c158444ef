"""Gang scheduling in plain Python, one second after the other, and the package against it."""

from fractions import Fraction

import hpcgym
from engines import jobs_of


def by_seconds(workload, run_time, gang):
    """Return starts and ends, one second after the other, from the specification's text."""
    jobs, machine = jobs_of(workload), workload.machine_processors
    starts, ends = [-1] * len(jobs), [-1] * len(jobs)
    rows, left, queue, t = [], {}, [], 0
    while min(ends) < 0:
        while True:  # a zero-second job ends at once and makes room at the same instant
            over = [j for j in left if left[j] <= 0]
            for j in over:
                ends[j] = t
                del left[j]
                for row in rows:
                    row.discard(j)
            rows = [row for row in rows if row]
            queue += [
                j
                for j, job in enumerate(jobs)
                if job.submit_time == t and j not in queue and starts[j] < 0
            ]
            for j in list(queue):
                for row in rows:
                    if sum(jobs[i].processors for i in row) + jobs[j].processors <= machine:
                        row.add(j)
                        break
                else:
                    if len(rows) >= gang.rows:
                        continue
                    rows.append({j})
                queue.remove(j)
                starts[j], left[j] = t, Fraction(int(run_time[j]))
            if not any(left[j] <= 0 for j in left):
                break
        if rows:
            share = Fraction(gang.quantum - gang.switch, gang.quantum * len(rows))
            left = {j: rest - share for j, rest in left.items()}
        t += 1
    return starts, ends


def is_as_by_seconds(workload, gang, kill):
    """Simulate gangs, and tell whether each job starts and ends as second by second."""
    made = hpcgym.simulate(workload, backfill=gang, kill_at_limit=kill)
    found = made.start_time.tolist(), made.end_time.tolist()
    return found == by_seconds(workload, made.run_time, gang)
