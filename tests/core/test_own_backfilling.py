"""Backfilling modes in Python: what they get, what they start, and where they are refused."""

import pickle
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
from engines import first_jobs, part_or_whole, workload_of
from hpcgym.base.errors import PolicyError
from hpcgym.core import loaders
from hpcgym.core.backfill import as_mode
from hpcgym.core.own_backfill import OwnBackfill, WaitingJob, register_backfill
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.schedule.moldable import simulate_moldable
from strategies import policies, settings_for, workloads


class OwnEasy(OwnBackfill):
    """EASY, by a reservation of the first job that does not fit."""

    def start(self, now):
        profile, head, started = now.profile(), None, []
        for job in now.queue:
            if profile.fits(job):
                profile.reserve(job, now.now)
                started.append(job)
            elif head is None:
                head = job
                profile.reserve(job, profile.earliest(job))
        return started


class OwnConservative(OwnBackfill):
    """A reservation for every job, made anew at each pass."""

    def start(self, now):
        profile = now.profile()
        return [job for job in now.queue if profile.reserve(job, profile.earliest(job))]


@dataclass(frozen=True)
class Capped(OwnBackfill):
    """First fit of at most so many jobs a pass."""

    NAME = "capped"

    k: int = 1

    def start(self, now):
        profile = now.profile()
        fitting = [j for j in now.queue if profile.fits(j) and profile.reserve(j, now.now)]
        return fitting[: self.k]


PAIRS = [("easy", OwnEasy()), ("conservative", OwnConservative())]
JOBS = workload_of([(0, 10, 20, 3), (1, 5, 5, 4), (2, 5, 30, 1), (3, 4, 4, 1)], 4)


def made_by(answer):
    """Return a mode that gives an answer, or what a function makes of the pass."""

    class Answering(OwnBackfill):
        def start(self, now):
            return answer(now) if callable(answer) else answer

    return Answering()


def starts_of(workload, **settings):
    """Schedule; return start, backfilled and thresholded of each job."""
    made = hpcgym.simulate(workload, **settings)
    columns = (made.start_time, made.backfilled, made.thresholded)
    return [tuple(row) for row in zip(*(column.tolist() for column in columns), strict=True)]


@pytest.mark.parametrize(("compiled", "own"), PAIRS)
@given(data=st.data())
def test_a_mode_in_python_starts_each_drawn_job_as_the_compiled_one(compiled, own, data):
    workload = data.draw(workloads(max_jobs=30))
    settings = data.draw(settings_for(workload, "conservative")) | {
        "policy": data.draw(policies | st.sampled_from(("SMITH-HISTORY", "WFP3")))
    }
    del settings["backfill"]
    assert starts_of(workload, backfill=own, **settings) == starts_of(
        workload, backfill=compiled, **settings
    )


@given(data=st.data())
def test_predictions_corrections_and_invariants_hold_beside_a_mode_in_python(data):
    workload = data.draw(workloads(max_jobs=30))
    settings = {
        "estimates": data.draw(st.sampled_from(("recent", "doubled"))),
        "correction": data.draw(st.sampled_from(("none", "reqtime", "doubling"))),
    }
    simulators = [
        Simulator(workload, SchedulerSettings(backfill=mode, **settings), check_invariants=True)
        for mode in ("easy", OwnEasy())
    ]
    assert not any(simulator.run() for simulator in simulators)
    compiled, own = simulators
    assert own.start_time.tolist() == compiled.start_time.tolist()
    assert own.counts()["passes"] <= compiled.counts()["passes"]


@pytest.mark.parametrize("policy", ["FCFS", "SAF"])
@part_or_whole
def test_a_mode_in_python_starts_every_job_of_a_real_log_as_easy_does(real_log, n, policy):
    log = first_jobs(real_log("KTH-SP2-1996-2.1-cln"), n)
    settings = {"policy": policy, "threshold": 72_000}
    assert starts_of(log, backfill=OwnEasy(), **settings) == starts_of(log, **settings)


def test_a_mode_sees_the_queue_in_order_and_the_running_jobs():
    seen = []

    class Spy(OwnEasy):
        def start(self, now):
            seen.append(now)
            return super().start(now)

    made = hpcgym.simulate(JOBS, "SPF", backfill=Spy(), threshold=7)
    assert made.start_time.tolist() == [0, 10, 15, 3]
    assert [(now.now, now.free_processors) for now in seen] == [
        *((0, 4), (1, 1), (2, 1), (3, 1), (7, 1), (10, 4), (15, 4))
    ]
    at_10 = seen[5]
    assert [(job.job_id, job.is_overdue) for job in at_10.queue] == [(2, True), (3, True)]
    assert at_10.queue[0] == WaitingJob(1, 2, -1, 1, 4, 5, True)
    running = seen[3].running
    assert [(job.job_id, job.processors, job.release_time) for job in running] == [(1, 3, 20)]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda now: now.queue, "starts job 2 at 1 s on 4 processors, and 1 of 4 are left"),
        (lambda now: now.queue[:1] * 2, "each once; at 0 s it returned job 1"),
        ([17], "jobs of the queue, each once; at 0 s it returned 17"),
        (None, "must return jobs, got None"),
        ((), "starts none of 4 waiting jobs on an idle machine at 3 s, and nothing is to come"),
    ],
)
def test_an_answer_that_cannot_be_is_refused_with_the_job(answer, message):
    with pytest.raises(PolicyError, match=message):
        hpcgym.simulate(JOBS, backfill=made_by(answer))


def test_what_a_mode_remembers_is_of_one_run_and_of_its_copies():
    class Alternating(OwnBackfill):
        """Starts one job at every other pass."""

        def __init__(self):
            self.passes = 0

        def start(self, now):
            self.passes += 1
            may_start = self.passes % 2 or not now.running
            return now.queue[:1] if may_start and now.free_processors else ()

    mode = Alternating()
    jobs = workload_of([(k, 7, 7, 1) for k in range(9)], 3)
    first = starts_of(jobs, backfill=mode)
    assert starts_of(jobs, backfill=mode) == first and mode.passes == 0
    simulator = Simulator(jobs, SchedulerSettings(backfill=mode), decide="event")
    for _ in range(4):
        simulator.run()
    twin = simulator.copy()
    for each in (simulator, twin):
        while each.run():
            pass
        assert each.start_time.tolist() == [start for start, _, _ in first]


def test_a_registered_mode_is_known_by_its_text(monkeypatch):
    monkeypatch.setattr(loaders, "BACKFILLS", loaders.ByName("backfill", PolicyError))
    assert register_backfill(Capped) is Capped
    assert as_mode("capped:k=2") == Capped(2) and str(Capped(2)) == "capped:k=2"
    by_text = starts_of(JOBS, backfill="capped:k=2")
    assert by_text == starts_of(JOBS, backfill=Capped(2))
    assert starts_of(JOBS, backfill=Capped) == starts_of(JOBS, backfill="capped")
    env = SchedulingEnv("tiny", backfill="capped")
    assert str(env.settings.backfill) == "capped"
    with pytest.raises(PolicyError, match="unknown backfill 'capt'; did you mean 'capped'"):
        as_mode("capt")
    taken = type("Taken", (Capped,), {"NAME": "easy"})
    with pytest.raises(PolicyError, match="backfill 'easy' is taken"):
        register_backfill(taken)
    with pytest.raises(PolicyError, match="takes a subclass of OwnBackfill"):
        register_backfill(Workload)


def test_settings_with_a_mode_in_python_can_be_pickled():
    simulator = Simulator(JOBS, SchedulerSettings(backfill=OwnEasy()), decide="event")
    simulator.run()
    twin = pickle.loads(pickle.dumps(simulator))
    while twin.run():
        pass
    assert twin.start_time.tolist() == hpcgym.simulate(JOBS).start_time.tolist()


@pytest.mark.parametrize("decide", ["contested", "event", 600])
@pytest.mark.parametrize("action", ["policy", "weights"])
def test_the_environment_plays_a_mode_in_python_as_the_compiled_one(decide, action):
    scenario = "synthetic-256-weeks"
    choice = {"policies": ("SAF", "WFP3")} if action == "policy" else {}
    totals, schedules = [], []
    for backfill in ("easy", OwnEasy()):
        env = SchedulingEnv(scenario, action=action, decide=decide, backfill=backfill, **choice)
        env.reset(options={"episode": 4})
        done, total = False, 0.0
        while not done:
            _, reward, done, _, _ = env.step(1 if action == "policy" else [0, 0, 0, 0, 0, 1])
            total += reward
        totals.append(total)
        schedules.append(env.schedule().start_time.tolist())
    assert schedules[0] == schedules[1]
    assert totals[0] == pytest.approx(totals[1], rel=1e-12)
    assert env.metrics()["max_wait_time"] > 0


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda mode: hpcgym.simulate(JOBS, "PLANNER", backfill=mode), "'PLANNER' plans with a"),
        (lambda mode: hpcgym.simulate(JOBS, "DYNP", backfill=mode), "'DYNP' plans with a"),
        (lambda mode: hpcgym.simulate_many([JOBS], ["SAF"], backfill=mode), "simulate_many cannot"),
        (lambda mode: SchedulingEnv("tiny", backfill=mode, action="job"), "action 'job' cannot"),
        (lambda mode: SchedulingVectorEnv("tiny", backfill=mode), "vectorization_mode='sync'"),
        (lambda mode: SchedulingEnv("hetero-64-weeks", backfill=mode).reset(), "counts processors"),
        (
            lambda mode: simulate_moldable(
                JOBS, [[(1, 5, 5)]] * 4, settings=SchedulerSettings(backfill=mode)
            ),
            "planning of shapes cannot run",
        ),
        (
            lambda mode: Simulator(JOBS, SchedulerSettings(backfill=mode)).predict(["FCFS"]),
            "a rollout cannot run",
        ),
        (
            lambda mode: hpcgym.simulate(JOBS, backfill=mode, backfill_order="SPF"),
            "which takes none; these do: easy",
        ),
    ],
)
def test_what_needs_a_compiled_mode_says_so(use, message):
    with pytest.raises(PolicyError, match=message):
        use(OwnEasy())
