"""A machine and its queue at one instant: what counts, and what is kept out."""

import pytest
from live_queues import nodes, reading, runs, waits

from hpcgym.base.errors import LiveError
from hpcgym.site.live.snapshot import snapshots_of


def only(read):
    """Return the only snapshot of a reading."""
    (snapshot,) = snapshots_of(read)
    return snapshot


def test_cpus_are_those_of_nodes_that_are_up():
    away = [
        nodes(16, state=state, first=first)
        for first, state in enumerate(
            ["down*", "drained", "draining", "idle*", "maint", "reserved", "fail"], start=10
        )
    ]
    snapshot = only(reading([waits(1, 1, 60)], of=nodes(16, 8) + sum(away, ())))
    assert snapshot.cpus == 24
    assert "24 cpus on 2 nodes" in snapshot.notes[0]
    assert "down, drained or reserved: 7 nodes" in snapshot.notes[0]
    assert "nodes have 8 to 16 cpus" in snapshot.notes[0]


def test_job_on_a_node_that_drains_frees_nothing_there():
    """Job 1 has 4 cpus on each of two nodes, of which n2 drains; job 2 is on n2 alone."""
    of = nodes(16) + nodes(16, state="draining", first=2)
    running = [runs(1, 8, 600, 10, node_list="n[1-2]"), runs(2, 5, 600, 10, node_list="n2")]
    snapshot = only(reading([waits(3, 1, 60)], running, of))
    assert snapshot.cpus == 16
    assert [(job.job_id, cpus) for job, cpus in snapshot.running] == [(1, 4)]


def test_partitions_that_share_nodes_are_one_machine():
    of = nodes(16, 16) + nodes(16, partition="debug", tier=2) + nodes(8, partition="gpu", first=9)
    waiting = [
        waits(1, 1, 60),
        waits(2, 1, 60, partition="debug"),
        waits(3, 1, 60, partition="gpu"),
        waits(4, 1, 60, partition="gpu,batch"),
    ]
    together, gpu = snapshots_of(reading(waiting, of=of))
    assert (together.partitions, together.cpus) == (("batch", "debug"), 32)
    assert (gpu.partitions, gpu.cpus) == (("gpu",), 8)
    assert [job.job_id for job in together.waiting] == [1, 2]
    assert [job.job_id for job in gpu.waiting] == [3, 4]
    assert "counted in the first: 4" in gpu.notes[1]
    assert len(together.notes) == 1
    assert [together.tier(job) for job in waiting[:2]] == [1, 2]
    (chosen,) = snapshots_of(reading(waiting, of=of), ["debug"])
    assert chosen == together


def test_job_with_whole_nodes_asks_for_all_their_cpus():
    snapshot = only(reading([waits(1, 20, 60, nodes=2, exclusive=True)], of=nodes(16, 16, 16)))
    assert snapshot.waiting[0].cpus == 32


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ({"priority": 0, "reason": "JobHeldUser"}, "held by its user"),
        ({"priority": 0, "reason": "JobHeldAdmin"}, "held by an administrator"),
        ({"priority": 0, "reason": "Odd"}, "held: Slurm says Odd"),
        (
            {"reason": "Dependency", "dependency": "afterok:5(unfulfilled)"},
            "waits for another job: afterok:5(unfulfilled)",
        ),
        ({"reason": "AssocGrpCpuLimit"}, "Slurm says AssocGrpCpuLimit"),
        ({"reason": "PartitionConfig"}, "Slurm says PartitionConfig"),
        ({"reason": "ReqNodeNotAvail, UnavailableNodes:c1"}, "Slurm says ReqNodeNotAvail, "),
        ({"array_id": "1+0"}, "part of a heterogeneous job"),
        ({"cpus": 17}, "asks 17 cpus; up: 16"),
        ({"nodes": 2}, "asks 2 nodes; up: 1"),
    ],
)
def test_job_that_no_order_can_help_is_kept_out_with_the_reason(job, why):
    job = {"cpus": 1, "limit_s": 60, **job}
    snapshot = only(reading([waits(1, **job), waits(2, 1, 60)]))
    assert [kept.job.job_id for kept in snapshot.kept_out] == [1]
    assert snapshot.kept_out[0].why.startswith(why)
    assert [kept.job_id for kept in snapshot.waiting] == [2]


def test_job_whose_begin_time_is_to_come_stays():
    snapshot = only(reading([waits(1, 1, 60, reason="BeginTime", eligible_time=1_000_090)]))
    assert snapshot.begins(snapshot.waiting[0]) == snapshot.now + 90


def test_part_of_a_queue_is_no_answer():
    """Slurm's PrivateData hides the jobs of others, and not the cpus that they hold."""
    with pytest.raises(LiveError, match=r"jobs on 4 cpus, and sinfo says that 16 are allocated"):
        snapshots_of(reading([], [runs(1, 4, 60, 1)], nodes(16, 16, held=8)))


def test_unknown_partitions_are_refused():
    with pytest.raises(LiveError, match="unknown partition 'bach'; did you mean 'batch'"):
        snapshots_of(reading([waits(1, 1, 60)]), ["bach"])
    with pytest.raises(LiveError, match="job 1 is in partition 'gone', which sinfo does not list"):
        snapshots_of(reading([waits(1, 1, 60, partition="gone")]))


def test_nodes_of_a_job_that_cannot_be_read_are_named():
    with pytest.raises(LiveError, match=r"nodes of job 1: 'n\[2-1\]'"):
        snapshots_of(reading([], [runs(1, 4, 60, 1, node_list="n[2-1]")]))


def test_more_cpus_held_than_up_are_counted_and_said():
    snapshot = only(reading([waits(3, 1, 60)], [runs(1, 16, 60, 1), runs(2, 4, 60, 1)]))
    assert snapshot.cpus == 20
    assert "jobs hold 20 cpus, more than the 16 that are up" in snapshot.notes[1]
