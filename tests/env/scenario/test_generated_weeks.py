"""Weeks by the hundred: each part has users of its own, and a number is the same week always."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest

import hpcgym
from hpcgym.agent.card import read_card
from hpcgym.agent.shelf import load_card
from hpcgym.agent.training_weeks import Training, open_weeks
from hpcgym.base.errors import ScenarioError
from hpcgym.env.scenario.augment import chosen_episodes
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.load import load_scenario, parse_scenario
from hpcgym.env.scenario.slicing import generated_weeks
from hpcgym.trace.populations import digest_of_jobs
from hpcgym.trace.sessions import session_workload

WEEK_S = 604_800
MANY = "many-weeks"
PARTS = {"train": range(1, 401), "validation": range(10_001, 10_101), "test": range(20_001, 20_301)}

TEXT = """
description = "Small weeks."

[trace]
generator = "sessions"
seed = 5
load = 0.5
population_weeks = 3
missing_request = "drop"

[machine]
processors = 32
largest_request_s = 64800

[episode]
kind = "week"
train = "1-6"
validation = "31-32"
test = "61-66"

[scheduler]
threshold_s = 200000
"""


def small(old="", new=""):
    """Return a small scenario, with a text of it replaced."""
    assert old in TEXT
    return parse_scenario(TEXT.replace(old, new), name="small")


@pytest.fixture(scope="module")
def weeks():
    """Return the weeks of the small scenario."""
    return Episodes(small())


def of_week(number):
    """Return a week's jobs and what has ended before it, by plain Python from the generator."""
    log, week = divmod(number - 1, 3)
    drawn = session_workload(5, np.random.default_rng([5, log]), machine_processors=32, load=0.5)
    begin = (week + 1) * WEEK_S
    rows = zip(
        drawn.submit_time.tolist(),
        drawn.run_time.tolist(),
        drawn.requested_time.tolist(),
        drawn.processors.tolist(),
        drawn.user.tolist(),
        strict=True,
    )
    rows = list(rows)
    jobs = [(s - begin, *rest) for s, *rest in rows if begin <= s < begin + WEEK_S]
    ended = {}
    for submit, run, *_, user in sorted(rows, key=lambda row: row[0] + row[1]):
        if submit + run <= begin:
            ended.setdefault(user, []).append(run)
    return jobs, ended


def rows_of(workload):
    """Return a workload's jobs as rows."""
    names = ("submit_time", "run_time", "requested_time", "processors", "user")
    return list(zip(*(getattr(workload, name).tolist() for name in names), strict=True))


@pytest.mark.parametrize("number", [1, 3, 4, 31, 66, 90])
def test_a_week_holds_its_log_s_jobs_and_what_ended_before(weeks, number):
    jobs, ended = of_week(number)
    week = weeks.select(str(number)).workload(0)
    assert rows_of(week) == jobs
    assert week.name == f"small week {number}"
    for user in set(week.user.tolist()):
        row = week.user_index[week.user == user][0]
        assert week.history.completed[row] == len(ended.get(user, []))
        known = week.history.run_time[row][: min(len(ended.get(user, [])), 20)]
        assert sorted(known.tolist()) == sorted(ended.get(user, [])[-20:])


def test_parts_are_of_different_users_and_as_many_as_stated():
    every = Episodes(MANY)
    logs = {}
    for part, numbers in PARTS.items():
        assert every.select(part).numbers == tuple(numbers)
        logs[part] = {(number - 1) // 20 for number in numbers}
    assert [len(logs[part]) for part in PARTS] == [20, 5, 15]
    assert len(set.union(*logs.values())) == 40
    assert every.numbers == tuple(number for numbers in PARTS.values() for number in numbers)
    assert every.labels[-1] == "week 20300"


@pytest.mark.long
def test_first_and_last_log_are_those_on_record():
    """`python scripts/digest_weeks.py` writes all digests; each is checked where a log is used."""
    made = generated_weeks(load_scenario(MANY)).populations
    assert len(made.on_record) == 40
    for number in (0, 1014):
        assert digest_of_jobs(made.make(number)) == made.on_record[number]


def share_of_wide(jobs):
    """Return the share of the jobs that take half of the machine or more."""
    return np.mean(jobs.processors >= jobs.machine_processors // 2)


def test_a_scenario_may_state_wide_jobs_and_bursts(weeks):
    usual = weeks.workload(0)
    same = Episodes(small("seed = 5", "seed = 5\nwide = 0.0\nsession_jobs = 4.0")).workload(0)
    assert rows_of(same) == rows_of(usual)
    wide = Episodes(small("seed = 5", "seed = 5\nwide = 0.3"))
    assert share_of_wide(wide.workload(0)) > share_of_wide(usual) + 0.05
    burst = Episodes(small("seed = 5", "seed = 5\nsession_jobs = 16.0"))
    logs = [generated_weeks(of.scenario).populations.log(0) for of in (weeks, burst)]
    gaps = [np.diff(log.submit_time) for log in logs]
    spread = [gap.std() / gap.mean() for gap in gaps]
    assert spread[1] > 1.2 * spread[0]
    names = {Episodes(wide.scenario).scenario.trace.log, weeks.scenario.trace.log}
    assert names == {"sessions:seed=5,load=0.5,weeks=3" + mix for mix in ("", ",wide=0.3")}


def test_more_weeks_leave_the_first_as_they_are(weeks):
    test, more = weeks.select("test"), weeks.select("test:20")
    assert more.numbers == tuple(range(61, 81))
    for position in range(len(test)):
        assert test.workload(position) is more.workload(position)
    assert weeks.select("test:2").numbers == (61, 62)
    assert weeks.select("train:30").numbers == tuple(range(1, 31))
    assert Episodes(MANY).select("test:900").numbers == tuple(range(20_001, 20_901))
    assert weeks.select("7,40-41").labels == ("week 7", "week 40", "week 41")


def test_more_weeks_end_where_another_part_begins(weeks):
    with pytest.raises(ScenarioError, match=r"small: weeks: 31 are asked for, .* at most 30"):
        weeks.select("train:31")
    with pytest.raises(ScenarioError, match="at most 10000"):
        Episodes(MANY).select("validation:10001")
    with pytest.raises(ScenarioError, match=r"behind the colon .* such as \"test:30\", got '0'"):
        weeks.select("test:0")
    with pytest.raises(ScenarioError, match="there is no 100001"):
        weeks.select("100001")


def test_what_is_selected_has_no_more_weeks(weeks):
    test = weeks.select("test")
    assert test.select("test:3").numbers == (61, 62, 63)
    with pytest.raises(ScenarioError, match="7 are asked for, and there are at most 6"):
        test.select("test:7")
    with pytest.raises(ScenarioError, match="there is no 67"):
        test.select("67")
    with pytest.raises(ScenarioError, match='small: weeks "train": of 1-6 none is among 61-66'):
        test.select("train")


def test_other_scenarios_take_the_first_of_a_part_only():
    log = Episodes("synthetic-256-weeks")
    assert log.select("test:2").numbers == log.select("test").numbers[:2]
    with pytest.raises(ScenarioError, match="9 are asked for, and there are at most 4"):
        log.select("test:9")


def test_weeks_before_are_those_of_the_same_log(weeks):
    chosen = weeks.select("63-65")
    names = [[week.name for week in chosen.before(position)] for position in range(3)]
    assert names == [["small week 61", "small week 62"], [], ["small week 64"]]


@pytest.mark.long
def test_weeks_set_apart_are_the_same_jobs_and_know_no_held_out_ones(weeks):
    apart = weeks.set_apart([1, 3, 4], held_out=[2, 61])
    assert apart.numbers == (1, 3, 4)
    again = pickle.loads(pickle.dumps(apart))
    for position, number in enumerate(apart.numbers):
        assert rows_of(again.workload(position)) == of_week(number)[0]
        assert again.workload(position).name == f"small week {number}"
    third = weeks.select("3").workload(0)
    assert again.workload(1).history.completed.sum() < third.history.completed.sum()
    assert again.workload(2).history.completed.tolist() == (
        weeks.select("4").workload(0).history.completed.tolist()
    )
    assert again.scenario.trace.generator is None
    with pytest.raises(ScenarioError, match="there is no 2"):
        again.select("2")


def test_pickles_hold_the_scenario_only():
    every = Episodes(small())
    every.workload(0)
    assert len(pickle.dumps(every.select("train"))) < 5_000


def test_a_part_of_the_training_weeks_closes_its_neighbours(weeks):
    scenario = small()
    training = Training({"small": (1, 2)}, 0, 1.0, "", "")
    assert open_weeks(training, Episodes(scenario)) == (4, 5, 6, 31, 32, *range(61, 67))
    other = Episodes(replace(scenario, name="other", trace=replace(scenario.trace, seed=6)))
    assert open_weeks(Training({"small": (1,)}, 0, 1.0, "", ""), other) == other.numbers


def test_a_card_may_name_any_of_the_weeks(tmp_path):
    trained = load_card("ppo-order").path
    stated = 'weeks = { many-weeks = "1-400,10001-10100" }'
    path = tmp_path / "ppo-order.toml"
    path.write_text(re.sub("weeks = {.*}", stated, trained.read_text(encoding="utf-8")), "utf-8")
    (tmp_path / "ppo-order.npz").write_bytes(trained.with_suffix(".npz").read_bytes())
    training = read_card(path).training
    assert training is not None
    assert training.weeks == {MANY: (*PARTS["train"], *PARTS["validation"])}
    assert open_weeks(training, Episodes(MANY)) == tuple(PARTS["test"])


def test_rules_run_on_the_test_weeks_as_simulated(weeks):
    frame = hpcgym.evaluate(["FCFS"], weeks, weeks="test:2", progress=False).frame
    for number in (61, 62):
        jobs = weeks.select(str(number)).workload(0)
        rows = frame[(frame["agent"] == "FCFS") & (frame["week"] == number)]
        expected = hpcgym.simulate(jobs, "FCFS", threshold=200_000).metrics()["mean_bsld"]
        assert rows["mean_bsld"].tolist() == [expected]


def test_days_are_of_training_weeks(weeks):
    label, jobs = chosen_episodes(weeks, "short").draw(np.random.default_rng(0))
    assert jobs.submit_time[-1] < 86_400
    assert int(label.split()[1].strip(",:")) in range(1, 7)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 5\n", "", r"\[trace\] generator needs seed"),
        ('generator = "sessions"', 'name = "tiny"', "load, population_weeks, seed: only with a"),
        ('generator = "sessions"', 'generator = "session"', "did you mean 'sessions'"),
        ("seed = 5\n", 'seed = 5\nname = "tiny"\n', "got name and generator"),
        ("load = 0.5", "load = 3.0", "load is 3.0; allowed: 0.1 to 2"),
        ("load = 0.5", 'load = "much"', "load must be a number"),
        ("population_weeks = 3", "population_weeks = 0", "at least 1 is needed"),
        ("seed = 5", "seed = 5\nwide = 1.5", "wide is 1.5; allowed: 0 to 1"),
        ("seed = 5", "seed = 5\nsession_jobs = 0.5", "session_jobs is 0.5; allowed: 1 to 100"),
        ('"drop"', '"max"', "generated jobs are not cleaned"),
        ('test = "61-66"\n', "", "needs all of train, validation and test"),
        ('test = "61-66"', 'test = "2-9"', "stands in two of train, validation and test"),
        ('test = "61-66"', 'test = "99999-100001"', "there is no 100001"),
        ('kind = "week"', 'kind = "week"\noffset_s = 5', "take no rule, offset_s or weeks"),
        ("64800", "3600", "largest_request_s is 3600, yet generated requests reach 64800"),
    ],
)
def test_what_cannot_be_generated_is_refused(old, new, message):
    with pytest.raises(ScenarioError, match=message):
        small(old, new)


def test_digests_are_as_many_as_logs():
    with pytest.raises(ScenarioError, match=r"digests has 2, yet .* need 5 logs of 3 weeks"):
        Episodes(small("seed = 5", 'seed = 5\ndigests = "00000000 00000000"'))
