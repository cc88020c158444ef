"""Prices of energy: against the reference, on drawn workloads and whole weeks, and by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_price as reference
from engines import jobs_of, workload_of
from hpcgym.base.errors import HpcgymError, MachineError, PolicyError
from hpcgym.core.price import Price
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.machine import prices
from strategies import workloads

KAPPAS, CAPS, POWERS = (np.inf, 0, 1, 20, 400), (np.inf, 1, 0.8, 0.5, 0.3), (0, 0.25, 1)


def reference_of(event, workload):
    """Return the price as the reference has it."""
    span, price = event.calendar(workload)
    cap = 1 if event.cap == np.inf else event.cap
    exact = price.tolist()
    error = event.errors(workload, price).tolist()
    return reference.Price(exact, span, event.kappa, event.power, cap, event.long, error)


def spread(workload, factor):
    """Return a workload whose times are so many times as long, so that hours matter."""
    columns = ("submit_time", "run_time", "requested_time")
    longer = {key: getattr(workload, key) * factor for key in columns}
    return replace(workload, **longer, history=workload.history)


def agrees(workload, policy, event, **settings):
    """Check starts, reasons, energy and cost against the reference."""
    ours = hpcgym.simulate(workload, policy, events=[event], **settings)
    theirs = reference.simulate(
        jobs_of(workload),
        workload.machine_processors,
        policy,
        reference_of(event, workload),
        **settings,
    )
    assert ours.start_time.tolist() == [start.start_time for start in theirs]
    assert ours.backfilled.tolist() == [start.backfilled for start in theirs]
    ran = [
        job._replace(run_time=p)
        for job, p in zip(jobs_of(workload), ours.run_time.tolist(), strict=True)
    ]
    energy = reference.energy_of(
        reference_of(event, workload),
        ran,
        ours.start_time.tolist(),
        workload.machine_processors,
        event.idle,
    )
    measured = ours.metrics()
    assert (measured["energy"], measured["energy_cost"]) == pytest.approx(energy, rel=1e-12)
    return ours


@given(workloads(), st.data())
def test_jobs_start_as_in_the_reference(workload, data):
    event = Price(
        seed=data.draw(st.integers(0, 5)),
        kappa=data.draw(st.sampled_from(KAPPAS)),
        power=data.draw(st.sampled_from(POWERS)),
        cap=data.draw(st.sampled_from(CAPS)),
        long=data.draw(st.sampled_from((0, 2000, 7200))),
        noise=data.draw(st.sampled_from((0, 0.3, 2))),
    )
    policy = data.draw(st.sampled_from(("FCFS", "SAF", "LCFS", "WFP3")))
    settings = {"backfill": data.draw(st.sampled_from(("easy", "none")))}
    factor = data.draw(st.sampled_from((1, 600, 1300)))
    agrees(spread(workload, factor), policy, event, **settings)


@pytest.mark.long
def test_a_whole_week_starts_as_in_the_reference():
    episodes = Episodes("synthetic-busy-weeks")
    workload = episodes.workload(episodes.position(2))
    event = Price(seed=3, kappa=100, power=0.25, cap=0.8)
    held = agrees(workload, "SAF", event)
    noisy = agrees(workload, "SAF", replace(event, noise=0.3))
    assert noisy.start_time.tolist() != held.start_time.tolist()
    free = hpcgym.simulate(workload, "SAF", events=[Price(seed=3)])
    assert free.start_time.tolist() == hpcgym.simulate(workload, "SAF").start_time.tolist()
    assert held.metrics()["energy"] == free.metrics()["energy"]
    assert held.metrics()["energy_cost"] < free.metrics()["energy_cost"]


def tariff(tmp_path, *rows):
    """Write a file of prices, and return its path."""
    path = tmp_path / "prices.csv"
    path.write_text("time,price\n" + "".join(f"{row}\n" for row in rows))
    return str(path)


def test_a_job_waits_for_the_cheap_hour_where_that_pays(tmp_path):
    """One processor for an hour at 3 now and at 1 in two hours saves 2; two hours cost 2 kappa."""
    path = tariff(tmp_path, "0,3", "7200,1")
    jobs = workload_of([(0, 3600, 3600, 1, 0)], 4)
    for kappa, start in ((0.99, 7200), (1.01, 0)):
        made = hpcgym.simulate(jobs, events=f"price:file={path},kappa={kappa}")
        assert made.start_time.tolist() == [start]
        # Four idle processors for a day at .3, 3 for two hours and 1 for 22, and the job's .7.
        assert made.metrics()["energy_cost"] == pytest.approx(
            0.3 * 4 * 28 + 0.7 * (3 if start == 0 else 1)
        )


def test_a_long_job_leaves_free_what_the_cap_keeps_and_reserves_likewise(tmp_path):
    """Under a cap of a half the long second job waits for the first, and the short one does not."""
    path = tariff(tmp_path, "0,1")
    rows = [(0, 9000, 9000, 2, 0), (1, 9000, 9000, 1, 0), (2, 60, 60, 2, 0)]
    jobs = workload_of(rows, 4)
    assert hpcgym.simulate(jobs).start_time.tolist() == [0, 1, 9000]
    capped = hpcgym.simulate(jobs, events=[Price(path, cap=0.5)])
    assert capped.start_time.tolist() == [0, 9000, 2]


def test_prices_of_a_file_are_those_in_force_at_each_hour(tmp_path):
    path = tariff(tmp_path, "1970-01-01T00:00:00Z,0.5", "1970-01-01T02:30:00+01:00,-0.25", "9000,2")
    found = prices.prices_of(path, 0, 4)
    assert found.tolist() == [500_000, 500_000, -250_000, 2_000_000]
    with pytest.raises(MachineError, match=r"line 2: prices begin at 0 s, and these jobs at -3600"):
        prices.prices_of(path, -3600, 4)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["0,1", "0,2"], r"line 3: times must ascend; got '0'"),
        (["0,1", "noon,2"], r"line 3: must be a time and a price, as .*; got 'noon,2'"),
        (["0,1,2"], r"line 2: must be a time and a price"),
        (["2024-03-01T13:00:00,1"], r"line 2: must be a time and a price"),
        (["0,nan"], r"line 2: must be a time and a price"),
        (["0,1e9"], r"line 2: a price must be within \+-1000000"),
        ([], r"no row follows the first"),
    ],
)
def test_a_row_that_is_no_price_is_named_by_its_line(tmp_path, rows, words):
    with pytest.raises(MachineError, match=words):
        prices.read_prices(tariff(tmp_path, *rows))


def test_a_file_that_changes_is_read_again(tmp_path):
    read = [prices.read_prices(tariff(tmp_path, row))[1].tolist() for row in ("0,1", "0,2", "0,2")]
    assert read == [[1_000_000], [2_000_000], [2_000_000]]


def test_generated_prices_are_near_one_and_cheaper_at_night_and_at_weekends():
    drawn = np.array([prices.generated((seed,), 0, 168) for seed in range(200)]) / prices.MILLIONTHS
    assert abs(drawn.mean() - 1) < 0.03
    assert 0.35 < drawn.std() < 0.45
    by_day = drawn.mean(axis=0).reshape(7, 24)
    assert (by_day[:, 3] < by_day[:, 8]).all() and (by_day[:, 3] < by_day[:, 19]).all()
    assert 0.75 < by_day[5:].mean() / by_day[:5].mean() < 0.89
    longer = prices.generated((1,), 0, 400)
    assert longer[:168].tolist() == prices.generated((1,), 0, 168).tolist()


def test_errors_of_forecasts_have_the_deviation_stated_and_hours_go_together():
    price = prices.generated((0,), 0, 480)
    drawn = np.array([prices.errors((seed,), 0.3, price) for seed in range(200)])
    a_day_ahead = 24 * drawn / price
    assert abs(a_day_ahead.mean()) < 0.02
    assert 0.28 < a_day_ahead.std() < 0.32
    together = np.mean(a_day_ahead[:, 1:] * a_day_ahead[:, :-1]) / a_day_ahead.var()
    assert 0.8 < together < 0.9


def test_a_forecast_that_is_wrong_makes_a_job_wait_in_vain(tmp_path):
    """Flat prices pay no delay, noisy forecasts say they do, and charges go by prices."""
    path = tariff(tmp_path, "0,1")
    jobs = workload_of([(0, 3600, 3600, 1, 0)], 4)
    starts = {
        noise: hpcgym.simulate(jobs, events=[Price(path, kappa=0.001, noise=noise)])
        for noise in (0, 1)
    }
    assert starts[0].start_time.tolist() == [0]
    assert starts[1].start_time[0] > 0
    cost = {noise: made.metrics()["energy_cost"] for noise, made in starts.items()}
    assert cost[0] == pytest.approx(cost[1])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("price:cap=2", "cap must be from 0 to 1 or inf, got 2"),
        ("price:kapa=2", "did you mean 'kappa'"),
        ("price:seed=-1", "seed must be whole, >= 0"),
        ("price:noise=-1", "noise must be from 0 to 10, got -1"),
        ("price:idle=inf", "idle must be from 0 to 1, got inf"),
    ],
)
def test_what_is_no_price_is_refused(text, words):
    with pytest.raises(PolicyError, match=words):
        hpcgym.simulate(hpcgym.load_workload("tiny"), events=text)


def test_modes_that_ask_no_event_are_refused_where_it_holds_jobs():
    tiny = hpcgym.load_workload("tiny")
    with pytest.raises(PolicyError, match="holds jobs back, which passes of backfill 'easy'"):
        hpcgym.simulate(tiny, events="price:kappa=1", backfill="conservative")
    assert "energy_cost" in hpcgym.simulate(tiny, events="price", backfill="depth:k=2").metrics()
    with pytest.raises(HpcgymError, match=r"of/1/nowhere\.csv: no such file"):
        hpcgym.simulate(tiny, events="price:file=./of/1/nowhere.csv")
