"""What a site says of its scheduler: read from its files, and on the clock of its log."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgym.base.errors import MachineError, PolicyError
from hpcgym.site import Reading, read_told, report_on

TOY = Path(__file__).parents[1] / "data" / "slurm" / "fair_share"
RESERVATIONS = """\
ReservationName=fix StartTime=2026-01-01T10:00:00 EndTime=2026-01-01T12:00:00 Duration=02:00:00
   Nodes=c[2-3] NodeCnt=2 CoreCnt=32 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
   TRES=cpu=32
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE

ReservationName=course StartTime=2026-01-02T10:00:00 EndTime=2026-01-02T12:00:00
   Nodes=c1 NodeCnt=1 CoreCnt=16 Flags= Users=ann State=INACTIVE

NodeName=c3 Arch=x86_64 CPUAlloc=0 CPUTot=16
   State=DOWN+DRAIN ThreadsPerCore=1
   Reason=disk [root@2026-01-03T10:00:00]
"""
TEN = 1_767_261_600  # 2026-01-01 10:00 UTC


@pytest.mark.long
def test_configuration_shares_and_limits_of_a_real_slurm_are_the_setting_of_its_run() -> None:
    limits = f"{TOY / 'tree.txt'},{TOY / 'qos.txt'}"
    told = read_told(str(TOY / "config.txt"), shares=TOY / "tree.txt", limits=limits)
    how = Reading(processors=32, counted_from="submit")
    report = report_on(TOY / "run-5.txt", how, told=told)
    trust = report["trust"]
    assert trust["setting"].startswith("multifactor:age=1000,fairshare=100000,")
    assert "backfill slurm:max_job_test=5,resolution=1,interval=1" in trust["setting"]
    assert trust["simulated"]["mean"] == pytest.approx(trust["recorded"]["mean"], rel=0.25)
    assert trust["correlation"] > 0.6 and trust["missed"] == ["median"]  # 46 s for 72
    assert report["settings"]["told of the scheduler"] == "config.txt, tree.txt, tree.txt, qos.txt"


def test_reservations_for_maintenance_and_nodes_that_are_down_are_outages(tmp_path: Path) -> None:
    file = tmp_path / "scontrol.txt"
    file.write_text(RESERVATIONS)
    told = read_told(outages=file, timezone="UTC")
    two_days = 2 * 86_400
    assert [(event.from_, event.processors) for event in told.events] == [  # type: ignore[attr-defined]
        (TEN, 32),
        (TEN + two_days, 16),
    ]
    assert told.notes == ("reservations for some users, not simulated: 1",)
    fix, disk = told.on_clock(begin=TEN + 3600, time_offset=500, end=10**6)
    assert str(fix).startswith("outage:from=0,to=4100,processors=32")
    assert f"from={two_days - 3100},to=1000000," in str(disk)  # the log's end: it is down for good
    assert f"announced={two_days - 3100}" in str(disk)
    assert len(told.on_clock(begin=TEN + 3600, time_offset=500, end=two_days - 3100)) == 1
    on_nodes = read_told(outages=file, node_names=("c1", "c2", "c3"), timezone="UTC")
    assert [event.nodes for event in on_nodes.events] == [("1-2",), ("2",)]  # type: ignore[attr-defined]


def test_a_scheduler_is_a_configuration_or_a_policy_that_there_is(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"^fairshare is no file, and as a policy: .*fair-share"):
        read_told("fairshare")
    (tmp_path / "squeue.txt").write_text("JOBID PARTITION\n1 batch\n")
    with pytest.raises(MachineError, match=r"squeue.txt: no configuration of Slurm; use: scontrol"):
        read_told(str(tmp_path / "squeue.txt"))


def test_a_table_of_outages_is_read_and_what_is_over_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "outages.csv"
    file.write_text("from,to,processors\n100,200,4\n2026-01-01T10:00:00,1767265200,8\n")
    told = read_told("fair-share", outages=file, timezone="UTC")
    assert told.policy == "fair-share"
    (event,) = told.on_clock(begin=TEN - 60, time_offset=0, end=86_400)
    assert str(event).startswith("outage:from=60,to=3660,processors=8")
    file.write_text("begin,end\n1,2\n")
    with pytest.raises(MachineError, match="nor a table with columns from, to, processors"):
        read_told(outages=file)
    file.write_text("from,to,processors\nsoon,200,4\n")
    with pytest.raises(MachineError, match=r"outages.csv:2: from is 'soon'; allowed: whole"):
        read_told(outages=file)
    file.write_text("from,to,processors\n100,200,4\n300,,4\n")
    with pytest.raises(MachineError, match=r"outages.csv:3: to is ''; allowed: whole"):
        read_told(outages=file)
    file.write_text("Account|User|RawShares|NormShares\nroot|||1.0\n")
    with pytest.raises(MachineError, match=r"outages.csv: of sshare, .* belongs to --shares"):
        read_told(limits=str(file))


def test_a_table_of_outages_names_nodes_as_the_site_does_or_by_id(tmp_path: Path) -> None:
    file, names = tmp_path / "outages.csv", ("gpu1", "n1", "n2", "n3")
    for nodes, ids in (("n[1-2]/gpu1", ("0-2",)), ('"n1,n3"', ("1", "3")), ("2-3", ("2-3",))):
        file.write_text(f"from,to,nodes\n100,200,{nodes}\n")
        (event,) = read_told(outages=file, node_names=names).events
        assert event.nodes == ids  # type: ignore[attr-defined]
    file.write_text("from,to,nodes\n100,200,n[2-4]\n")
    with pytest.raises(MachineError, match=r"outages.csv:2: unknown node 'n4'"):
        read_told(outages=file, node_names=names)


SINCE = 1_796_042_031  # 2026-11-30 12:33:51 UTC
PRINTS = {  # of a real Slurm 22.05 with n2 drained, but that n1 stands below two nodes
    "-N -o": "NODELIST|STATE|CPUS|TIMESTAMP|REASON\nn1|idle|16|Unknown|none\n"
    "n2|drained|16|2026-11-30T12:33:51|disk | bad, soon\nn2|drained|16|2026-11-30T12:33:51|disk\n",
    "-o": "NODELIST|CPUS|STATE|TIMESTAMP\nn2|16|drained*|2026-11-30T12:33:51\nn1|16|idle|Unknown\n",
    "-R": "REASON               USER      TIMESTAMP           NODELIST\n"
    "disk @ 3, is bad     root      2026-11-30T12:33:51 n2\n",
    "-R -l": "Mon Nov 30 12:33:51 2026\n"
    "REASON               USER         TIMESTAMP           STATE  NODELIST\n"
    "disk @ 3, is bad     root(0)      1796042031          drain  n2\n",
}
WITHOUT_TIME = """Mon Nov 30 12:33:51 2026
NODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON
n2             1    batch*     drained 16     16:1:1  64000        0      1   (null) disk @ 3
"""


@pytest.mark.parametrize("how", PRINTS)
def test_nodes_that_sinfo_lists_as_away_are_outages_since_its_timestamp(
    tmp_path: Path, how: str
) -> None:
    file = tmp_path / "sinfo.txt"
    file.write_text(PRINTS[how])
    on_nodes = read_told(outages=file, node_names=("n1", "n2"), timezone="UTC").events
    assert [(each.nodes, each.from_, each.announced) for each in on_nodes] == [  # type: ignore[attr-defined]
        (("1",), SINCE, SINCE)
    ]
    if "CPUS" in PRINTS[how]:
        (event,) = read_told(outages=file, timezone="UTC").events
        assert event.processors == 16  # type: ignore[attr-defined]
        return
    with pytest.raises(
        MachineError, match=r"their cpus, nor --machine the nodes; print it by: sinfo"
    ):
        read_told(outages=file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WITHOUT_TIME, r"did not print since when nodes are down; print it by: sinfo -N -o '%N"),
        (PRINTS["-o"] + "n3|16|down|x|y\n", r"sinfo.txt:4: 5 values below 4 names: sinfo -N"),
        (PRINTS["-o"] + "n3|16+|down|Unknown\n", r"sinfo.txt:4: CPUS is '16\+'; allowed: a whole"),
        (PRINTS["-o"] + "n3|16|down|soon\n", r"sinfo.txt:4: TIMESTAMP is 'soon'; allowed: whole"),
    ],
)
def test_prints_of_sinfo_that_lack_something_say_which_command_prints_it(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "sinfo.txt").write_text(text)
    with pytest.raises(MachineError, match=said):
        read_told(outages=tmp_path / "sinfo.txt", timezone="UTC")


def test_several_nodes_of_a_line_and_states_cut_short_are_read(tmp_path: Path) -> None:
    states = ("drng", "down", "fail", "maint", "idle~", "idle%", "drain$")
    lines = [f"{state} a{n}[1-2],b{n} 4 Unknown" for n, state in enumerate(states)]
    lines += [f"{state} c{state} 4 Unknown" for state in ("idle", "mix", "alloc*", "resv", "comp")]
    (tmp_path / "sinfo.txt").write_text("\n".join(["STATE NODELIST CPUS TIMESTAMP", *lines]))
    told = read_told(outages=tmp_path / "sinfo.txt")
    assert [(event.from_, event.processors) for event in told.events] == [(0, 12)] * len(states)  # type: ignore[attr-defined]
