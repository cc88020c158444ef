"""What must not change a schedule does not, under any setting; exceptions have reasons."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as drawing
from hypothesis import strategies as st

import hpcgym
from engines import workload_of
from every_setting import SETTINGS, Case
from hpcgym.base.errors import PolicyError
from hpcgym.core.backfill import Easy, as_mode
from hpcgym.core.events import as_events
from hpcgym.core.history import History
from hpcgym.core.parts.conservative import Conservative
from hpcgym.core.parts.limits import Limit
from hpcgym.core.parts.outages import Outage
from hpcgym.core.parts.slurm import Slurm
from hpcgym.core.parts.trials import Trial
from hpcgym.core.workload import WEEK_S, Workload
from hpcgym.machine import Machine

WEEKS = 35 * WEEK_S  # whole weeks, which every grid of the drawn modes divides

FAR = 10**8


def lives_of(schedule):
    """Return what happened to each job, by id: times, how it started, what held it, attempts."""
    columns = [schedule.start_time, schedule.backfilled, schedule.thresholded, schedule.run_time]
    columns.append(schedule.jobs.submit_time)
    for column, nothing in (
        (schedule.lost, False),
        (schedule.cancelled, False),
        (schedule.limited_by, ""),
    ):
        columns.append(np.full(len(schedule), nothing) if column is None else column)
    jobs = schedule.workload.job_id.tolist()
    lives = {
        job: life for job, *life in zip(jobs, *(column.tolist() for column in columns), strict=True)
    }
    if schedule.attempts is not None:
        vain = schedule.attempts
        for row, *attempt in zip(vain.job, vain.taken, vain.start, vain.end, strict=True):
            lives[jobs[row]].append(tuple(map(int, attempt)))
    return lives


def later(schedule, shift):
    """Return a schedule whose times are later, where jobs have them."""
    start = np.where(schedule.start_time >= 0, schedule.start_time + shift, -1)
    workload = schedule.workload
    workload = replace(workload, submit_time=workload.submit_time + shift)
    eligible = None if schedule.eligible_time is None else schedule.eligible_time + shift
    attempts = schedule.attempts
    if attempts is not None:
        times = {key: getattr(attempts, key) + shift for key in ("taken", "start", "end")}
        attempts = replace(attempts, **times)
    moved = {"start_time": start, "eligible_time": eligible, "attempts": attempts}
    return replace(schedule, workload=workload, **moved)


# --- Relations ------------------------------------------------------------------------------------


def jobs_long_after(case, schedule, simulate, random):
    """Add jobs, no longer than those there, when all others are done."""
    workload, n = case.workload, len(case.workload)
    rows = random.integers(0, n, 3)
    columns = {
        key: np.append(values, values[rows] + (FAR if key == "submit_time" else 0))
        for key, values in workload.columns().items()
    }
    columns["job_id"][n:] = workload.job_id.max() + 1 + np.arange(3)
    for key in {"after", "eligible"} & set(columns):
        columns[key][n:] = -1
    more = replace(
        workload, **columns, user_index=np.append(workload.user_index, workload.user_index[rows])
    )
    settings = dict(case.settings)
    if not isinstance(settings.get("estimates", ""), str):
        settings["estimates"] = np.append(settings["estimates"], settings["estimates"][rows])
    lives = lives_of(Case(more, settings).run(simulate))
    return {job: lives[job] for job in workload.job_id.tolist()}, lives_of(schedule)


def all_weeks_later(case, schedule, simulate, random):
    """Submit all jobs weeks later, and have outages weeks later."""
    workload, events = case.workload, case.settings.get("events", ())
    history = workload.history
    known = history.last_end_time + WEEKS * (history.completed > 0)
    moved = replace(
        workload,
        submit_time=workload.submit_time + WEEKS,
        history=history._replace(last_end_time=known),
    )
    if workload.eligible is not None:
        moved = replace(
            moved, eligible=np.where(workload.eligible < 0, -1, workload.eligible + WEEKS)
        )
    settings = case.settings | {"events": events_later(events)}
    return lives_of(Case(moved, settings).run(simulate)), lives_of(later(schedule, WEEKS))


def events_later(events):
    """Return events whose outages are weeks later."""
    return tuple(
        replace(one, from_=one.from_ + WEEKS, to=one.to + WEEKS, announced=one.announced + WEEKS)
        if isinstance(one, Outage)
        else one
        for one in as_events(events)
    )


def the_clock_weeks_later(case, schedule, simulate, random):
    """Have the log begin weeks later, and its outages."""
    workload = case.workload
    unix = None if workload.unix_start is None else workload.unix_start + WEEKS
    moved = replace(workload, time_offset=workload.time_offset + WEEKS, unix_start=unix)
    settings = case.settings | {"events": events_later(case.settings.get("events", ()))}
    return lives_of(Case(moved, settings).run(simulate)), lives_of(schedule)


def other_numbers_of_users(case, schedule, simulate, random):
    """Exchange the numbers of known users, and those in the names of limits."""
    workload = case.workload
    users = np.unique(workload.user)
    known = users[users >= 0]
    renamed = dict(zip(users.tolist(), users.tolist(), strict=True))
    numbers = random.permutation(50)[: len(known)].tolist()
    renamed |= dict(zip(known.tolist(), numbers, strict=True))
    user = np.array([renamed[each] for each in workload.user.tolist()])
    rows = np.argsort([renamed[each] for each in users.tolist()])
    moved = replace(
        workload,
        user=user,
        user_index=np.unique(user, return_inverse=True)[1].astype(np.int64),
        history=History(*(column[rows] for column in workload.history)),
    )
    events = as_events(case.settings.get("events", ()))
    events = tuple(
        replace(one, name=str(renamed.get(int(one.name), one.name)))
        if isinstance(one, Limit) and one.per == "user" and one.name
        else one
        for one in events
    )
    found = Case(moved, case.settings | {"events": events}).run(simulate)
    # A limit names a user in its text.
    return lives_of(replace(found, events=())), lives_of(replace(schedule, events=()))


def another_order_in_the_file(case, schedule, simulate, random):
    """Put the jobs into another order, where jobs of one submit time keep theirs."""
    workload, n = case.workload, len(case.workload)
    ties = np.unique(workload.submit_time, return_inverse=True)[1]
    order = np.argsort(random.permutation(n)[ties], kind="stable")
    place = np.argsort(order)
    columns = workload.columns(order)
    if workload.after is not None:
        after = workload.after[order]
        columns["after"] = np.where(after < 0, -1, place[after])
    machine = {"machine_processors": workload.machine_processors}
    if workload.machine is not None:
        machine = {"machine": workload.machine}
    mixed = Workload.from_arrays(**columns, **machine, name=workload.name)
    mixed = replace(mixed, history=workload.history)
    return lives_of(Case(mixed, case.settings).run(simulate)), lives_of(schedule)


def an_outage_far_away(case, schedule, simulate, random):
    """Have an outage when all is over, known from the beginning where that may be."""
    announced = 0 if not plans_for_outages(case) and random.random() < 0.5 else FAR
    what = {"processors": 1} if case.workload.machine is None else {"nodes": ("0",)}
    outage = Outage(FAR, FAR + 9, announced=announced, **what)
    events = (*as_events(case.settings.get("events", ())), outage)
    found = Case(case.workload, case.settings | {"events": events}).run(simulate)
    return lives_of(found), lives_of(schedule)


def limits_that_never_bind(case, schedule, simulate, random):
    """Add limits of as many jobs and processors as there are in all."""
    n, cpus = len(case.workload), int(case.workload.processors.sum())
    per = random.choice(("user", "account"))
    events = (
        *as_events(case.settings.get("events", ())),
        f"limit:per={per},jobs={n},cpus={cpus},submitted={n}",
    )
    found = Case(case.workload, case.settings | {"events": events}).run(simulate)
    return lives_of(found), lives_of(schedule)


def nobody_is_killed(case, schedule, simulate, random):
    """Have trials that no job may take part in, and none at all."""
    mode = as_mode(case.settings["backfill"])
    if not isinstance(mode, Easy):
        return (), ()
    trial = mode.trial or Trial(limit=5, young=10, request=0)
    nobody = case.workload
    if case.settings.get("events") or random.random() < 0.5:  # outages lose jobs by the column
        trial = replace(trial, users=0)
    else:
        nobody = replace(nobody, requeue=np.zeros(len(nobody), dtype=bool))
    found = Case(nobody, case.settings | {"backfill": str(replace(mode, trial=trial))}).run(
        simulate
    )
    plain = case.settings | {"backfill": str(replace(mode, trial=None))}
    return lives_of(found), lives_of(Case(case.workload, plain).run(simulate))


def processors_as_one_node(case, schedule, simulate, random):
    """Give the machine's processors to one node, and each job one chunk of it."""
    workload = case.workload
    if workload.machine is not None:
        return (), ()
    columns = workload.columns() | {"chunks": np.ones(len(workload), dtype=np.int64)}
    machine = {"nodes": [{"count": 1, "cpus": workload.machine_processors}]}
    same = Workload.from_arrays(**columns, machine=Machine.from_dict(machine))
    same = replace(same, history=workload.history, user_index=workload.user_index)
    return lives_of(Case(same, case.settings).run(simulate)), lives_of(schedule)


RELATIONS = {
    each.__name__: each
    for each in (
        *(jobs_long_after, all_weeks_later, the_clock_weeks_later, other_numbers_of_users),
        *(another_order_in_the_file, an_outage_far_away, limits_that_never_bind, nobody_is_killed),
        processors_as_one_node,
    )
}

# --- Exceptions -----------------------------------------------------------------------------------


def plans_for_outages(case):
    """Tell whether what is planned changes once an outage is known, however far away it is.

    No job starts for its benefit then, and guarantees do not end at a shadow time.
    """
    mode = as_mode(case.settings["backfill"])
    return weighs_benefits(case) or (getattr(mode, "trial", None) and mode.trial.young > 0)


def weighs_benefits(case):
    """Tell whether jobs may start for their benefit."""
    return getattr(as_mode(case.settings["backfill"]), "kappa", 0) > 0


def gives_way(case):
    """Tell whether young jobs may give way."""
    trial = getattr(as_mode(case.settings["backfill"]), "trial", None)
    return trial is not None and trial.young > 0


def draws_users(case):
    """Tell whether users are drawn who take part in trials."""
    trial = getattr(as_mode(case.settings["backfill"]), "trial", None)
    return trial is not None and 0 < trial.users < 1


def scores_submit_times(case):
    """Tell whether an order goes by the submit time otherwise than as a difference."""
    orders = case.settings["policy"], case.settings.get("backfill_order")
    texts = [order.partition(":")[0] for order in orders if isinstance(order, str)]
    return any(text in ("F1", "F2", "F3", "F4", "submit-as-wait") for text in texts)


def holds_whole_nodes(case):
    """Tell whether reservations hold nodes wholly."""
    return isinstance(as_mode(case.settings["backfill"]), Slurm)


def plans_beyond_estimates(case):
    """Tell whether all jobs have reservations, and some run longer than estimated."""
    workload, settings = case
    mode = as_mode(settings["backfill"])
    if not isinstance(mode, Conservative) and str(mode) != "depth:k=inf":
        return False
    asked = settings.get("estimates", "requested")
    if isinstance(asked, str) and asked != "requested":
        return False
    estimate = workload.requested_time if isinstance(asked, str) else asked
    kills = settings.get("kill_at_limit", True)
    run = np.minimum(workload.run_time, workload.requested_time) if kills else workload.run_time
    return bool((run > estimate).any())


EXCEPTIONS = (
    ("all_weeks_later", scores_submit_times, "scores of F1 to F4 depend on where the clock starts"),
    ("all_weeks_later", draws_users, "users are drawn anew for each week"),
    ("the_clock_weeks_later", draws_users, "users are drawn anew for each week"),
    ("other_numbers_of_users", draws_users, "users are drawn by name"),
    (
        "processors_as_one_node",
        plans_beyond_estimates,
        "on nodes a job past its estimate ends a second later, on counted processors now",
    ),
    ("processors_as_one_node", holds_whole_nodes, "Slurm's reservations hold nodes wholly"),
    ("processors_as_one_node", weighs_benefits, "costs are defined otherwise on nodes"),
    ("processors_as_one_node", gives_way, "guarantees behind a reservation are otherwise on nodes"),
)
"""Of which cases a relation need not hold, and why."""

REFUSED = {
    "an_outage_far_away": (
        "passes that know outages|needs a backfilling mode|has jobs start several times|overhead"
        "|makes the passes|restart|needs event_semantics"
    ),
    "limits_that_never_bind": (
        "passes that know limits|needs a backfilling mode|makes the passes|needs event_semantics"
        "|knows no trials"
    ),
    "nobody_is_killed": (
        "knows no trials|passes that know limits|has jobs start several|needs event_semantics"
    ),
    "processors_as_one_node": "counts processors|restart",
}
"""What refuses the other case of a relation."""


def difference(name, case, schedule, random, simulate=hpcgym.simulate):
    """Return what a relation finds and must find; nothing where it is not about a case."""
    if any(relation == name and holds(case) for relation, holds, _ in EXCEPTIONS):
        return (), ()
    try:
        return RELATIONS[name](case, schedule, simulate, random)
    except PolicyError as error:
        assert re.search(REFUSED.get(name, "nothing"), str(error)), error
        return (), ()


@pytest.mark.parametrize("kind", SETTINGS)
@drawing(max_examples=max(drawing.default.max_examples // 5, 1))
@given(data=st.data(), seed=st.integers(0, 2**16))
def test_what_must_not_matter_changes_no_schedule(kind, data, seed):
    case, random = data.draw(SETTINGS[kind]), np.random.default_rng(seed)
    schedule = case.run()
    for name in RELATIONS:
        found, expected = difference(name, case, schedule, random)
        assert found == expected, name


@pytest.mark.parametrize("name", RELATIONS)
def test_each_relation_finds_a_simulator_that_goes_by_what_must_not_matter(name):
    """It schedules the case as it should, and any other by another policy."""
    rows = [(0, 100, 100, 3, 0), (1, 50, 60, 3, 1), (2, 20, 20, 3, 0), (3, 30, 40, 2, 1)]
    case = Case(workload_of(rows, 4), {"policy": "FCFS", "backfill": "easy"})

    def simulate(workload, **settings):
        is_case = workload is case.workload and settings == case.settings
        return hpcgym.simulate(workload, **settings | ({} if is_case else {"policy": "LCFS"}))

    for broken, holds in ((hpcgym.simulate, True), (simulate, False)):
        found, expected = difference(name, case, case.run(), np.random.default_rng(0), broken)
        assert len(found) == len(rows)
        assert (found == expected) == holds
