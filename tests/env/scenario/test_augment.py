"""Training episodes: what draws change, what they keep, which ones the filter lets pass."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from hpcgym.base.errors import ScenarioError
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.augment import KEPT_DRAWS, Augmentation, AugmentedEpisodes
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.load import load_scenario
from hpcgym.env.scenario.slicing import cleaned_log
from hpcgym.env.scenario.spec import WeekEpisodes, WholeEpisode, WindowEpisodes
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.trace.split import Past, logged_end_time, window

DAY_S = 86_400
WEEK_S = 604_800
WEEKS = Episodes("synthetic-256-weeks").select("2-9")
WARM = Episodes(replace(WEEKS.scenario, episode=WeekEpisodes(weeks="2-9")))
"""The same, with what the log shows of their users before."""
OF_LOG = {
    "as it is": {},
    "jitter": {"jitter": 600},
    "load": {"load": (0.8, 1.25)},
    "window": {"window": (DAY_S, 3 * DAY_S)},
    "resampled": {"resampled": 1.0},
    "all": {
        "jitter": 60,
        "load": (0.5, 2.0),
        "window": (DAY_S, WEEK_S),
        "resampled": 0.3,
        "easiest": 2.0,
        "hardest": 200.0,
    },
}
"""Settings whose jobs all come from the log."""
KINDS = OF_LOG | {"generated": {"generated": 1.0}, "mixed": {"resampled": 0.3, "generated": 0.3}}
seeds = st.integers(0, 2**32)
of_log = pytest.mark.parametrize("changes", OF_LOG.values(), ids=OF_LOG)
kinds = pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)


def augmented(episodes: Episodes = WEEKS, **changes: Any) -> AugmentedEpisodes:
    return AugmentedEpisodes(episodes, Augmentation(**changes))


def drawn(seed: int, episodes: Episodes = WEEKS, **changes: Any) -> Workload:
    return augmented(episodes, **changes).draw(np.random.default_rng(seed))[1]


def equal(one: Workload, other: Workload) -> bool:
    frames = one.to_frame(), other.to_frame()
    return frames[0].equals(frames[1]) and all(map(np.array_equal, one.history, other.history))


def saf_bsld(workload: Workload, **settings: Any) -> float:
    return float(hpcgym.simulate(workload, "SAF", **settings).metrics()["mean_bsld"])


def test_the_defaults_hand_out_the_weeks_themselves() -> None:
    episodes, generator = augmented(), np.random.default_rng(0)
    draws = [episodes.draw(generator) for _ in range(100)]
    assert {label for label, _ in draws} == set(WEEKS.labels)
    assert all(part is WEEKS.workload(WEEKS.position(label)) for label, part in draws)


@kinds
def test_draws_follow_from_the_generator_in_copies_too(changes: dict[str, Any]) -> None:
    one, other = augmented(**changes), augmented(**changes)
    copy = pickle.loads(pickle.dumps(one))
    for seed in range(4):
        label, part = one.draw(np.random.default_rng(seed))
        for again in (other, copy):
            its_label, its_part = again.draw(np.random.default_rng(seed))
            assert label == its_label
            assert equal(part, its_part)


@kinds
def test_a_draw_moves_the_generator_on_by_one_number(changes: dict[str, Any]) -> None:
    generator, plain = np.random.default_rng(5), np.random.default_rng(5)
    augmented(**changes).draw(generator)
    plain.integers(np.iinfo(np.int64).max)
    assert generator.bit_generator.state == plain.bit_generator.state


def test_the_same_number_gives_the_same_object_until_it_is_forgotten() -> None:
    episodes = augmented(jitter=600)
    first = episodes.draw(np.random.default_rng(0))[1]
    assert episodes.draw(np.random.default_rng(0))[1] is first
    for seed in range(1, KEPT_DRAWS + 1):
        episodes.draw(np.random.default_rng(seed))
    again = episodes.draw(np.random.default_rng(0))[1]
    assert again is not first
    assert equal(again, first)


@of_log
def test_jobs_come_from_the_episodes_at_hand_and_keep_what_they_are(
    changes: dict[str, Any],
) -> None:
    known = pd.concat([WEEKS.workload(index).to_frame() for index in range(len(WEEKS))])
    known = known.set_index("job_id")
    episodes, generator = augmented(**changes), np.random.default_rng(1)
    for _ in range(10):
        part = episodes.draw(generator)[1]
        assert len(set(part.job_id.tolist())) == len(part)
        assert set(part.job_id.tolist()) <= set(known.index)
        assert (np.diff(part.submit_time) >= 0).all()
        assert part.machine_processors == 256
        for key in ("run_time", "requested_time", "processors", "user"):
            assert np.array_equal(getattr(part, key), known.loc[part.job_id, key])


@given(seeds)
def test_jitter_and_load_keep_jobs_and_histories(seed: int) -> None:
    week = drawn(seed, WARM)
    for part in (drawn(seed, WARM, jitter=600), drawn(seed, WARM, load=(0.8, 1.25))):
        assert part.history is week.history
        assert sorted(part.job_id.tolist()) == week.job_id.tolist()


@given(seeds)
def test_the_load_factor_divides_every_submit_time(seed: int) -> None:
    week = drawn(seed)
    for factor in (0.8, 1.0, 1.7):
        part = drawn(seed, load=(factor, factor))
        assert np.array_equal(part.submit_time, np.floor(week.submit_time / factor + 0.5))


def test_load_factors_are_drawn_log_uniformly() -> None:
    episodes, generator = augmented(load=(0.5, 2.0)), np.random.default_rng(0)
    factors = []
    for _ in range(300):
        label, part = episodes.draw(generator)
        week = WEEKS.workload(WEEKS.position(label.partition(" at ")[0]))
        factors.append(week.submit_time[-1] / part.submit_time[-1])
    logs = np.log2(factors)
    assert -1.001 < logs.min() < -0.95
    assert 0.95 < logs.max() < 1.001
    assert abs(logs.mean()) < 0.1


@given(seeds)
def test_a_window_holds_what_was_submitted_in_it_on_its_own_clock(seed: int) -> None:
    week, part = drawn(seed), drawn(seed, window=(DAY_S, 3 * DAY_S))
    start = part.time_offset - week.time_offset
    words = part.name.split()
    length = int(words[-2]) - int(words[-4])
    assert int(words[-4]) == start
    assert DAY_S <= length <= 3 * DAY_S
    inside = (week.submit_time >= start) & (week.submit_time < start + length)
    assert part.job_id.tolist() == week.job_id[inside].tolist()
    assert np.array_equal(part.submit_time, week.submit_time[inside] - start)
    assert start + length <= max(week.submit_time[-1] + 1, week.submit_time[0] + length)


@given(seeds)
def test_a_window_knows_what_the_log_shows_but_for_jobs_under_way_as_the_week_began(
    seed: int,
) -> None:
    log = cleaned_log(WEEKS.scenario.trace, 256)[0]
    week, part = drawn(seed, WARM), drawn(seed, WARM, window=(DAY_S, 3 * DAY_S))
    begin = week.time_offset - log.time_offset
    under_way = (log.submit_time < begin) & (logged_end_time(log) > begin)
    first = int(np.flatnonzero(log.job_id == part.job_id[0])[0])
    of_log = window(log, first, len(part), past=Past(log, under_way))
    assert of_log.time_offset == part.time_offset
    assert equal(part, of_log)


def test_a_window_of_a_whole_log_is_that_of_the_splitter() -> None:
    whole = Episodes(replace(load_scenario("synthetic-256-weeks"), episode=WholeEpisode()))
    log = whole.workload(0)
    episodes, generator = augmented(whole, window=(DAY_S, DAY_S)), np.random.default_rng(2)
    for _ in range(5):
        part = episodes.draw(generator)[1]
        first = int(np.flatnonzero(log.job_id == part.job_id[0])[0])
        assert equal(part, window(log, first, len(part)))


def test_windows_of_weeks_without_a_past_have_none() -> None:
    for episodes, changes in ((WEEKS, {}), (WARM, {"resampled": 1.0})):
        part = drawn(1, episodes, window=(DAY_S, DAY_S), **changes)
        assert not part.history.completed.any()


def test_growing_windows_follow_the_progress_up_to_whole_weeks() -> None:
    episodes = augmented(window=(DAY_S, 16 * DAY_S), growing=True)
    lengths = []
    for progress in (0.0, 0.25, 0.5):
        episodes.progress = progress
        words = episodes.draw(np.random.default_rng(3))[0].split()
        lengths.append(int(words[-2]) - int(words[-4]))
    assert lengths == [DAY_S, 2 * DAY_S, 4 * DAY_S]
    episodes.progress = 1.0
    assert episodes.draw(np.random.default_rng(3))[0] in WEEKS.labels
    assert pickle.loads(pickle.dumps(episodes)).progress == 1.0
    with pytest.raises(ScenarioError, match=r"progress must lie in 0 to 1, got 1\.5"):
        episodes.progress = 1.5


@pytest.mark.long
def test_resampled_and_generated_weeks_come_in_their_shares() -> None:
    episodes, generator = augmented(resampled=0.5, generated=0.25), np.random.default_rng(0)
    labels = [episodes.draw(generator)[0] for _ in range(300)]
    assert abs(labels.count("resampled week") - 150) < 25
    assert abs(labels.count("generated week") - 75) < 25
    assert set(labels) - {"resampled week", "generated week"} == set(WEEKS.labels)


def test_resampled_weeks_mix_the_weeks_at_hand_and_carry_their_work() -> None:
    episodes, generator = augmented(resampled=1.0), np.random.default_rng(0)
    parts = [episodes.draw(generator)[1] for _ in range(100)]
    mixed = [np.ptp(part.job_id) > np.ptp(WEEKS.workload(0).job_id) for part in parts]
    assert all(mixed)
    assert all(part.submit_time[-1] < WEEK_S for part in parts)
    mean_jobs = np.mean([len(WEEKS.workload(index)) for index in range(len(WEEKS))])
    assert abs(np.mean([len(part) for part in parts]) / mean_jobs - 1) < 0.1


@pytest.mark.long
def test_generated_weeks_fit_machine_requests_users_and_load() -> None:
    episodes, generator = augmented(generated=1.0), np.random.default_rng(0)
    parts = [episodes.draw(generator)[1] for _ in range(100)]
    works = [int(part.run_time @ part.processors) for part in parts]
    weeks = [WEEKS.workload(index) for index in range(len(WEEKS))]
    wanted = [int(np.minimum(w.run_time, w.requested_time) @ w.processors) for w in weeks]
    assert abs(np.mean(works) / np.mean(wanted) - 1) < 0.1
    for part in parts:
        assert part.submit_time[-1] == WEEK_S - 1
        assert part.processors.max() <= 256
        assert part.largest_request <= WEEKS.largest_request
        assert (part.run_time <= part.requested_time).all()
        assert 1 < len(part.history.completed) <= max(len(w.history.completed) for w in weeks)


def test_run_times_of_generated_weeks_stay_below_the_largest_request() -> None:
    machine = replace(WEEKS.scenario.machine, largest_request_s=7200)
    log = WEEKS.workload(0)
    capped = replace(
        log,
        run_time=np.minimum(log.run_time, 7200),
        requested_time=np.minimum(log.requested_time, 7200),
        submit_time=log.submit_time + WEEK_S,
        history=log.history,
    )
    tail = replace(WEEKS.scenario, machine=machine)
    both = Workload.from_arrays(
        [*capped.submit_time, 2 * WEEK_S],
        [*capped.run_time, 1],
        [*capped.requested_time, 1],
        [*capped.processors, 1],
        machine_processors=256,
    )
    episodes = augmented(Episodes(tail, workload=both), generated=1.0)
    assert episodes.draw(np.random.default_rng(0))[1].largest_request <= 7200


@pytest.mark.long
def test_the_filter_leaves_out_what_is_trivial_or_hopeless_for_saf() -> None:
    settings = {"threshold": WEEKS.settings.threshold}
    episodes = augmented(window=(DAY_S, DAY_S), easiest=2.0, hardest=50.0)
    plain = augmented(window=(DAY_S, DAY_S))
    generator, other = np.random.default_rng(0), np.random.default_rng(0)
    kept = [saf_bsld(episodes.draw(generator)[1], **settings) for _ in range(40)]
    every = [saf_bsld(plain.draw(other)[1], **settings) for _ in range(40)]
    assert all(2 < bsld < 50 for bsld in kept)
    assert any(not 2 < bsld < 50 for bsld in every)


def test_a_draw_is_handed_out_in_the_end_even_if_the_filter_leaves_out_everything() -> None:
    for changes in ({"easiest": 1e9}, {"hardest": 0.5}):
        label, part = augmented(**changes).draw(np.random.default_rng(0))
        assert part is WEEKS.workload(WEEKS.position(label))


def test_episodes_asked_for_by_name_are_the_scenario_s_own() -> None:
    episodes = augmented(**OF_LOG["all"])
    assert (episodes.labels, episodes.numbers) == (WEEKS.labels, WEEKS.numbers)
    assert (episodes.settings, episodes.largest_request) == (WEEKS.settings, WEEKS.largest_request)
    envs = SchedulingVectorEnv(episodes, num_envs=2)
    envs.reset(options={"episode": "week 3"})
    assert envs.call("workload") == (WEEKS.workload(1),) * 2


def test_a_selection_stays_augmented() -> None:
    episodes = augmented(window=(DAY_S, DAY_S)).select("4")
    assert isinstance(episodes, AugmentedEpisodes)
    label, part = episodes.draw(np.random.default_rng(0))
    assert label.startswith("week 4 from ")
    assert part.submit_time[-1] < DAY_S


def test_weeks_set_apart_are_augmented_without_their_log() -> None:
    apart = WARM.set_apart([2, 3, 4], held_out=[6, 7])
    known = {job for index in range(3) for job in apart.workload(index).job_id.tolist()}
    episodes = augmented(apart, resampled=0.5, window=(DAY_S, 3 * DAY_S))
    copy = pickle.loads(pickle.dumps(episodes))
    for seed in range(10):
        label, part = episodes.draw(np.random.default_rng(seed))
        assert set(part.job_id.tolist()) <= known
        assert equal(part, copy.draw(np.random.default_rng(seed))[1])
        assert label == copy.draw(np.random.default_rng(seed))[0]


@pytest.mark.long
@pytest.mark.parametrize("growing", [False, True])
def test_environments_seeded_alike_play_the_same_episodes_whatever_they_do(growing: bool) -> None:
    """Seeds make the groups; members act differently, and so end their episodes apart."""
    episodes = augmented(jitter=600, window=(DAY_S // 4, DAY_S // 2), growing=growing, easiest=1.05)
    keywords: dict[str, Any] = {"action": "weights", "baseline": "SAF"}
    envs = SchedulingVectorEnv(episodes, num_envs=4, autoreset_mode="SAME_STEP", **keywords)
    envs.reset(seed=[1, 1, 2, 2])
    played: list[list[Any]] = [[workload] for workload in envs.call("workload")]
    actions = np.zeros((4, 6), dtype=np.float32)
    actions[::2, 2], actions[1::2, 5] = 1, 1  # the latest first; the smallest area first
    while min(map(len, played)) < 6:
        info = envs.step(actions)[-1]
        for env in np.flatnonzero(info.get("_episode_number", [])):
            played[env].append(envs.envs[env].workload)
    for one, other in (played[:2], played[2:]):
        assert all(mine is its for mine, its in zip(one[:6], other[:6], strict=True))
    assert played[0][0] is not played[2][0]


def test_groups_stay_in_step_when_windows_have_grown_in_between() -> None:
    episodes = augmented(window=(DAY_S, 3 * DAY_S), growing=True, easiest=2.0)
    one, other = np.random.default_rng(4), np.random.default_rng(4)
    episodes.draw(one)
    episodes.progress = 1.0
    episodes.draw(other)
    assert episodes.draw(one)[1] is episodes.draw(other)[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"jitter": -1}, "jitter must be at least 0 s, got -1"),
        ({"load": (0.0, 1.0)}, r"load must be two factors > 0, the least first, got \(0.0, 1.0\)"),
        ({"load": (2.0, 1.0)}, "the least first"),
        ({"window": (0, 5)}, "at least 1 s"),
        ({"window": (9, 5)}, "the shortest first"),
        ({"growing": True}, "growing is for windows"),
        ({"resampled": 0.6, "generated": 0.6}, "together at most 1, got 0.6 and 0.6"),
        ({"generated": float("nan")}, "shares of the draws"),
        ({"easiest": 3.0, "hardest": 3.0}, "easiest must lie below hardest"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        Augmentation(**changes)


def test_weeks_are_made_for_scenarios_of_weeks_on_machines_the_model_knows() -> None:
    windows = replace(WEEKS.scenario, episode=WindowEpisodes(n_jobs=256))
    with pytest.raises(ScenarioError, match="episodes are of kind 'window'"):
        augmented(Episodes(windows), resampled=0.1)
    log = Workload.from_arrays(
        [0, WEEK_S, 2 * WEEK_S], [1, 1, 1], [9, 9, 9], [1, 1, 1], machine_processors=4
    )
    tiny = replace(load_scenario("tiny"), episode=WeekEpisodes())
    with pytest.raises(ScenarioError, match=r"needs 32 processors or more; .* has 4"):
        augmented(Episodes(tiny, workload=log), generated=0.1)
