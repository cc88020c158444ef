"""Estimates predicted at submission and corrected while jobs run, against the reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_prediction
from engines import workload_of
from hpcgym.base.errors import PolicyError
from hpcgym.core.predictor import Predictor, Submission, as_predictor
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from reference_prediction import CORRECTIONS, f_model
from strategies import longest, workloads


def name_of(value):
    """Name a parameter of a test alike in every process."""
    return getattr(value, "__name__", str(value))


# --- What is predicted ----------------------------------------------------------------------------


def predicted(jobs, processors=4, **settings):
    """Simulate and return what each job was predicted to run."""
    simulator = Simulator(workload_of(jobs, processors), SchedulerSettings(**settings))
    simulator.run()
    return simulator.predicted_time.tolist()


def test_recent_is_the_mean_of_the_users_last_two_ended_jobs_within_the_request():
    """Jobs of user 7 one after the other, then one while another runs; user 8 is a stranger.

    At 50 two jobs have ended, of 10 and 5 s: 7. At 60 those of 5 and 0 s count: 2, at 70 the job
    of 90 s runs and is not known: 2 again, cut to the request of 1 s at the last.
    """
    jobs = [
        *((0, 10, 100, 1, 7), (20, 5, 100, 1, 7), (50, 0, 100, 1, 7), (60, 90, 100, 1, 7)),
        *((70, 1, 100, 1, 7), (72, 1, 1, 1, 7), (73, 1, 30, 1, 8)),
    ]
    assert predicted(jobs, estimates="recent") == [100, 100, 7, 2, 2, 1, 30]


def test_a_prediction_is_at_least_a_second():
    jobs = [(0, 0, 9, 1, 1), (1, 1, 9, 1, 1), (5, 3, 9, 1, 1)]
    assert predicted(jobs, estimates="recent") == [9, 9, 1]


def test_jobs_known_from_before_the_episode_count():
    log = workload_of([(0, 10, 100, 1, 7), (0, 30, 100, 1, 7), (50, 9, 100, 1, 7)], 4)
    past = {
        "user": log.user[:2],
        "run_time": log.run_time[:2],
        "requested_time": log.requested_time[:2],
        "processors": log.processors[:2],
        "end_time": log.run_time[:2],
    }
    week = log.select(log.submit_time >= 50, start=50, past=past)
    simulator = Simulator(week, SchedulerSettings(estimates="recent"))
    simulator.run()
    assert simulator.predicted_time.tolist() == [20]


def test_completions_of_an_instant_are_known_to_its_submissions_unless_events_have_turns():
    jobs = [(0, 5, 50, 1, 1), (0, 5, 50, 1, 1), (5, 5, 50, 1, 1)]
    assert predicted(jobs, estimates="recent") == [50, 50, 5]
    in_turn = {"correction": "reqtime", "event_semantics": "pyss"}
    assert predicted(jobs, estimates="recent", **in_turn) == [50, 50, 50]


def test_doubled_and_exact_estimates_leave_the_kill_limit_where_it_is():
    workload = workload_of([(0, 90, 40, 1)], 1)
    for estimates, expected in (("doubled", 80), ("exact", 40), ("requested", 40)):
        simulator = Simulator(workload, SchedulerSettings(estimates=estimates))
        simulator.run()
        assert simulator.predicted_time.tolist() == [expected]
        assert hpcgym.simulate(workload, estimates=estimates).run_time.tolist() == [40]


@given(data=st.data(), f=st.sampled_from((0.0, 0.5, 1.0, 3.0, 100.0)), seed=st.integers(0, 2**63))
def test_f_model_lies_between_p_and_f_plus_one_times_p_as_the_reference_draws_it(data, f, seed):
    workload = data.draw(workloads())
    run_time = workload.run_time
    model = Predictor("f-model", f, seed % 2**63)
    drawn = model.work_out(workload.requested_time, run_time, workload.job_id)
    assert (drawn >= np.maximum(run_time, 1)).all()
    assert (drawn <= np.maximum((f + 1) * run_time, 1)).all()
    expected = f_model(run_time.tolist(), workload.job_id.tolist(), f, seed % 2**63)
    assert drawn.tolist() == expected


def test_f_model_of_zero_is_exact_and_its_noise_is_even_seeded_and_the_jobs_own():
    n = 20_000
    ids, run_time = np.arange(n), np.full(n, 1_000)
    requests = np.full(n, 9_999)
    assert as_predictor("f-model:f=0").work_out(requests, run_time, ids).tolist() == [1_000] * n
    first = as_predictor("f-model:f=2,seed=1").work_out(requests, run_time, ids)
    assert abs(first.mean() - 2_000) < 20
    deciles = np.histogram(first, bins=10, range=(1_000, 3_000))[0]
    assert (abs(deciles - n / 10) < 5 * np.sqrt(n / 10)).all()
    other = as_predictor("f-model:f=2,seed=2").work_out(requests, run_time, ids)
    assert abs(np.corrcoef(first, other)[0, 1]) < 0.03
    part = as_predictor("f-model:f=2,seed=1").work_out(requests[50:], run_time[50:], ids[50:])
    assert part.tolist() == first[50:].tolist()


# --- What a prediction is good for, and what it is not --------------------------------------------

HISTORY = [(0, 10, 10, 1, 1), (0, 10, 10, 1, 1)]  # two jobs of 10 s, known from 10 s on


def starts(jobs, processors, **settings):
    """Simulate and return the start of each job."""
    return hpcgym.simulate(workload_of(jobs, processors), **settings).start_time.tolist()


def test_scheduler_plans_with_the_prediction_and_kills_at_the_request():
    """On 4 processors, R (2p, user 1, request 100) from 20 s, H wants 4p, B 2p x 50.

    R is predicted to end at 30, so B (which would end at 71) may not delay H, though by R's request
    it could start at once. R runs for 60 s nevertheless and is killed by nobody.
    """
    jobs = [*HISTORY, (20, 60, 100, 2, 1), (21, 10, 10, 4, 2), (21, 50, 50, 2, 2)]
    predicting = {"estimates": "recent", "correction": "none"}
    assert starts(jobs, 4) == [0, 0, 20, 80, 21]
    assert starts(jobs, 4, **predicting) == [0, 0, 20, 80, 90]
    schedule = hpcgym.simulate(workload_of(jobs, 4), **predicting)
    assert schedule.end_time[2] == 80


def test_job_that_runs_on_is_killed_at_its_request_and_not_at_its_prediction():
    jobs = [*HISTORY, (20, 900, 100, 4, 1), (21, 5, 5, 4, 2)]
    for correction in CORRECTIONS:
        settings = {"estimates": "recent", "correction": correction}
        assert starts(jobs, 4, **settings) == [0, 0, 20, 120]


def test_correction_lets_a_job_in_at_the_next_event_and_not_by_itself():
    """As above, but an arrival at 40 makes a pass after R's estimate was corrected at 30.

    By then R is taken to end at 120 (reqtime), so B ends in time and starts. Without that arrival
    nothing happens between 30 and R's end at 80.
    """
    jobs = [*HISTORY, (20, 60, 100, 2, 1), (21, 10, 10, 4, 2), (21, 50, 50, 2, 2)]
    settings = {"estimates": "recent", "correction": "reqtime"}
    assert starts(jobs, 4, **settings) == [0, 0, 20, 80, 90]
    visited = [*jobs, (40, 1, 1, 4, 3)]
    assert starts(visited, 4, **settings) == [0, 0, 20, 90, 40, 100]


@pytest.mark.parametrize(
    ("correction", "expected"),
    [
        ("none", [10]),
        ("reqtime", [10, 5_000]),
        ("tsafrir", [10, 70, 310, 910, 1_810, 3_610, 5_000]),
        ("doubling", [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_120]),
    ],
)
def test_estimates_of_a_running_job_grow_by_the_steps_of_the_correction(correction, expected):
    """A job predicted 10 s runs from 20 to 5,020; other jobs come every 5 s, so passes see it."""
    jobs = [*HISTORY, (20, 9_000, 5_000, 1, 1)]
    jobs += [(20 + 5 * k, 1, 1, 1, 9) for k in range(1, 1_000)]
    workload = workload_of(jobs, 4)
    settings = SchedulerSettings(estimates="recent", correction=correction)
    simulator = Simulator(workload, settings, decide="event")
    seen = []
    while simulator.run():
        if 2 in simulator.running:
            place = simulator.state.release_job[0].tolist().index(2)
            seen.append(int(simulator.state.release_time[0, place]) - 20)
        simulator.order_by("FCFS")
    assert list(dict.fromkeys(seen)) == expected
    assert simulator.predicted_time[2] == 10


# --- A predictor in Python ------------------------------------------------------------------------


@pytest.mark.long
def test_function_that_does_what_recent_does_predicts_the_same():
    workload = hpcgym.load_workload("synthetic-256")

    def ask(job: Submission) -> float:
        if job.completed < 2:
            return job.requested_time
        return max(1, min(job.run_times[-2:].sum() // 2, job.requested_time))

    for semantics in ("batch", "pyss"):
        settings = {"correction": "tsafrir", "event_semantics": semantics}
        expected = Simulator(workload, SchedulerSettings(estimates="recent", **settings))
        asked = Simulator(workload, SchedulerSettings(estimates=ask, **settings))
        expected.run()
        asked.run()
        assert np.array_equal(asked.predicted_time, expected.predicted_time)
        assert np.array_equal(asked.start_time, expected.start_time)


@given(data=st.data())
def test_function_is_asked_once_per_job_and_told_what_has_ended_by_then(data):
    workload = data.draw(workloads())
    asked = []

    def ask(job):
        asked.append(job)
        return job.requested_time

    simulator = Simulator(workload, SchedulerSettings(estimates=ask))
    simulator.run()
    assert [job.submit_time for job in asked] == workload.submit_time.tolist()
    assert [job.processors for job in asked] == workload.processors.tolist()
    end = simulator.start_time + np.minimum(workload.run_time, workload.requested_time)
    for job, user in zip(asked, workload.user_index, strict=True):
        before = workload.history.completed[user]
        ended = (workload.user_index == user) & (end <= job.submit_time)
        zero = ended & (end == job.submit_time) & (simulator.start_time == job.submit_time)
        assert before + (ended & ~zero).sum() <= job.completed <= before + ended.sum()
        assert len(job.run_times) == len(job.requested_times) == min(job.completed, 20)
        assert (job.last_end_time is None) == (job.completed == 0)


@pytest.mark.parametrize("answer", [0, -1, float("nan"), float("inf"), None, "soon"])
def test_function_that_gives_no_seconds_is_named_with_its_job(answer):
    with pytest.raises(PolicyError, match=r"a predictor must give seconds.*for job 1 it gave"):
        hpcgym.simulate(hpcgym.load_workload("tiny"), estimates=lambda job: answer)


# --- Predictions belong to one simulation ---------------------------------------------------------


@pytest.mark.long
def test_batch_predicts_and_corrects_as_single_simulations_do():
    tiny, log = hpcgym.load_workload("tiny"), hpcgym.load_workload("synthetic-256")
    half = log.select(np.arange(len(log)) < 3_000)
    chosen = ["FCFS", "SPF", "SMITH", "WFP3"]
    for estimates in ("recent", "doubled", "f-model:f=1,seed=3"):
        for correction in ("none", "tsafrir"):
            settings = {"estimates": estimates, "correction": correction}
            many = hpcgym.simulate_many([tiny, half], chosen, threads=2, **settings)
            for row, workload in enumerate((tiny, half)):
                for column, policy in enumerate(chosen):
                    alone = hpcgym.simulate(workload, policy, **settings).metrics()
                    got = many["mean_bsld"][row, column]
                    assert got == pytest.approx(alone["mean_bsld"], rel=1e-12)
    short = [np.maximum(workload.run_time // 2, 1) for workload in (tiny, half)]
    many = hpcgym.simulate_many([tiny, half], chosen, estimates=short, correction="doubling")
    alone = hpcgym.simulate(half, "SPF", estimates=short[1], correction="doubling").metrics()
    assert many["mean_bsld"][1, 1] == pytest.approx(alone["mean_bsld"], rel=1e-12)


def test_batch_refuses_functions_and_predictors_for_some_workloads_only():
    tiny = hpcgym.load_workload("tiny")
    with pytest.raises(PolicyError, match="a function in Python, which simulate_many cannot ask"):
        hpcgym.simulate_many([tiny], ["FCFS"], estimates=lambda job: 1)
    with pytest.raises(PolicyError, match="'recent' are for all workloads"):
        hpcgym.simulate_many([tiny, tiny], ["FCFS"], estimates=["recent", "exact"])


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimates": "recnt"}, "unknown estimates 'recnt'; did you mean 'recent'"),
        ({"estimates": "f-modle:f=1"}, "did you mean 'f-model:f=3,seed=1'"),
        ({"estimates": "f-model"}, "f must be a number >= 0"),
        ({"estimates": "f-model:f=-1"}, "f must be a number >= 0"),
        ({"estimates": "f-model:f=nan"}, "f must be a number >= 0"),
        ({"estimates": "f-model:f=1e308"}, "f must be a number >= 0, at most 4503599627370496"),
        ({"estimates": "f-model:f=1,seed=x"}, "seed a whole number"),
        ({"estimates": "f-model:f=1,sed=2"}, "unknown parameter 'sed'; did you mean 'seed'"),
        ({"estimates": "f-model:f=1,f=2"}, "f is given twice"),
        ({"estimates": "recent:n=2"}, "'recent' have no parameters, got 'n=2'"),
        ({"correction": "reqtme"}, "unknown correction 'reqtme'; did you mean 'reqtime'"),
        ({"estimates": "recent", "event_semantics": "pyss"}, "where a job may outlive its"),
        ({"estimates": longest, "event_semantics": "pyss"}, "needs kill_at_limit=True"),
    ],
    ids=lambda given: given if isinstance(given, str) else "-".join(map(name_of, given.values())),
)
def test_settings_that_make_no_sense_are_refused_with_what_is_allowed(settings, message):
    with pytest.raises(PolicyError, match=message):
        SchedulerSettings(**settings)


def test_steps_of_the_reference_are_those_of_the_paper():
    minutes = [seconds // 60 for seconds in reference_prediction.STEPS_S]
    assert minutes == [1, 5, 15, 30, 60, 120, 300, 600, 1_200, 3_000, 6_000]
