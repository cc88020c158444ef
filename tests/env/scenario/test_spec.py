"""A scenario written in Python passes the same checks as one read from a file."""

import pytest

from hpcgym.base.errors import ScenarioError
from hpcgym.env.scenario.spec import (
    MachineSpec,
    RandomWindowEpisodes,
    ResampledEpisodes,
    Scenario,
    SchedulerSpec,
    TraceSpec,
    WeekEpisodes,
    WholeEpisode,
    WindowEpisodes,
)


def scenario(
    trace: TraceSpec | None = None,
    machine: MachineSpec | None = None,
    scheduler: SchedulerSpec | None = None,
) -> Scenario:
    return Scenario(
        name="mine",
        description="A test.",
        trace=trace or TraceSpec(name="tiny", missing_request="drop"),
        machine=machine or MachineSpec(processors=4, largest_request_s=100),
        episode=WholeEpisode(),
        scheduler=scheduler or SchedulerSpec(),
    )


def test_defaults_are_those_of_the_environment():
    spec = SchedulerSpec()
    assert (spec.policy, spec.backfill, spec.backfill_order) == ("SAF", "easy", None)
    assert (spec.threshold_s, spec.kill_at_limit) == (None, True)
    assert (spec.estimates, spec.event_semantics) == ("requested", "batch")


LOG = {"name": "tiny", "missing_request": "drop"}
OF_MODEL = {"name": "tiny", "missing_request": "tsafrir"}


def test_what_does_not_contradict_is_taken():
    trace = TraceSpec(**OF_MODEL, tsafrir_seed=0)
    assert scenario(trace).trace == trace
    run_times = TraceSpec(missing_request="run", name="tiny")
    scenario(run_times, scheduler=SchedulerSpec(estimates="exact"))
    assert SchedulerSpec(estimates="f-model:f=3,seed=1").correction == "none"
    SchedulerSpec(estimates="recent", event_semantics="pyss", correction="reqtime")
    scenario(TraceSpec(**LOG, max_request_s=50), MachineSpec(processors=4, largest_request_s=50))
    assert TraceSpec(**LOG).on_bad_line == "raise"


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (TraceSpec, {"missing_request": "max"}, "needs one of name, file and generator, got none"),
        (TraceSpec, LOG | {"file": "tiny.swf"}, "got name and file"),
        (TraceSpec, OF_MODEL, "needs tsafrir_seed"),
        (TraceSpec, LOG | {"tsafrir_seed": 1}, 'seed contradicts missing_request = "drop"'),
        (TraceSpec, LOG | {"on_bad_line": "dorp"}, "'dorp'; did you mean 'drop'"),
        (SchedulerSpec, {"estimates": "recnt"}, r".scheduler. unknown estimates 'recnt'; did you"),
        (SchedulerSpec, {"correction": "reqtme"}, "did you mean 'reqtime'"),
        (
            SchedulerSpec,
            {"estimates": "recent", "event_semantics": "pyss"},
            r"where a job may outlive .* a correction; got .*'recent'",
        ),
        (
            SchedulerSpec,
            {"backfill": "none", "backfill_order": "SPF"},
            "got backfill 'none', which takes none; these do",
        ),
        (
            SchedulerSpec,
            {"event_semantics": "pyss", "kill_at_limit": False},
            r"'pyss' .* needs kill_at_limit=True",
        ),
        (SchedulerSpec, {"policy": "SMTH"}, r"\[scheduler\] policy: .*did you mean 'SMITH'"),
        (SchedulerSpec, {"backfill_order": "SMTH"}, r"\] backfill_order: .*did you mean 'SMITH'"),
        (SchedulerSpec, {"kill_at_limit": 1}, "kill_at_limit must be true or false, got int 1"),
        (SchedulerSpec, {"threshold_s": "none"}, "must be a whole number, got str 'none'"),
        (MachineSpec, {"processors": True, "largest_request_s": 1}, "whole number, got bool True"),
        (MachineSpec, {"processors": 4.0, "largest_request_s": 1}, r"number, got float 4\.0"),
        (WeekEpisodes, {"weeks": 5}, "weeks must be a text, got int 5"),
        (
            scenario,
            {"trace": TraceSpec(missing_request="run", name="tiny")},
            r'needs .scheduler. estimates = "exact"',
        ),
        (
            scenario,
            {
                "trace": TraceSpec(**OF_MODEL, tsafrir_seed=0),
                "scheduler": SchedulerSpec(estimates="exact"),
            },
            '"exact" contradicts',
        ),
        (
            scenario,
            {"trace": TraceSpec(**LOG, max_request_s=50)},
            "largest_request_s = 100 contradicts",
        ),
    ],
)
def test_contradictions_and_wrong_types_are_refused(kind, given, message):
    with pytest.raises(ScenarioError, match=message):
        kind(**given)


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: MachineSpec(processors=0, largest_request_s=1), "processors"),
        (lambda: MachineSpec(processors=1, largest_request_s=0), "largest_request_s"),
        (lambda: WeekEpisodes(offset_s=-1), "offset_s"),
        (lambda: WindowEpisodes(n_jobs=0), "n_jobs"),
        (lambda: RandomWindowEpisodes(n_jobs=5, episodes=0, seed=0), "episodes"),
        (lambda: RandomWindowEpisodes(n_jobs=5, episodes=1, seed=-1), "seed"),
        (lambda: ResampledEpisodes(episodes=0, seed=0), "episodes"),
        (lambda: SchedulerSpec(threshold_s=-1), "threshold_s"),
        (lambda: TraceSpec(name="a", missing_request="max", minimum_run_time_s=-1), "minimum_run"),
        (lambda: TraceSpec(name="a", missing_request="max", max_request_s=0), "max_request_s"),
    ],
)
def test_numbers_out_of_range_name_their_key(make, key):
    with pytest.raises(ScenarioError, match=rf"{key}.* at least"):
        make()
