"""Expected starts beside those that came, where both are known by hand."""

from live_queues import NOW, reading, runs, waits

from hpcgym.site.live.run_times import no_past
from hpcgym.site.live.snapshot import snapshots_of
from hpcgym.site.live.stage import Stage
from research.live_advice import errors


def test_errors_are_how_much_later_each_forecast_is_than_what_came():
    """Job 1 holds all, and ended after 50 s, not 600; job 3 could start when job 2 ended."""
    waiting = [waits(2, 16, 300, priority=2), waits(3, 16, 300, priority=1, start_time=NOW + 1000)]
    (snapshot,) = snapshots_of(reading(waiting, [runs(1, 16, 700, 100)]))
    stage = Stage(snapshot, no_past())
    came = {"1": (NOW - 100, NOW + 50), "2": (NOW + 52, NOW + 72), "3": (NOW + 73, NOW + 80)}
    late = {name: seconds.tolist() for name, seconds in errors(stage, stage, came).items()}
    assert late == {
        "Slurm's own": [1000 - 73],
        "by limits": [600 - 52, 900 - 73],
        "by users' last jobs": [600 - 52, 900 - 73],
        "by the run times that came": [50 - 52, 70 - 73],
        "the same, EASY": [50 - 52, 70 - 73],
        "the wait from then on": [52, 73],
    }
