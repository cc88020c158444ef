"""The bundled logs: their entries draw and state them correctly."""

import hashlib
import importlib.util
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from hpcgym import Workload, register_policy, simulate
from hpcgym.base.registry import shelf_entries, shelf_folders
from hpcgym.core.policy import unregister_policy
from hpcgym.trace import check_log, entry, find_trace, load_workload, read_log, verify
from hpcgym.trace.packing import read_bytes
from hpcgym.trace.swf import write_swf

SYNTHETIC = ("synthetic-256", "synthetic-busy-weeks", "synthetic-fair-share")
SCRIPT = Path(__file__).parents[2] / "scripts" / "make_traces.py"


def drawing(text, heading):
    """Return the Gantt chart that follows a heading in an entry: one string per processor."""
    after = text[text.index(heading) :].split("\n\n")[1]
    return [line.strip() for line in after.splitlines()[1:]]


def starts_in(chart):
    """Return the start of each job in a chart, s, having checked its length and width."""
    tiny = load_workload("tiny")
    starts = []
    for job, run, width in zip(tiny.job_id, tiny.run_time, tiny.processors, strict=True):
        columns = sorted({row.index(str(job)) for row in chart if str(job) in row})
        assert len(columns) == 1
        assert [row.count(str(job)) for row in chart if str(job) in row] == [run // 10] * width
        starts.append(10 * columns[0])
    return starts


@pytest.mark.long
@pytest.mark.parametrize("name", shelf_entries("traces"))
def test_entry_states_what_its_log_is(name):
    known, log = entry(name), read_log(find_trace(name))
    is_table = log.requests is not None  # whose machine and waits are stated nowhere
    found = check_log(log, machine_processors=known.processors if is_table else None)
    assert verify([name])[0].status == "ok"
    assert known.jobs == found.cleaning.jobs == found.cleaning.records
    assert known.processors == found.cleaning.machine_processors
    assert is_table or known.generated or found.lacks == ()  # what is generated has no waits


def test_table_of_tiny_in_its_entry_is_tiny():
    rows = [line.split() for line in entry("tiny").notes.splitlines() if line[:6].strip() == ""]
    table = [[int(cell) for cell in row] for row in rows if len(row) == 6 and row[0].isdigit()]
    tiny = load_workload("tiny")
    columns = (
        *(tiny.job_id, tiny.submit_time, tiny.run_time),
        *(tiny.requested_time, tiny.processors, tiny.user),
    )
    assert table == np.stack(columns, axis=1).tolist()


def test_first_drawing_of_tiny_is_fcfs():
    schedule = simulate(load_workload("tiny"), "FCFS")
    chart = drawing(entry("tiny").notes, "FCFS with EASY backfilling")
    assert schedule.start_time.tolist() == starts_in(chart)
    assert schedule.wait_time.tolist() == load_workload("tiny").wait_time.tolist()
    assert np.flatnonzero(schedule.backfilled).tolist() == [2]


def test_second_drawing_of_tiny_is_the_best_of_all_orders():
    """All 8! orders at once: copies of tiny so far apart that each finds the machine empty."""
    tiny, gap_s = load_workload("tiny"), 10_000
    rank_of_job = np.array(list(permutations(range(8))))
    n_copies = len(rank_of_job)
    first = gap_s * np.arange(n_copies)[:, np.newaxis]
    copies = Workload.from_arrays(
        (tiny.submit_time + first).ravel(),
        *(
            np.tile(column, n_copies)
            for column in (tiny.run_time, tiny.requested_time, tiny.processors)
        ),
        machine_processors=4,
    )
    register_policy("BY-RANK", keys=lambda workload: rank_of_job.ravel().astype(float))
    try:
        schedule = simulate(copies, "BY-RANK")
    finally:
        unregister_policy("BY-RANK")
    starts = schedule.start_time.reshape(n_copies, 8) - first
    bsld = schedule.bsld().reshape(n_copies, 8).mean(axis=1)
    assert (starts + tiny.run_time < gap_s).all()
    best = starts[bsld == bsld.min()]
    drawn = starts_in(drawing(entry("tiny").notes, "The best of all orders"))
    assert (best == drawn).all(axis=1).any()
    assert f"mean bounded slowdown {bsld.min():.4f}" in entry("tiny").notes


def test_figures_of_tiny_hold_and_tell_the_orders_apart():
    notes = entry("tiny").notes.replace("\n", " ")
    tiny = load_workload("tiny")
    figures = [
        f"{policy} {simulate(tiny, policy).bsld().mean():.4f}"
        for policy in ("FCFS", "LCFS", "SPF", "SQF", "SAF", "LAF")
    ]
    assert ", ".join(figures) in notes
    unfilled = simulate(tiny, "FCFS", backfill="none").bsld().mean()
    assert f"FCFS without backfilling {unfilled:.4f}" in notes
    assert len(set(figures)) == 6


def test_orders_differ_clearly_on_the_synthetic_log():
    log = load_workload("synthetic-256")
    mean = {p: simulate(log, p).bsld().mean() for p in ("FCFS", "SPF", "SAF")}
    assert mean["FCFS"] > 1.05 * mean["SPF"] > 2 * mean["SAF"]


@pytest.mark.parametrize("name", SYNTHETIC)
def test_recorded_waits_of_a_synthetic_log_are_a_schedule(name):
    log = load_workload(name)
    assert isinstance(log, Workload)
    assert np.array_equal(log.wait_time, simulate(log, "FCFS").wait_time)


@pytest.fixture(scope="module")
def script():
    """The script that makes the generated logs."""
    spec = importlib.util.spec_from_file_location("make_traces", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.mark.long
@pytest.mark.parametrize("name", SYNTHETIC)
def test_script_makes_the_same_log_again(name, script, tmp_path):
    log = script.of_sessions(name) if name in script.SESSIONS else script.synthetic_256()
    write_swf(tmp_path / "again.swf.gz", log)
    digest = hashlib.sha256(read_bytes(tmp_path / "again.swf.gz")).hexdigest()
    assert digest == entry(name).sha256
    bundled = shelf_folders("traces")[0] / f"{name}.swf.gz"
    assert digest == hashlib.sha256(read_bytes(bundled)).hexdigest()
    assert bundled.stat().st_size < 300_000


def test_script_makes_the_same_table_of_jobs_again(script):
    text = script.hetero_64()
    assert hashlib.sha256(text).hexdigest() == entry("hetero-64").sha256
    assert text == read_bytes(shelf_folders("traces")[0] / "hetero-64.csv.gz")
