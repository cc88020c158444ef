"""Pictures and texts of machines of nodes: what they show, and that it is what the kernels know."""

from dataclasses import replace
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.env.rendering.frame import (
    Frame,
    Head,
    HeldNodes,
    NodesFrame,
    StartedJobs,
    WaitingJobs,
    time_axis,
)
from hpcgym.env.rendering.node_chart import NODES_CHART
from hpcgym.env.rendering.pen import IMAGE_SIZE, JOBS, MACHINE, Chart
from hpcgym.env.rendering.rows import MOST_ROWS, RowPlacement, placed_in_rows, rows_of
from hpcgym.env.rendering.snapshot import take_snapshot
from hpcgym.env.rendering.text import TEXT_GROUPS, TEXT_JOBS, TEXT_WIDTH, ansi
from hpcgym.env.rendering.viewer import Viewer, rgb_array
from hpcgym.env.scenario.load import parse_scenario
from hpcgym.machine import Machine, NodeType, Partition

LEFT_AND_RIGHT = Machine(
    (NodeType(2, 4, group="left"), NodeType(2, 4, gpus=1, memory_mb=8_000, group="right")),
    (Partition("all", "0-3"), Partition("gpu", "2-3", tier=1)),
)


def snapshot_of(env):
    """Return the frame that an environment would show."""
    return take_snapshot("t", env._begun_episode, env._jobs, env._begun_state, 0, env._sim)


SCENARIO = """
description = "Twelve nodes on three switches, two of four partitions joined."
[trace]
file = "FILE"
missing_request = "max"
on_wide_job = "drop"
[[machine.nodes]]
count = 4
cpus = 4
memory_mb = 16000
group = "a"
[[machine.nodes]]
count = 5
cpus = 8
memory_mb = 32000
group = "b"
[[machine.nodes]]
count = 3
cpus = 8
gpus = 2
group = "c"
[[machine.partitions]]
name = "batch"
nodes = "0-5"
[[machine.partitions]]
name = "big"
nodes = "4-8"
tier = 1
[[machine.partitions]]
name = "gpu"
nodes = "9-11"
[machine]
largest_request_s = 172800
[episode]
kind = "week"
rule = "whole"
"""


def small_frame(**changes) -> Frame:
    """Four nodes of 4 cpus at 50 s: job 0 was on node 0, job 1 has half of nodes 1 and 2.

    Job 2 asks for both nodes with a GPU, and can have them at 80 s.
    """
    free = [[4, 0, 0], [2, 0, 0], [2, 0, 6_000], [4, 1, 8_000]]
    nodes = NodesFrame(
        machine=LEFT_AND_RIGHT,
        free=np.array(free),
        held=HeldNodes(np.array([0, 1, 1]), np.array([0, 1, 2]), np.array([4, 2, 2])),
        heads=(Head(job=2, job_id=103, partition=1, shadow_time=80),),
        partition=np.array([1, 0]),
        chunks=np.array([2, 3]),
    )
    both = np.array([0, 1])
    started = StartedJobs(
        both, np.array([0, 20]), np.array([35, 80]), np.array([4, 4]), np.array([False, True])
    )
    waiting = WaitingJobs(
        np.array([2, 3]),
        np.array([103, 104]),
        np.array([30, 5]),
        np.array([20, 100]),
        np.array([8, 3]),
        np.array([False, True]),
    )
    return Frame("made by hand", 16, 50, started, waiting, nodes=nodes._replace(**changes))


def test_names_that_would_steer_a_terminal_are_shown_as_escapes():
    name = "g\x1b[2J\n\0\u202e"
    nodes = (NodeType(2, 4, group=name), NodeType(2, 4, gpus=1, memory_mb=8_000, group="right"))
    machine = Machine(nodes, (Partition("all", "0-3"), Partition(name, "2-3", tier=1)))
    frame = replace(small_frame(machine=machine), title=name)
    assert all(line.isprintable() for line in ansi(frame).split("\n"))
    assert rgb_array(frame).any()  # pygame refuses to draw NUL


def crowded_frame(n_groups: int, n_partitions: int, n_waiting: int) -> Frame:
    """Many groups of four nodes, many partitions, many waiting jobs, each the head of one."""
    n = n_groups * 4
    machine = Machine(
        tuple(NodeType(4, 10**5, 4, 10**6, f"switch-{k:05d}") for k in range(n_groups)),
        tuple(Partition(f"partition-{k}", f"{k}-{n - 1}") for k in range(n_partitions)),
    )
    nodes = NodesFrame(
        machine=machine,
        free=np.stack([machine.node_cpus, machine.node_gpus, machine.node_memory_mb], axis=1),
        held=HeldNodes(*(np.empty(0, dtype=np.int64),) * 3),
        heads=tuple(Head(k, k, k % n_partitions, 10**6) for k in range(n_waiting)),
        partition=np.arange(n_waiting) % n_partitions,
        chunks=np.full(n_waiting, 10**4),
    )
    nobody = StartedJobs(*(np.empty(0, dtype=np.int64),) * 4, np.empty(0, dtype=bool))
    queue = np.arange(n_waiting)
    waiting = WaitingJobs(queue, queue, queue, queue, np.full(n_waiting, 10**8), queue < 3)
    return Frame("crowded", machine.cpus, 9, nobody, waiting, nodes=nodes)


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    """A log of chunks in three partitions, busy enough for heads of both components."""
    rng, time = np.random.default_rng(5), 0
    lines = [
        "job_id,submit_time,run_time,requested_time,chunks,cpus,gpus,memory_mb,partition,exclusive"
    ]
    for job in range(1, 1_400):
        time += int(rng.exponential(900))
        name = rng.choice(["batch", "big", "gpu"])
        most = {"batch": 20, "big": 8, "gpu": 6}[name]
        gpus, memory = (1, 0) if name == "gpu" else (0, int(rng.choice([0, 4_000])))
        run = int(rng.exponential(3_600)) + 1
        requested = int(run * rng.choice([1, 3]))
        alone = "true" if rng.random() < 0.1 else "false"
        chunks, cpus = rng.integers(1, most // 2 + 1), rng.integers(1, 5)
        alone = "false" if cpus * chunks > 10 else alone
        values = (job, time, run, requested, chunks, cpus, gpus, memory, name, alone)
        lines.append(",".join(map(str, values)))
    file = tmp_path_factory.mktemp("log") / "jobs.csv"
    file.write_text("\n".join(lines) + "\n")
    return parse_scenario(SCENARIO.replace("FILE", str(file)), name="twelve")


def frames_of(scenario, n: int = 40, *, every: int = 4) -> list[Frame]:
    """Frames of one episode in order."""
    env = gymnasium.make("HPCBatch-v0", scenario=scenario, action="weights").unwrapped
    env.reset(seed=2)
    env.action_space.seed(2)
    shown = []
    for step in range(n * every):
        if step % every == 0:
            shown.append(snapshot_of(env))
        env.step(env.action_space.sample())
    return shown


@pytest.fixture(scope="module")
def frames(scenario):
    return frames_of(scenario)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Machines with nodes of very different sizes, in groups that come back."""
    types = st.builds(
        NodeType,
        st.integers(1, 60),
        st.sampled_from([1, 2, 16, 900]),
        group=st.sampled_from("abcdefgh"),
    )
    return Machine(tuple(draw(st.lists(types, min_size=1, max_size=12))))


@given(machines(), st.integers(1, 50))
def test_rows_are_runs_of_nodes_by_group_and_none_is_too_thin(machine: Machine, most_rows: int):
    rows = rows_of(machine, most_rows)
    order = np.lexsort((np.arange(machine.n_nodes), machine.node_group))
    assert np.isin(np.diff(rows.row[order]), (0, 1)).all() and rows.row[order[0]] == 0
    assert len(rows.cpus) <= most_rows
    assert (rows.cpus * most_rows >= machine.cpus).all()
    assert rows.cpus.tolist() == np.bincount(rows.row, machine.node_cpus).tolist()
    tops = rows.first_cpu + machine.node_cpus
    assert tops[order[0]] == machine.cpus
    assert (rows.first_cpu[order][:-1] == tops[order][1:]).all()


@given(machines())
def test_a_group_that_fills_a_row_shares_none(machine: Machine):
    rows = rows_of(machine, 20)
    of_group = np.bincount(machine.node_group, machine.node_cpus)
    large = of_group * 20 >= machine.cpus
    for row in range(len(rows.cpus)):
        inside = np.unique(machine.node_group[rows.row == row])
        assert len(inside) == 1 or not large[inside].all()


def test_large_nodes_have_a_row_each():
    rows = rows_of(Machine((NodeType(MOST_ROWS, 8),)))
    assert rows.row.tolist() == list(range(MOST_ROWS))
    assert rows_of(Machine((NodeType(MOST_ROWS * 5, 8),))).nodes_in_row.tolist() == [5] * MOST_ROWS


def test_every_job_is_drawn_on_its_nodes_and_no_cpu_twice(frames):
    placement = RowPlacement(frames[0].nodes.machine)
    rows = placement.rows
    assert max(frame.started.running.sum() for frame in frames) > 5
    for frame in frames:
        placed_in_rows(frame, placement)
        started, held = frame.started, frame.nodes.held
        drawn = sorted(
            part for job in started.job[started.running] for part in placement.intervals[job]
        )
        assert all(one[1] <= other[0] for one, other in pairwise(drawn))
        for job in started.job[started.running].tolist():
            cpus = np.zeros(len(rows.cpus), dtype=np.int64)
            np.add.at(cpus, rows.row[held.node[held.job == job]], held.cpus[held.job == job])
            for low, high in placement.intervals[job]:
                row = np.flatnonzero(rows.row_first_cpu <= low)[0]
                cpus[row] -= high - low
                assert high <= rows.row_first_cpu[row] + rows.cpus[row]
            assert not cpus.any()


def test_a_job_is_drawn_where_it_was_whatever_frames_were_seen(frames):
    followed = RowPlacement(frames[0].nodes.machine)
    for frame in frames:
        placed_in_rows(frame, followed)
    alone = placed_in_rows(frames[-1], None)
    assert followed.intervals == alone.intervals


def test_running_jobs_have_what_is_not_free(frames):
    for frame in frames:
        held, running = frame.nodes.held, frame.started.job[frame.started.running]
        now = np.isin(held.job, running)
        cpus = np.bincount(held.node[now], held.cpus[now], minlength=12)
        assert (cpus + frame.nodes.free[:, 0]).tolist() == frame.nodes.machine.node_cpus.tolist()


def rooms(workload, free, job):
    """Return how many chunks of a job the nodes of its partition take; none of a node in part."""
    machine, row = workload.machine, job
    cpus = workload.processors[row] // workload.chunks[row]
    room = free[:, 0] // cpus
    if workload.gpus[row]:
        room = np.minimum(room, free[:, 1] // workload.gpus[row])
    if workload.memory_mb[row]:
        counted = machine.node_memory_mb > 0
        room = np.where(counted, np.minimum(room, free[:, 2] // workload.memory_mb[row]), room)
    if workload.exclusive[row]:
        room = np.where(free[:, 0] == machine.node_cpus, room, 0)
    return int(room[machine.members[workload.partition[row]]].sum())


def test_a_head_is_its_components_first_misfit_and_starts_when_estimates_let_it(scenario):
    env = gymnasium.make("HPCBatch-v0", scenario=scenario, action="weights").unwrapped
    env.reset(seed=2)
    env.action_space.seed(2)
    components_seen = set()
    for _ in range(150):
        env.step(env.action_space.sample())
        frame = snapshot_of(env)
        workload, machine, nodes = env.workload, env.workload.machine, frame.nodes
        first = {}
        for job in frame.waiting.job.tolist():
            component = int(machine.component[workload.partition[job]])
            if component not in first and rooms(workload, nodes.free, job) < workload.chunks[job]:
                first[component] = job
        assert {machine.component[head.partition]: head.job for head in nodes.heads} == first
        components_seen |= set(first)
        for head in nodes.heads:
            ends = np.unique(frame.started.end_time[frame.started.running])
            fitting = [
                end
                for end in ends.tolist()
                if rooms(workload, free_by(frame, workload, end), head.job)
                >= workload.chunks[head.job]
            ]
            assert head.shadow_time == max(min(fitting), frame.now)
    assert components_seen == {0, 1}


def free_by(frame, workload, instant):
    """Return what is free of each node when the jobs with estimated ends by then are gone."""
    held, jobs = frame.nodes.held, frame.started
    free = frame.nodes.free.copy()
    capacity = np.stack([frame.nodes.machine.node_cpus, frame.nodes.machine.node_gpus], axis=1)
    memory = frame.nodes.machine.node_memory_mb
    ending = set(jobs.job[jobs.running & (jobs.end_time <= instant)].tolist())
    for job, node, cpus in zip(*(column.tolist() for column in held), strict=True):
        if job not in ending:
            continue
        if workload.exclusive[job]:
            free[node] = [*capacity[node], memory[node]]
            continue
        chunks = cpus * workload.chunks[job] // workload.processors[job]
        free[node, :2] += [cpus, chunks * workload.gpus[job]]
        free[node, 2] += chunks * workload.memory_mb[job] if memory[node] else 0
    return free


def test_the_queue_shows_higher_tiers_of_a_component_first(frames):
    seen = 0
    for frame in frames:
        names = [frame.nodes.machine.partition_names[one] for one in frame.nodes.partition]
        joined = [name for name in names if name != "gpu"]
        assert joined == sorted(joined, reverse=True)  # "big" before "batch"
        seen += len(set(joined)) == 2
    assert seen


def test_an_episode_that_is_drawn_goes_on_as_one_that_is_not(scenario):
    drawn, plain = (
        gymnasium.make("HPCBatch-v0", scenario=scenario, action="weights", render_mode=mode)
        for mode in ("ansi", None)
    )
    drawn.reset(seed=4), plain.reset(seed=4)
    plain.action_space.seed(4)
    for _ in range(60):
        drawn.render()
        action = plain.action_space.sample()
        (one, reward, *_), (other, same, *_) = drawn.step(action), plain.step(action)
        assert reward == same
        assert all(np.array_equal(one[key], other[key]) for key in other)


def test_a_vector_draws_what_one_environment_draws(scenario):
    settings = {"scenario": scenario, "action": "weights", "render_mode": "ansi"}
    vector = gymnasium.make_vec(
        "HPCBatch-v0", num_envs=2, vectorization_mode="vector_entry_point", **settings
    )
    single = gymnasium.make("HPCBatch-v0", **settings)
    vector.reset(seed=[6, 7]), single.reset(seed=7)
    action = np.zeros(6, dtype=np.float32)
    for _ in range(20):
        vector.step(np.stack([action, action])), single.step(action)
    assert vector.render()[1] == single.render()
    vector.close()


def test_text_shows_what_is_free_in_partitions_and_groups_and_who_is_held_back():
    assert ansi(small_frame()).splitlines() == [
        "made by hand",
        "day 0 00:00:50   busy 4 of 16 processors (25%)   running 1   waiting 2",
        "",
        "partition    nodes  idle         cpus free      GPUs free             GB free  used cpus",
        "gpu              2     1            6 of 8         1 of 2            14 of 16"
        "  #####...............",
        "all              4     2          12 of 16         1 of 2            14 of 16"
        "  #####...............",
        "group        nodes  idle         cpus free      GPUs free             GB free  used cpus",
        "left             2     1            6 of 8              -                   -"
        "  #####...............",
        "right            2     1            6 of 8         1 of 2            14 of 16"
        "  #####...............",
        "",
        "head: job 103 of gpu; reserved in 30 s, day 0 00:01:20",
        "queue:       job  processors       chunks  partition      estimate    waited",
        "     C       103           8        2 x 4  gpu                20 s      30 s",
        "     D       104           3        3 x 1  all               2 min       5 s"
        "  over the threshold",
    ]


def test_text_without_heads_says_so():
    assert "head: none, no job is held back" in ansi(small_frame(heads=()))


def test_text_of_a_crowded_machine_is_cut_and_counted():
    text = ansi(crowded_frame(n_groups=30, n_partitions=11, n_waiting=TEXT_JOBS + 5))
    lines = text.splitlines()
    assert max(map(len, lines)) <= TEXT_WIDTH and len(lines) <= 40
    assert "... and 3 more partitions" in lines
    assert f"... and {30 - TEXT_GROUPS} more groups" in lines
    assert f"... and {TEXT_JOBS + 5 - 3} more heads" in lines
    assert "       ... and 5 more" in lines


def row_of_pixels(image, frame: Frame, node: int, instant: int):
    """Return the colour in the lower half of a node's row at an instant."""
    chart = Chart(NODES_CHART, time_axis(frame), frame.machine_processors)
    low = int(rows_of(frame.nodes.machine).first_cpu[node])
    top, height = chart.y((low, low + 2))
    return tuple(image[top + height // 2, chart.x(instant)].tolist())


def test_an_image_shows_each_job_on_its_nodes_only():
    pytest.importorskip("pygame")
    frame = small_frame()
    image = rgb_array(frame)
    assert image.shape == (IMAGE_SIZE[1], IMAGE_SIZE[0], 3)
    assert [row_of_pixels(image, frame, node, 42) for node in range(4)] == [
        MACHINE,
        JOBS[1],
        JOBS[1],
        MACHINE,
    ]
    later = [row_of_pixels(image, frame, node, 62) for node in range(4)]
    assert later[0] == later[3] == MACHINE and later[1] == later[2] not in (MACHINE, JOBS[1])
    past = [row_of_pixels(image, frame, node, 10) for node in range(4)]
    assert past[1:] == [MACHINE] * 3 and past[0] != MACHINE


def test_an_image_marks_a_heads_start_on_its_partition_only():
    pytest.importorskip("pygame")
    frame = small_frame()
    with_head, without = rgb_array(frame), rgb_array(small_frame(heads=()))
    chart = Chart(NODES_CHART, time_axis(frame), 16)
    column = chart.x(80) + 3
    _, top, _, height = NODES_CHART
    differs = (with_head[:, column] != without[:, column]).any(axis=1)[top + 2 : top + height - 2]
    assert not differs[: height // 2 - 4].any()  # nodes 0 and 1, above
    assert differs[height // 2 :].mean() > 0.9


def test_bands_of_partitions_that_share_nodes_are_beside_each_other():
    pytest.importorskip("pygame")
    image = rgb_array(small_frame())
    left, top, _, height = NODES_CHART
    bands = image[:, left - 27 : left - 5]
    upper, lower = (np.unique(bands[y], axis=0) for y in (top + 40, top + height - 40))
    assert (len(upper), len(lower)) == (2, 3)  # paper and one band; paper and two


def test_a_crowded_machine_can_be_drawn_and_a_window_shows_one(monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    rgb_array(crowded_frame(n_groups=700, n_partitions=11, n_waiting=50))
    viewer = Viewer("human", fps=1000)
    assert viewer.render(small_frame()) is None
    viewer.close()


def test_a_viewer_follows_an_episode_and_starts_afresh_with_another(frames):
    pytest.importorskip("pygame")
    viewer = Viewer("rgb_array")
    for frame in (*frames[-3:], small_frame()):
        assert np.array_equal(viewer.render(frame), rgb_array(frame))
