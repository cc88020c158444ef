"""Measure the speed of machines of nodes beside machines that count processors, as tables.

Rates are per CPU second, the best of several runs. Compare ratios taken in one run, not rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from rich.table import Table

from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scenario.slicing import slice_log
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.machine import Machine, NodeType, Partition
from research.benchmark import cpu_seconds
from research.step_benchmark import MEASURED, quickest, random_actions

YEAR_S = 365 * 86_400
JOBS_OF_A_YEAR = 500_000
CPUS = 32
"""Cpus of a node."""

MORE_JOBS = 5_000
"""Jobs that run first or come later, besides those of a queue."""

INTERVAL_S, INTERVALS = 300, 6
"""A stop of a simulation that is measured, s; stops while the queue is long: some 100 events."""


def site(n_nodes: int) -> Machine:
    """Return a site: CPU, big-memory and GPU nodes, three partitions that overlap."""
    plain, large = n_nodes * 8 // 10, n_nodes // 10
    nodes = (
        NodeType(plain, CPUS, memory_mb=128_000, group="a"),
        NodeType(large, CPUS, memory_mb=1_024_000, group="b"),
        NodeType(n_nodes - plain - large, CPUS, gpus=4, memory_mb=256_000, group="c"),
    )
    partitions = (
        Partition("batch", f"0-{plain + large - 1}", tier=1),
        Partition("special", f"{plain}-{n_nodes - 1}", tier=1),
        Partition("debug", f"0-{n_nodes // 20}", max_time_s=3_600, max_nodes=4, tier=2),
    )
    return Machine(nodes, partitions)


def site_jobs(n_jobs: int, n_nodes: int, load: float) -> Workload:
    """Return jobs for such a site, at the rate of 500,000 a year.

    A job has up to a twentieth of the nodes. Run times are log-uniform and scaled to the load.
    """
    draw = np.random.default_rng(0)
    machine = site(n_nodes)
    submit = np.sort(draw.integers(0, YEAR_S * n_jobs // JOBS_OF_A_YEAR, n_jobs))
    partition = draw.choice(3, n_jobs, p=(0.7, 0.15, 0.15))
    cpus = draw.choice([1, 2, 4, 8, 16, 32], n_jobs)
    widest = np.array([n_nodes // 20, n_nodes // 40, 2])[partition]
    chunks = np.floor(widest ** draw.uniform(0, 1, n_jobs)).astype(np.int64)
    wants_gpus = (partition == 1) & (cpus <= 8)
    memory = cpus * draw.choice([0, 1_000, 2_000, 4_000], n_jobs)
    run = 10 ** draw.uniform(1.5, 4.9, n_jobs)
    run *= load * machine.cpus * int(submit[-1]) / float((run * cpus * chunks).sum())
    run = np.where(partition == 2, np.minimum(run, 3_000), run).astype(np.int64)
    request = 1 + np.floor(run * draw.choice([1, 1.5, 2, 5, 10], n_jobs)).astype(np.int64)
    return Workload.from_arrays(
        submit,
        run,
        np.where(partition == 2, np.minimum(request, 3_600), request),
        cpus * chunks,
        machine=machine,
        chunks=chunks,
        gpus=wants_gpus.astype(np.int64),
        memory_mb=memory,
        partition=partition,
        name=f"{n_nodes} nodes",
    )


def counted(workload: Workload) -> Workload:
    """Return the same jobs on a machine that counts its processors."""
    return Workload.from_arrays(
        workload.submit_time,
        workload.run_time,
        workload.requested_time,
        workload.processors,
        machine_processors=workload.machine_processors,
        user=workload.user,
        name=f"{workload.name}, counted",
    )


def _row(workload: Workload, settings: SchedulerSettings, repeats: int) -> list[str]:
    """Return CPU time, time of a pass, and the longest queue, of a whole simulation."""
    simulator = Simulator(workload, settings)
    seconds = cpu_seconds(simulator.run, before=simulator.reset, repeats=repeats)
    counts = simulator.counts()
    a_pass = seconds / counts["passes"] * 1e6
    return [f"{seconds:.2f}", f"{a_pass:.1f}", f"{counts['max_waiting']:,.0f}"]


def over_nodes(n_jobs: int, repeats: int) -> Table:
    """Measure EASY on sites of 1,000 and 10,000 nodes at several loads, and on counts beside it."""
    columns = ("nodes", "load", "run, s", "us/pass", "waiting, at most", "counted, s")
    table = Table(*columns, title="EASY on nodes, FCFS")
    settings = SchedulerSettings()
    for n_nodes in (1_000, 10_000):
        for load in (0.6, 0.8, 0.9):
            jobs = site_jobs(n_jobs, n_nodes, load)
            plain, *_ = _row(counted(jobs), settings, repeats)
            table.add_row(f"{n_nodes:,}", f"{load}", *_row(jobs, settings, repeats), plain)
    return table


def over_node_settings(n_jobs: int, repeats: int) -> Table:
    """Measure every backfilling mode and placement rule on a site of 1,000 nodes."""
    columns = ("backfill", "placement", "run, s", "us/pass", "waiting, at most")
    table = Table(*columns, title="Modes and placement rules, 1,000 nodes, load 0.8")
    jobs = site_jobs(n_jobs, 1_000, 0.8)
    modes = ("none", "easy", "depth:k=2", "depth:k=8", "conservative:planned=100", "conservative")
    rules = ("tightest", "fewest-groups", "best-effort-contiguous", "best-effort-local")
    for mode, rule in [*((mode, "lowest") for mode in modes), *(("easy", rule) for rule in rules)]:
        settings = SchedulerSettings(backfill=mode, placement=rule)
        table.add_row(mode, rule, *_row(jobs, settings, repeats))
    return table


def busy_site(waiting: int, n_nodes: int, *, distinct: bool) -> Workload:
    """Return jobs of which a first burst fills a site, and so many of them wait.

    Args:
        waiting: Jobs that wait after the first pass.
        n_nodes: Nodes of the site.
        distinct: Whether no two jobs ask for the same memory. Else there are some 100 shapes.
    """
    jobs = site_jobs(waiting + MORE_JOBS, n_nodes, 1.0)
    burst, missing = 0, waiting
    while missing > 0:
        burst += missing
        submit = np.maximum(jobs.submit_time - jobs.submit_time[burst - 1], 0)
        made = replace(jobs, submit_time=submit)
        missing = waiting - len(_after_first_pass(made).waiting)
    if not distinct:
        return made
    assert jobs.memory_mb is not None
    memory = jobs.memory_mb // 2 + np.random.default_rng(1).permutation(len(jobs))
    return replace(made, memory_mb=memory)


def _after_first_pass(workload: Workload) -> Simulator:
    """Return a simulation under EASY, some minutes after its first pass."""
    simulator = Simulator(workload, decide=INTERVAL_S)
    simulator.run()  # the first decision comes before the first pass
    simulator.run()
    return simulator


def _pass_us(workload: Workload) -> tuple[float, float]:
    """Return the mean time of a pass while the queue is long, us, and the jobs that wait then."""
    simulator = _after_first_pass(workload)
    before = simulator.counts()
    seconds = cpu_seconds(lambda: [simulator.run() for _ in range(INTERVALS)])
    after = simulator.counts()
    passes = after["passes"] - before["passes"]
    waited = [count["passes"] * count["mean_waiting"] for count in (before, after)]
    return seconds / passes * 1e6, (waited[1] - waited[0]) / passes


def over_waiting_on_nodes(waiting: int, most_nodes: int) -> Table:
    """Measure a pass under EASY while the machine grows tenfold."""
    kinds = ("100 shapes, us/pass", "waiting", "all distinct, us/pass", "waiting")
    table = Table("nodes", *kinds, title="A pass on nodes as the machine grows, EASY")
    n_nodes = 100
    while n_nodes <= most_nodes:
        cells = []
        for distinct in (False, True):
            taken, queue = _pass_us(busy_site(waiting, n_nodes, distinct=distinct))
            cells += [f"{taken:,.1f}", f"{queue:,.0f}"]
        table.add_row(f"{n_nodes:,}", *cells)
        n_nodes *= 10
    return table


def steps_on_nodes(scenario: str, numbers: Sequence[int], repeats: int) -> Table:
    """Measure steps a second on a scenario with nodes, and on the same jobs counted beside it."""
    table = Table("environments", "nodes", "counted", "ratio", title=f"Steps/s, {scenario}")
    episodes = Episodes(scenario)
    spec = episodes.scenario
    flat = replace(spec, machine=replace(spec.machine, nodes=None))
    log, *_ = slice_log(spec)
    plain = Episodes(flat, workload=counted(log))
    for n_envs in numbers:
        rates = []
        for played in (episodes, plain):
            envs = SchedulingVectorEnv(played, num_envs=n_envs, copy=False, threads=1, **MEASURED)
            envs.reset(seed=0)
            actions = random_actions(envs)
            rates.append(n_envs / quickest(envs, actions, max(20_000 // n_envs, 50), repeats))
        table.add_row(
            f"{n_envs}", *(f"{rate:,.0f}" for rate in rates), f"{rates[0] / rates[1]:.2f}"
        )
    return table
