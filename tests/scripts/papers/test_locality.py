"""The locality study: its engine against a plain-Python reference and SimGrid, and its rerun."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import reference_locality as reference
from hpcgym import Workload, load_workload, simulate
from hpcgym.machine import Machine, NodeType
from papers.locality import claims as results
from papers.locality import engine, page, sharing
from papers.locality import run as study
from papers.locality.platform import (
    CLUSTER_HOSTS,
    CLUSTERS,
    HOSTS,
    LAYOUTS,
    MULTIPLIERS,
    PRINTED_LINK,
    Platform,
    heterogeneous,
    homogeneous,
    levelled,
)
from papers.locality.sharing import Activities, begin, rates

DATA = Path(__file__).parents[2] / "data" / "locality"
ORACLE = Path(__file__).parents[2] / "simgrid_oracle.py"
CASES = [
    case
    for name in ("simgrid-cases.json", "tie.json")
    for case in json.loads((DATA / name).read_text(encoding="utf-8"))["cases"]
]
DUPLEX = {"full-duplex": 1.0, "half-duplex": 2.0}
SIMGRID_DUPLEX = {1.0: "SPLITDUPLEX", 2.0: "SHARED"}

PLATFORMS = [
    homogeneous(),
    homogeneous(link=PRINTED_LINK, half_duplex=True),
    heterogeneous("high", "o4"),
    heterogeneous("low", "o2", half_duplex=True),
]
SHARING = {"fair-bottleneck": reference.fair_bottleneck, "max-min": reference.max_min}

seeds = st.integers(0, 2**32 - 1)


def activities_on(
    hosts: Sequence[Sequence[int]], flop: Sequence[float], traffic: Sequence[float]
) -> Activities:
    """Return jobs that are to run on these hosts."""
    clusters = [np.bincount(np.array(one) // CLUSTER_HOSTS, minlength=CLUSTERS) for one in hosts]
    zeros = [np.zeros(len(hosts)) for _ in range(4)]
    return Activities(np.array(flop), np.array(traffic), zeros[0], np.array(clusters), *zeros[1:])


def plainly(platform: Platform) -> reference.Platform:
    """Return a platform as the reference takes it."""
    return reference.Platform(*platform[:5], half_duplex=platform.directions == 2.0)


def hosts_of(words: NDArray[np.uint64]) -> list[int]:
    """Return the hosts of a set."""
    bits = int(words[0]) | int(words[1]) << 64
    return [host for host in range(HOSTS) if bits >> host & 1]


def words_of(hosts: Sequence[int]) -> NDArray[np.uint64]:
    """Return a set of hosts."""
    bits = sum(1 << int(host) for host in hosts)
    return np.array([bits % 2**64, bits >> 64], dtype=np.uint64)


def drawn_log(n_jobs: int, *, widest: int = CLUSTER_HOSTS, seed: int = 0) -> Workload:
    """Return drawn jobs of the study's ranges, with requests below and above its walltimes."""
    generator = np.random.default_rng(seed)
    run = generator.integers(study.SHORTEST_S, study.LONGEST_S + 1, n_jobs)
    return Workload.from_arrays(
        np.zeros(n_jobs, dtype=np.int64),
        run,
        run * generator.choice([2, 1_500], n_jobs),
        generator.integers(1, widest + 1, n_jobs),
        machine_processors=HOSTS,
    )


# --- Against SimGrid ------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("duplex", DUPLEX)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}")
def test_completions_are_those_that_simgrid_recorded(case: dict[str, Any], duplex: str) -> None:
    by_cluster = (np.array(case[key]) for key in ("cp", "bw_c", "bw_s"))
    platform = Platform(*by_cluster, case["bw_b"], case["lat"], DUPLEX[duplex])
    hosts, flop, traffic, start = (
        [job[key] for job in case["jobs"]] for key in ("hosts", "flop", "bytes", "start")
    )
    ended = engine.replay(np.array(start), activities_on(hosts, flop, traffic), platform)
    assert ended == pytest.approx(case["completion_times"][duplex], rel=1e-9)


@cache
def python_with_simgrid() -> str | None:
    """Return a Python that has SimGrid; distributions install it for their own one alone."""
    for name in (sys.executable, "python3", "/usr/bin/python3"):
        python = shutil.which(name)
        asked = [python or name, "-c", "import simgrid"]
        if python and subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            return python
    return None


@cache
def candidates() -> Workload:
    """Return the log that the study draws from, or drawn jobs where it is not at hand."""
    folder = os.environ.get("HPCGYM_TRACES", "")
    path = Path(folder, f"{study.LOG}.swf.gz")
    return study.candidates(load_workload(path)) if path.is_file() else drawn_log(2_000)


WHOLE_RUNS = [
    (variant, 4 * place + number, platform)
    for place, variant in enumerate(engine.VARIANTS)
    for number, platform in enumerate([PLATFORMS[0], homogeneous(half_duplex=True), *PLATFORMS[2:]])
]


@pytest.mark.parametrize(("variant", "seed", "platform"), WHOLE_RUNS)
def test_a_whole_run_ends_its_jobs_when_simgrid_does(
    variant: str, seed: int, platform: Platform
) -> None:
    """Twenty runs of 300 jobs, with factors from 0 to 38e7; SimGrid gets our starts and hosts."""
    python = python_with_simgrid()
    if python is None:
        pytest.skip("no Python here has the module simgrid (Debian: python3-simgrid)")
    jobs = study.draw(candidates(), seed)
    activities = engine.activities_of(jobs, study.F_COMP, 2e7 * seed)
    ran = engine.simulate(jobs.processors, activities, platform, variant)
    assert not ran.killed.any()
    columns = (ran.start, ran.hosts, activities.flop, activities.traffic)
    asked = {
        **dict(zip(("cp", "bw_c", "bw_s"), (one.tolist() for one in platform[:3]), strict=True)),
        "bw_b": platform.backbone,
        "lat": platform.latency,
        "duplex": SIMGRID_DUPLEX[platform.directions],
        "jobs": [
            {"start": start, "hosts": hosts_of(hosts), "flop": flop, "bytes": traffic}
            for start, hosts, flop, traffic in zip(*columns, strict=True)
        ],
    }
    answer = subprocess.run(
        [python, str(ORACLE)], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    assert ran.end == pytest.approx(json.loads(answer.stdout.splitlines()[-1]), rel=1e-9)


# --- Against the reference ------------------------------------------------------------------------


@pytest.mark.parametrize("sharing", SHARING)
@given(seed=seeds, number=st.integers(0, len(PLATFORMS) - 1))
def test_rates_are_those_of_the_reference(sharing: str, seed: int, number: int) -> None:
    platform = PLATFORMS[number]
    generator = np.random.default_rng(seed)
    free = generator.permutation(HOSTS)
    sizes = generator.integers(1, CLUSTER_HOSTS + 1, generator.integers(1, 12))
    ends = np.cumsum(sizes[np.cumsum(sizes) <= HOSTS])
    hosts = np.split(np.sort(free) if generator.random() < 0.5 else free, ends)[:-1]
    run = generator.integers(study.SHORTEST_S, study.LONGEST_S, len(hosts))
    traffic = run * generator.choice([0.0, 1e7, 3.9e8], len(hosts))
    activities = activities_on(hosts, run * study.F_COMP, traffic)
    jobs = [
        reference.Job(len(one), run * study.F_COMP, sent, 0.0, [int(host) for host in one])
        for one, run, sent in zip(hosts, run, traffic, strict=True)
    ]
    ours = rates(np.arange(len(hosts)), activities, platform, sharing == "fair-bottleneck")
    assert ours == pytest.approx(SHARING[sharing](jobs, plainly(platform)), rel=1e-9)


@given(seed=seeds, variant=st.sampled_from(list(engine.VARIANTS)))
def test_hosts_of_a_hole_are_those_of_the_reference(seed: int, variant: str) -> None:
    generator = np.random.default_rng(seed)
    free = np.flatnonzero(generator.random(HOSTS) < generator.choice([0.1, 0.5, 0.9]))
    for size in (1, 2, 3, 5, 8, 13, 16):
        expected = reference.PLACEMENTS[variant](set(free.tolist()), size)
        words, counts = words_of(free), np.zeros(CLUSTERS, dtype=np.int64)
        code = engine.VARIANTS[variant]
        assert engine.has_room(*words, size, code, counts) == bool(expected)
        if expected:
            taken = engine.place(*words, size, code, counts)
            assert hosts_of(np.array(taken, dtype=np.uint64)) == expected


@given(
    seed=seeds,
    variant=st.sampled_from(list(engine.VARIANTS)),
    sharing=st.sampled_from(list(SHARING)),
    number=st.integers(0, len(PLATFORMS) - 1),
    limit_factor=st.sampled_from([4, 30, study.F_LIMIT]),
    n_jobs=st.sampled_from([10, 20, 40]),
)
def test_starts_hosts_and_ends_are_those_of_the_reference(
    seed: int, variant: str, sharing: str, number: int, limit_factor: int, n_jobs: int
) -> None:
    """With small factors of the limit, jobs are killed and reservations come true."""
    platform = PLATFORMS[number]
    jobs = drawn_log(n_jobs, seed=seed)
    jobs = replace(jobs, requested_time=limit_factor * jobs.run_time)
    activities = engine.activities_of(jobs, study.F_COMP, 2e7 * (seed % 20))
    columns = (jobs.processors, activities.flop, activities.traffic, activities.limit)
    plain = [reference.Job(*(x.item() for x in row)) for row in zip(*columns, strict=True)]
    ran = engine.simulate(jobs.processors, activities, platform, variant, sharing=sharing)
    reference.simulate(plain, plainly(platform), variant, SHARING[sharing])
    assert ran.start == pytest.approx([job.start for job in plain], rel=1e-9)
    assert [hosts_of(words) for words in ran.hosts] == [job.hosts for job in plain]
    assert ran.end == pytest.approx([job.end for job in plain], rel=1e-9)
    assert ran.killed.tolist() == [job.left >= 1e-10 for job in plain]


@pytest.mark.long
@pytest.mark.parametrize("variant", sorted(engine.VARIANTS))
def test_without_a_network_every_variant_schedules_as_a_machine_of_nodes_does(variant: str) -> None:
    log = drawn_log(300)
    jobs = engine.activities_of(log, f_comp=1e6, f_comm=0.0)
    platform = homogeneous()._replace(speed=np.full(CLUSTERS, 1e6), latency=0.0)  # whole seconds
    run = engine.simulate(log.processors, jobs, platform, variant)
    nodes = tuple(NodeType(CLUSTER_HOSTS, cpus=1, group=f"c{k}") for k in range(CLUSTERS))
    on_nodes = Workload.from_arrays(
        log.submit_time, log.run_time, log.requested_time, log.processors, machine=Machine(nodes)
    )
    placement = "lowest" if variant == "basic" else variant.replace(" ", "-")
    schedule = simulate(on_nodes, backfill="conservative", placement=placement, kill_at_limit=False)
    assert schedule.placement is not None
    assert np.abs(schedule.start_time - run.start).max() < 1e-6
    for job in range(len(log)):
        assert list(schedule.placement.of(job)) == hosts_of(run.hosts[job])


@pytest.mark.parametrize("module", [engine, sharing], ids=lambda module: module.__name__)
def test_kernels_call_none_of_another_file(module: ModuleType) -> None:
    """The cache on disk would keep them when the other file changes."""
    kernels = {name: one for name, one in vars(module).items() if hasattr(one, "py_func")}
    own = {name for name, one in kernels.items() if one.py_func.__module__ == module.__name__}
    called = {name for one in own for name in kernels[one].py_func.__code__.co_names}
    assert len(own) >= 8 and not called & (set(kernels) - own)


# --- Platform and jobs ----------------------------------------------------------------------------


def test_a_job_alone_takes_what_its_slowest_resource_needs() -> None:
    """16 hosts, 8 in each of two clusters: 192 ordered pairs load a switch, 128 the backbone."""
    activities = activities_on([range(8, 24)], [1e9], [1e9])
    platform = homogeneous()
    begin(0.0, 0, activities, platform)
    assert activities.latency[0] == 3 * 24e-9
    slowest = max(1e9 / 286.097e3, 15 * 1e9 / 1.25e8, 184 * 1e9 / 1.25e9, 128 * 1e9 / 1.25e9)
    assert 1 / rates(np.array([0]), activities, platform, True)[0] == pytest.approx(slowest)


def test_all_layouts_but_the_printed_o2_have_the_same_clusters() -> None:
    same = [
        layout for layout, kinds in LAYOUTS.items() if sorted(kinds) == [1, 1, 1, 2, 2, 2, 3, 3]
    ]
    assert same == ["o1", "o3", "o4", "o2fix"]
    assert LAYOUTS["o2"].count(3) == 3


def test_levelled_clusters_have_the_hardware_of_the_uneven_ones() -> None:
    for kind in MULTIPLIERS:
        for layout in ("o1", "o2fix", "o3", "o4"):
            uneven, even = heterogeneous(kind, layout), levelled(kind)
            for one, other in zip(uneven[:3], even[:3], strict=True):
                assert one.sum() == pytest.approx(other.sum()) and np.ptp(other) == 0


def test_jobs_of_a_draw_fit_the_study_and_keep_the_order_of_the_draw() -> None:
    log = drawn_log(500, widest=20)
    fitting = study.candidates(log)
    assert fitting.processors.max() <= CLUSTER_HOSTS < log.processors.max()
    jobs = study.draw(fitting, 3)
    chosen = np.random.default_rng(3).choice(len(fitting), study.N_JOBS, replace=False)
    assert jobs.run_time.tolist() == fitting.run_time[chosen].tolist()
    asked = np.maximum(fitting.requested_time, 1_000 * fitting.run_time)[chosen]
    assert jobs.requested_time.tolist() == asked.tolist()
    assert (asked > 1_000 * jobs.run_time).any() and not jobs.submit_time.any()


@pytest.mark.long
def test_log_of_the_study_has_the_jobs_that_the_page_counts() -> None:
    log = candidates()
    if log.name.startswith("CEA"):
        assert len(log) == 10_464


def test_the_study_has_as_many_runs_as_the_paper_and_those_of_o2fix() -> None:
    runs = {
        one.name: len(one.f_comm) * len(engine.VARIANTS) * one.seeds for one in study.EXPERIMENTS
    }
    layouts = {one.name: len(one.layouts) for one in study.EXPERIMENTS}
    assert {name: runs[name] * layouts[name] for name in runs} == {
        "homogeneous": 4_000,
        "high": 5_000,
        "low": 5_000,
    }


# --- The rerun ------------------------------------------------------------------------------------


FACTORS = (0.0, 2e7, 6e7, 1e8, 2e8, 3.8e8)
SMALL = [replace(one, seeds=2, f_comm=FACTORS) for one in study.EXPERIMENTS]


@pytest.fixture(scope="module")
def rerun(tmp_path_factory: pytest.TempPathFactory) -> study.Rerun:
    """All experiments with two draws of 30 jobs, drawn jobs in place of the log's."""
    store = tmp_path_factory.mktemp("rerun") / "unfinished.sqlite"
    others = [replace(reading, experiments=(SMALL[0],)) for reading in study.OTHERS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "load_workload", lambda name: drawn_log(100))
        return study.rerun(store, experiments=SMALL, others=others, n_jobs=30)


def test_every_run_is_there_once(rerun: study.Rerun) -> None:
    key = ["reading", "experiment", "layout", "seed", "variant", "f_comm"]
    runs_of_a_platform = 2 * len(FACTORS) * len(engine.VARIANTS)
    n_platforms = 1 + 2 * len(LAYOUTS) + len(study.OTHERS)
    assert len(rerun.runs) == n_platforms * runs_of_a_platform
    assert not rerun.runs.duplicated(key).any()
    assert (rerun.runs["inside"] <= 30).all() and rerun.candidates["jobs"].sum() == 100


def test_readings_change_what_they_name(rerun: study.Rerun) -> None:
    """Jobs that send nothing take as long in each; slow links take longer, and kill."""
    runs = rerun.runs[(rerun.runs["experiment"] == "homogeneous")]
    wide = runs.pivot_table(
        index=["seed", "variant"], columns=["f_comm", "reading"], values="makespan"
    )
    default = wide[3.8e8, "default"]
    for reading in study.OTHERS[:3]:
        assert (wide[0.0, reading.name] == wide[0.0, "default"]).all()
        assert (wide[3.8e8, reading.name] != default).any()
    assert (wide[3.8e8, "links as printed"] > default).all()
    for reading in study.LEVELLED.values():
        assert (wide[0.0, reading.name] < wide[0.0, "default"]).all()
    killed = runs.groupby("reading")["killed"].sum()
    assert killed["links as printed"] > 0 == killed["default"]


def made(makespan: Callable[[pd.Series], float]) -> study.Rerun:
    """Return a rerun whose makespans a function of the run says."""
    rows = pd.DataFrame(
        [
            {
                "reading": "default",
                "experiment": one.name,
                "layout": layout,
                "seed": seed,
                "variant": variant,
                "f_comm": f_comm,
            }
            for one in study.EXPERIMENTS
            for layout in one.layouts
            for seed in range(one.seeds)
            for variant in engine.VARIANTS
            for f_comm in one.f_comm[::10]
        ]
    )
    rows["makespan"] = rows.apply(makespan, axis=1)
    return study.Rerun(rows, pd.DataFrame(), 0.0, 0.0)


RANK = {
    name: place
    for place, name in enumerate(
        ("basic", "best-effort contiguous", "contiguous", "best-effort local", "local")
    )
}


def as_claimed(run: pd.Series) -> float:
    """Say the makespan of a run as the paper has it."""
    noise = np.random.default_rng([int(run.seed), int(run.f_comm / 1e7)]).uniform(-1, 1)
    rank = RANK[run.variant]
    worse = {"homogeneous": 1.0}.get(run.experiment, 2.0) if run.variant == "basic" else 1.0
    return 1e6 + (5 - rank) * worse * (run.f_comm * (1e-2 + 1e-3 * noise) + 1e3 * noise + 1)


@pytest.mark.long
def test_claims_hold_where_runs_are_as_claimed() -> None:
    assert [one.verdict for one in results.claims(made(as_claimed))] == ["holds"] * 9


@pytest.mark.long
def test_claims_do_not_hold_where_runs_are_otherwise() -> None:
    """Local is worst and varies most, layouts and heterogeneity matter; the order is the same."""
    mirror = {name: list(RANK)[4 - place] for name, place in RANK.items()}

    def otherwise(run: pd.Series) -> float:
        factor = {"o1": 1.0, "o3": 1.1, "-": 0.5}.get(run.layout, 1.2)
        factor *= 2.0 if run.experiment == "low" else 1.0
        factor *= 2.0 if "local" in run.variant and run.layout != "-" else 1.0
        return factor * as_claimed(run.replace(mirror).replace(["high", "low"], "homogeneous"))

    verdicts = [one.verdict for one in results.claims(made(otherwise))]
    assert verdicts == [*["no"] * 7, "holds", "no"]


def test_trend_and_spread_are_those_of_the_line_the_runs_lie_on() -> None:
    line = made(lambda run: 5e5 + 3e-2 * run.f_comm + 100.0 * (-1) ** run.seed)
    found = results.trend(line, "homogeneous", "local")
    assert found == pytest.approx((3e-2, 5e5, 100.0, 100.0 * (20 / 19) ** 0.5))


@pytest.mark.long
def test_page_shows_every_table_and_ends_with_the_claims(rerun: study.Rerun) -> None:
    text = page.page(rerun, "the command", "picture.png")
    assert text.rstrip().splitlines()[-1].count("**") == 2
    (table,) = page.beside(rerun).values()
    assert "## Findings" in text and "(locality_ratios.csv)" in text
    assert "best-effort local" in set(table["over basic"]) and not table.isna().to_numpy().any()
    assert "](picture.png)" in text and "nan" not in text


@pytest.mark.long
def test_pictures_are_drawn_of_every_experiment(rerun: study.Rerun, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from papers.locality.figures import draw

    for path in draw(rerun, tmp_path):
        assert path.read_bytes().startswith(b"\x89PNG")
