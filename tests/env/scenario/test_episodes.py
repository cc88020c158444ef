"""Episodes: read once, cut beforehand, drawn uniformly, carried across processes."""

import multiprocessing
import pickle
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcgym.base.errors import ScenarioError, TraceError
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.load import load_scenario, scenario_names
from hpcgym.env.scenario.slicing import cleaned_log
from hpcgym.env.scenario.spec import (
    EpisodeSpec,
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
from hpcgym.trace import find_trace

WEEK_S = 604_800
BUNDLED = {
    "tiny": 8,
    "synthetic-256-weeks": 10_000,
    "synthetic-busy-weeks": 21_808,
    "hetero-64-weeks": 10_000,
}
"""Jobs in the whole log of each scenario that needs no download."""


def log_of(n_weeks: int, jobs_a_week: int = 4) -> Workload:
    """A log whose week k holds `jobs_a_week` jobs of k + 1 processors, evenly spread."""
    n = n_weeks * jobs_a_week + 1  # the last job opens the next week
    return Workload.from_arrays(
        np.arange(n) * (WEEK_S // jobs_a_week),
        np.full(n, 50),
        np.full(n, 100),
        np.arange(n) // jobs_a_week + 1,
        user=np.arange(n) % 2,
        wait_time=np.zeros(n),
        machine_processors=64,
        name="made",
    )


def episodes_of(episode: EpisodeSpec, log: Workload | None = None) -> Episodes:
    scenario = Scenario(
        name="mine",
        description="A test.",
        trace=TraceSpec(name="made", missing_request="drop"),
        machine=MachineSpec(processors=64, largest_request_s=100),
        episode=episode,
    )
    return Episodes(scenario, workload=log_of(10) if log is None else log)


def equal(one: Workload, other: Workload) -> bool:
    return all(
        np.array_equal(getattr(one, key), getattr(other, key))
        for key in ("job_id", "submit_time", "run_time", "requested_time", "processors", "user")
    ) and all(map(np.array_equal, one.history, other.history))


def test_weeks_are_numbered_from_1_without_the_first_and_the_last_partial_one():
    episodes = episodes_of(WeekEpisodes())
    assert episodes.numbers == tuple(range(1, 10))
    assert episodes.labels[:2] == ("week 1", "week 2")
    assert len(episodes) == 9
    for index, number in enumerate(episodes.numbers):
        assert (episodes.workload(index).processors == number + 1).all()


def test_an_episode_is_cut_once():
    episodes = episodes_of(WeekEpisodes())
    assert episodes.workload(3) is episodes.workload(3)
    assert Episodes("tiny").workload(0) is Episodes("tiny").workload(0)


def test_a_week_knows_the_past_of_its_users_unless_the_scenario_says_not():
    warm = episodes_of(WeekEpisodes()).workload(0).history
    assert warm.completed.tolist() == [2, 2]
    cold = episodes_of(WeekEpisodes(warm_history=False)).workload(0).history
    assert cold.completed.tolist() == [0, 0]
    assert cold.run_time.shape == warm.run_time.shape


def test_the_scenario_s_own_weeks_are_kept():
    episodes = episodes_of(WeekEpisodes(weeks="2,5-6"))
    assert episodes.numbers == (2, 5, 6)
    with pytest.raises(ScenarioError, match=r'mine: \[episode\] weeks "8-12": there is no 10-12'):
        episodes_of(WeekEpisodes(weeks="8-12"))


def test_a_selection_keeps_numbers_and_jobs():
    every = episodes_of(WeekEpisodes(weeks="2-9"))
    chosen = every.select("4,7-8")
    assert chosen.labels == ("week 4", "week 7", "week 8")
    assert chosen.workload(1) is not None
    assert equal(chosen.workload(1), every.workload(5))
    with pytest.raises(ScenarioError, match='mine: weeks "1": there is no 1; allowed are 2-9'):
        every.select("1")
    with pytest.raises(ScenarioError, match='weeks "2": there is no 2; allowed are 4,7-8'):
        chosen.select("2")


def test_an_episode_is_found_by_number_and_by_label():
    episodes = episodes_of(WeekEpisodes(weeks="3-5"))
    assert episodes.position(4) == episodes.position("week 4") == 1
    with pytest.raises(ScenarioError, match=r"mine: unknown episode 'week 44'; did you mean"):
        episodes.position("week 44")
    with pytest.raises(ScenarioError, match=r"unknown episode 9.* Allowed: 3, 4, 5"):
        episodes.position(9)


def test_draws_are_uniform_over_the_episodes_and_follow_the_seed():
    episodes = episodes_of(WeekEpisodes(weeks="1-5"))
    generator = np.random.default_rng(0)
    counts = Counter(episodes.draw(generator)[0] for _ in range(5000))
    assert set(counts) == set(episodes.labels)
    assert all(abs(count - 1000) < 150 for count in counts.values())
    first = [episodes.draw(np.random.default_rng(7))[0] for _ in range(3)]
    assert len(set(first)) == 1


def test_windows_follow_one_another():
    episodes = episodes_of(WindowEpisodes(n_jobs=8))
    assert episodes.labels == tuple(f"window {number}" for number in range(1, 6))
    assert episodes.workload(1).job_id.tolist() == list(range(9, 17))
    assert episodes.workload(1).submit_time[0] == 0


def test_a_file_may_deal_out_windows():
    stated = WindowEpisodes(n_jobs=8, train="1,5", validation="2", test="3-4")
    episodes = episodes_of(stated)
    parts = [episodes.select(part).numbers for part in ("train", "validation", "test")]
    assert parts == [(1, 5), (2,), (3, 4)]
    with pytest.raises(ScenarioError, match=r"3 are asked for, and there are at most 2"):
        episodes.select("test:3")
    with pytest.raises(ScenarioError, match="an episode stands in two of train"):
        replace(stated, test="2-3")
    with pytest.raises(ScenarioError, match=r"\[episode\] test: the log has no 6-7"):
        episodes_of(replace(stated, test="3-4,6-7"))


def test_fixed_random_windows_depend_on_the_seed_and_fresh_ones_on_the_generator():
    spec = RandomWindowEpisodes(n_jobs=8, episodes=5, seed=1)
    one, two = episodes_of(spec), episodes_of(spec)
    other = episodes_of(replace(spec, seed=2))
    assert len(one) == 5
    assert all(equal(one.workload(index), two.workload(index)) for index in range(5))
    assert not all(equal(one.workload(index), other.workload(index)) for index in range(5))
    generator = np.random.default_rng(0)
    drawn = {one.draw(generator)[0] for _ in range(200)}
    assert len(drawn) == 34  # every first job, 1 to 41 - 8 + 1
    assert equal(one.draw(np.random.default_rng(3))[1], two.draw(np.random.default_rng(3))[1])


def test_a_selection_of_random_episodes_is_drawn_from():
    episodes = episodes_of(RandomWindowEpisodes(n_jobs=8, episodes=5, seed=1)).select("2-3")
    generator = np.random.default_rng(0)
    assert {episodes.draw(generator)[0] for _ in range(50)} == {"window 2", "window 3"}


def test_a_resampled_log_keeps_its_jobs_and_forgets_the_past():
    log = log_of(10)
    episodes = episodes_of(ResampledEpisodes(episodes=2, seed=0), log)
    assert episodes.labels == ("sample 1", "sample 2")
    for index in range(2):
        sample = episodes.workload(index)
        assert sorted(sample.processors) == sorted(log.processors)
        assert not sample.history.completed.any()
    assert not equal(episodes.workload(0), episodes.workload(1))


def test_a_week_of_a_resampled_log_has_no_past_either():
    episodes = episodes_of(ResampledEpisodes(episodes=3, seed=0, part="week"))
    assert not episodes.workload(2).history.completed.any()
    label, week = episodes.draw(np.random.default_rng(0))
    assert label.startswith("sample week ")
    assert week.submit_time.max() < WEEK_S


@pytest.mark.parametrize(
    "spec",
    [
        WholeEpisode(),
        WeekEpisodes(),
        WindowEpisodes(n_jobs=8),
        RandomWindowEpisodes(n_jobs=8, episodes=3, seed=1),
        ResampledEpisodes(episodes=2, seed=0),
    ],
)
def test_a_pickled_copy_draws_the_same(spec: EpisodeSpec):
    episodes = episodes_of(spec)
    copy = pickle.loads(pickle.dumps(episodes))
    assert (copy.labels, copy.settings) == (episodes.labels, episodes.settings)
    label, part = episodes.draw(np.random.default_rng(5))
    label_of_copy, part_of_copy = copy.draw(np.random.default_rng(5))
    assert label == label_of_copy
    assert equal(part, part_of_copy)


def test_a_pickle_of_a_scenario_on_the_shelf_holds_no_jobs():
    episodes = Episodes("synthetic-256-weeks").select("2-4")
    text = pickle.dumps(episodes)
    assert len(text) < 2000
    assert pickle.loads(text).numbers == (2, 3, 4)


def _first_jobs(episodes: Episodes) -> list[int]:
    return [int(value) for value in episodes.draw(np.random.default_rng(1))[1].job_id[:5]]


@pytest.mark.long
def test_a_spawned_process_draws_the_same():
    episodes = Episodes("synthetic-256-weeks")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(_first_jobs, episodes).result() == _first_jobs(episodes)


def test_a_request_larger_than_stated_is_refused():
    scenario = replace(
        load_scenario("tiny"), machine=MachineSpec(processors=4, largest_request_s=119)
    )
    with pytest.raises(ScenarioError, match=r"requests reach 120 s, yet .* is 119; state 120"):
        Episodes(scenario)


def test_malformed_lines_are_refused_unless_the_scenario_drops_them(tmp_path: Path):
    path = tmp_path / "broken.swf"
    path.write_text(find_trace("tiny").read_text() + "1 2 3\n")
    tiny = load_scenario("tiny")
    trace = replace(tiny.trace, name=None, file=str(path))
    with pytest.raises(TraceError, match="3 fields where the format has 18"):
        Episodes(replace(tiny, trace=trace))
    episodes = Episodes(replace(tiny, trace=replace(trace, on_bad_line="drop")))
    assert len(episodes.workload(0)) == 8
    assert episodes.report is not None
    assert episodes.report.count("malformed line") == 1


def test_jobs_wider_than_the_machine_are_refused_unless_the_scenario_drops_them():
    tiny = load_scenario("tiny")
    small = replace(tiny, machine=MachineSpec(processors=2, largest_request_s=120))
    with pytest.raises(ScenarioError, match=r"\[machine\] processors is 2") as raised:
        Episodes(small)
    message = str(raised.value)
    assert "4 of 8 jobs of tiny ask for more, the widest for 4; state 4" in message
    assert '[trace] on_wide_job = "drop"' in message
    episodes = Episodes(replace(small, trace=replace(tiny.trace, on_wide_job="drop")))
    assert len(episodes.workload(0)) == 4
    assert episodes.workload(0).processors.max() == 2
    assert episodes.report is not None
    assert episodes.report.count("larger than the machine") == 4


def test_no_scenario_of_the_shelf_drops_wide_jobs():
    assert {load_scenario(name).trace.on_wide_job for name in scenario_names()} == {"raise"}


def test_jobs_made_for_another_machine_are_refused():
    with pytest.raises(ScenarioError, match="processors is 4, yet made was made for 64"):
        Episodes("tiny", workload=log_of(3))


def test_a_log_too_short_for_the_kind_is_refused():
    with pytest.raises(TraceError, match="no whole week"):
        episodes_of(WeekEpisodes(), log_of(1))
    with pytest.raises(TraceError, match="may hold 1 to 41 jobs"):
        episodes_of(RandomWindowEpisodes(n_jobs=42, episodes=1, seed=0))


def test_settings_carry_every_key_of_the_scheduler_table():
    spec = SchedulerSpec(
        policy="SPF",
        backfill_order="SQF",
        threshold_s=7,
        kill_at_limit=False,
        estimates="exact",
        correction="doubling",
    )
    settings = spec.settings
    assert (settings.policy, str(settings.backfill), settings.backfill_order) == (
        "SPF",
        "easy",
        "SQF",
    )
    assert (settings.threshold, settings.kill_at_limit) == (7, False)
    assert (settings.estimates, settings.event_semantics) == ("exact", "batch")
    assert settings.correction == "doubling"


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_scenarios_state_their_largest_request_and_lose_no_job(name: str):
    episodes = Episodes(name)
    log = Episodes(replace(episodes.scenario, episode=WholeEpisode())).workload(0)
    assert log.largest_request == episodes.largest_request
    assert len(log) == BUNDLED[name]


GENERATED = {"many-weeks", "price-weeks", "windows-256"}
"""Scenarios of logs that are made at first use."""


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(GENERATED))
def test_scenarios_of_generated_logs_state_the_machine_and_a_largest_request(name: str):
    scenario = load_scenario(name)
    jobs = Episodes(scenario).workload(0)
    assert jobs.machine_processors == scenario.machine.processors
    assert jobs.requested_time.max() <= jobs.largest_request == scenario.machine.largest_request_s


@pytest.mark.long
@pytest.mark.parametrize("name", [n for n in scenario_names() if n not in {*BUNDLED, *GENERATED}])
def test_scenarios_of_real_logs_state_the_machine_and_the_largest_request(name: str, real_log):
    scenario = load_scenario(name)
    path = real_log(scenario.trace.log)
    episodes = Episodes(scenario)
    whole = Episodes(replace(scenario, episode=WholeEpisode())).workload(0)
    assert whole.largest_request == scenario.machine.largest_request_s
    of_header, _ = cleaned_log(replace(scenario.trace, name=None, file=str(path)), None)
    assert of_header.machine_processors == scenario.machine.processors
    assert episodes.numbers == tuple(range(1, len(episodes) + 1))
