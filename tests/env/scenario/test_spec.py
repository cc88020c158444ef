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


def test_a_trace_needs_exactly_one_of_name_file_and_generator():
    with pytest.raises(ScenarioError, match="needs one of name, file and generator, got none"):
        TraceSpec(missing_request="max")
    with pytest.raises(ScenarioError, match="got name and file"):
        TraceSpec(missing_request="max", name="tiny", file="tiny.swf")


def test_tsafrir_requests_need_a_seed_and_nothing_else_takes_one():
    with pytest.raises(ScenarioError, match="needs tsafrir_seed"):
        TraceSpec(missing_request="tsafrir", name="tiny")
    with pytest.raises(ScenarioError, match='tsafrir_seed contradicts missing_request = "max"'):
        TraceSpec(missing_request="max", name="tiny", tsafrir_seed=1)
    trace = TraceSpec(missing_request="tsafrir", name="tiny", tsafrir_seed=0)
    assert scenario(trace).trace == trace


def test_run_times_stand_in_for_requests_only_where_the_scheduler_is_clairvoyant():
    trace = TraceSpec(missing_request="run", name="tiny")
    with pytest.raises(ScenarioError, match=r'needs .scheduler. estimates = "exact"'):
        scenario(trace)
    scenario(trace, scheduler=SchedulerSpec(estimates="exact"))


def test_synthetic_requests_contradict_exact_estimates():
    trace = TraceSpec(missing_request="tsafrir", name="tiny", tsafrir_seed=0)
    with pytest.raises(ScenarioError, match='"exact" contradicts'):
        scenario(trace, scheduler=SchedulerSpec(estimates="exact"))


def test_estimates_are_named_as_for_a_simulation_and_misspelt_ones_refused():
    assert SchedulerSpec(estimates="f-model:f=3,seed=1").correction == "none"
    with pytest.raises(ScenarioError, match=r".scheduler. unknown estimates 'recnt'; did you mean"):
        SchedulerSpec(estimates="recnt")
    with pytest.raises(ScenarioError, match="did you mean 'reqtime'"):
        SchedulerSpec(estimates="recent", correction="reqtme")
    with pytest.raises(
        ScenarioError, match=r"where a job may outlive .* a correction; got .*'recent'"
    ):
        SchedulerSpec(estimates="recent", event_semantics="pyss")
    SchedulerSpec(estimates="recent", event_semantics="pyss", correction="reqtime")


def test_the_largest_request_may_not_exceed_the_cap():
    trace = TraceSpec(missing_request="drop", name="tiny", max_request_s=50)
    with pytest.raises(ScenarioError, match="largest_request_s = 100 contradicts"):
        scenario(trace)
    scenario(trace, MachineSpec(processors=4, largest_request_s=50))


def test_malformed_lines_are_refused_unless_dropped_by_choice():
    assert TraceSpec(name="tiny", missing_request="drop").on_bad_line == "raise"
    with pytest.raises(ScenarioError, match="unknown on_bad_line 'dorp'; did you mean 'drop'"):
        TraceSpec(name="tiny", missing_request="drop", on_bad_line="dorp")  # type: ignore[arg-type]


def test_contradictions_of_the_scheduler_are_refused():
    with pytest.raises(ScenarioError, match="got backfill 'none', which takes none; these do"):
        SchedulerSpec(backfill="none", backfill_order="SPF")
    with pytest.raises(ScenarioError, match=r"'pyss' .* needs kill_at_limit=True"):
        SchedulerSpec(event_semantics="pyss", kill_at_limit=False)


@pytest.mark.parametrize("key", ["policy", "backfill_order"])
def test_an_unknown_policy_names_its_key_and_the_nearest_one(key):
    with pytest.raises(ScenarioError, match=rf"\[scheduler\] {key}: .*did you mean 'SMITH'"):
        SchedulerSpec(**{key: "SMTH"})


def test_values_of_another_type_are_refused():
    with pytest.raises(ScenarioError, match="processors must be a whole number, got bool True"):
        MachineSpec(processors=True, largest_request_s=1)
    with pytest.raises(ScenarioError, match=r"processors must be a whole number, got float 4\.0"):
        MachineSpec(processors=4.0, largest_request_s=1)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="kill_at_limit must be true or false, got int 1"):
        SchedulerSpec(kill_at_limit=1)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="weeks must be a text, got int 5"):
        WeekEpisodes(weeks=5)  # type: ignore[arg-type]
    with pytest.raises(ScenarioError, match="threshold_s must be a whole number, got str 'none'"):
        SchedulerSpec(threshold_s="none")  # type: ignore[arg-type]


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
