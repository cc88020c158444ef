"""Priorities that a real Slurm 22.05 printed, recomputed to the printed digit from its own files.

Two nodes of 8,000 cpus under Fair Tree, classic fair share and SMALL_RELATIVE_TO_TIME; two of 16.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import hpcgym
from fair_share_cases import factors_of, state_at_0, with_names
from hpcgym.base.errors import MachineError
from hpcgym.cli import app
from hpcgym.core import constants as s
from hpcgym.core.orders.priority import Multifactor
from hpcgym.core.parts.fair_share import CLASSIC
from hpcgym.core.policy import as_policy
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.machine import Machine
from hpcgym.machine.accounts import Accounts
from hpcgym.machine.files.priorities import read_priorities
from hpcgym.schedule.policies.slurm import slurm_policy

FILES = Path(__file__).parents[1] / "data" / "slurm" / "priorities"


class Asked(NamedTuple):
    """What a job asked for, by `squeue`; nodes as far as its script named them."""

    account: str
    cpus: int
    minutes: int
    nodes: int = 1
    partition: str = "batch"
    qos: str = "normal"
    nice: int = 0
    user: str = "root"


ASKED = {
    6: Asked("b", 1_500, 5, qos="high"),
    7: Asked("c", 12_000, 30, nice=50),
    8: Asked("e", 1, 60, partition="debug"),
    9: Asked("f", 8_000, 1, qos="low"),
    10: Asked("f", 2, 120, nodes=2),
    11: Asked("c", 3_500, 17, partition="debug", nice=-25),
}
FIRST = {
    93: Asked("chem", 24, 3, user="chi"),
    96: Asked("phys", 4, 2, partition="gpu", user="ben"),
    98: Asked("chem", 2, 5, nodes=2, user="chi"),
    107: Asked("chem", 1, 2, user="chi"),
    111: Asked("chem", 1, 2, user="chi"),
}
WAITED = {"tree": 41, "classic": 140, "relative": 222, "first": 0}
"""How long the jobs had waited when Slurm computed their ages, s: the begin of its period."""


def printed(name):
    """Read a table of `sprio -l`, by the job."""
    lines = (FILES / f"{name}-sprio.txt").read_text().splitlines()
    names = lines[0].split()
    rows = [dict(zip(names, line.split(), strict=False)) for line in lines[1:]]
    return {int(row["JOBID"]): row for row in rows}


def shares_printed(name):
    """Read a table of `sshare -l -a -P`, by account and user."""
    lines = (FILES / f"{name}-sshare.txt").read_text().splitlines()
    names = lines[0].split("|")
    rows = [dict(zip(names, map(str.strip, line.split("|")), strict=True)) for line in lines[1:]]
    return {(row["Account"], row["User"]): row for row in rows}


def stated(name):
    """Read what the files of a run state."""
    cluster = {"first": [FILES.parent / "scontrol-partition.txt"]}
    more = cluster.get(name, [FILES / "partition.txt", FILES / "qos.txt"])
    return read_priorities(FILES / f"{name}-config.txt", FILES / f"{name}-sshare.txt", *more)


def priorities_of(name, jobs, weights):
    """Return each job's priority as the kernel has it once they have waited as Slurm's had.

    A job holds the whole machine from time 0, and one that comes then makes a pass.
    """
    cpus = 16 if name == "first" else 8_000
    names = list(dict(weights.get("partitions", {"batch": 1})))
    machine = Machine.from_dict(
        {
            "nodes": [{"count": 2, "cpus": cpus}],
            "partitions": [{"name": each, "nodes": "0-1"} for each in names],
        }
    )
    anybody = next(iter(jobs.values()))
    blocker = Asked(anybody.account, 2 * cpus, 1_000, 2, user=anybody.user)
    rows = [blocker, *jobs.values(), blocker]
    waited = WAITED[name]
    submitted = [0, *[1] * len(jobs), 1 + waited if waited else 1]
    workload = hpcgym.Workload.from_arrays(
        submitted,
        [60 * row.minutes for row in rows],
        [60 * row.minutes for row in rows],
        [row.cpus for row in rows],
        user=np.arange(len(rows)),
        chunks=[row.nodes if row.nodes > 1 else 1 if row.cpus <= cpus else 2 for row in rows],
        spread=[row.nodes > 1 for row in rows],
        partition=[names.index(row.partition) for row in rows],
        nice=[row.nice for row in rows],
        machine=machine,
    )
    workload = with_names(
        workload,
        user=[row.user for row in rows],
        group=[row.account for row in rows],
        queue=[row.qos for row in rows],
    )
    policy = Multifactor(**weights).policy
    if policy.keeps is not None:  # as if Slurm's period went on
        policy = replace(policy, keeps=replace(policy.keeps, period=10**9))
    simulator = Simulator(workload, SchedulerSettings(policy), decide="event")
    while simulator.run() and simulator.now < 1 + waited:
        pass
    simulator.run()
    state = simulator.state
    entry = s.FIRST_ENTRY - state.start_time[0, 1 : 1 + len(jobs)]
    return dict(zip(jobs, (-state.key[0, s.PASS_ORDER, entry]).tolist(), strict=True))


def seen_by_slurm(name):
    """Return the tree with the usage that factors went by: `NormUsage` of accounts.

    Slurm adds up usage behind factors, so `RawUsage` may be a period ahead of them.
    """
    rows, tree = shares_printed(name), stated(name)["accounts"]
    lines = []
    for line in tree.lines:
        usage = float(rows[line.account, ""]["NormUsage"] or 0) if line.user else 0.0
        lines.append(line._replace(usage=1e9 * usage if line.account != "root" else 0.0))
    return Accounts(tuple(lines))


@pytest.mark.parametrize("name", WAITED)
def test_priorities_are_those_that_sprio_prints(name):
    jobs = FIRST if name == "first" else ASKED
    weights = stated(name)
    if name in ("classic", "relative"):
        weights["accounts"] = seen_by_slurm(name)
    priorities = priorities_of(name, jobs, weights)
    assert priorities == {job: int(row["PRIORITY"]) for job, row in printed(name).items()}
    assert len(set(priorities.values())) > 2


@pytest.mark.parametrize("name", WAITED)
@pytest.mark.parametrize(
    ("weight", "column"),
    [
        ("age", "AGE"),
        ("fairshare", "FAIRSHARE"),
        ("jobsize", "JOBSIZE"),
        ("partition", "PARTITION"),
        ("qos", "QOS"),
    ],
)
def test_each_term_is_that_of_sprio(name, weight, column):
    """Weights are a thousand times Slurm's: priorities are rounded down, and its terms to even."""
    jobs = FIRST if name == "first" else ASKED
    weights = stated(name)
    if name in ("classic", "relative"):
        weights["accounts"] = seen_by_slurm(name)
    others = dict.fromkeys(("age", "fairshare", "jobsize", "partition", "qos"), 0)
    alone = weights | others | {weight: 1000 * weights[weight]}
    without_nice = {job: asked._replace(nice=0) for job, asked in jobs.items()}
    terms = priorities_of(name, without_nice, alone)
    for job, row in printed(name).items():
        assert round(terms[job] / 1000) == int(row[column]), (job, column)


def test_shares_and_levels_are_those_that_sshare_prints():
    """Under Fair Tree, by `RawUsage` as it was printed."""
    tree, rows = stated("tree")["accounts"], shares_printed("tree")
    state, above = state_at_0(tree), tree.parents
    for place, line in enumerate(tree.lines[1:], start=1):
        row = rows[line.account, line.user]
        parent = above[place]
        assert f"{line.shares / state.shares_below[0, parent]:.6f}" == row["NormShares"]
        # Slurm divides usage that it does not print whole.
        usage = state.seen[0, place] / state.seen[0, parent] if state.seen[0, place] else 0.0
        assert float(row["EffectvUsage"]) == pytest.approx(usage, abs=1.5e-6)
        assert float(row["LevelFS"]) == pytest.approx(state.level[0, place], rel=5e-6)
        if line.user:
            assert f"{state.factor[0, place]:.6f}" == row["FairShare"]


@pytest.mark.parametrize("name", ["classic", "relative"])
def test_classic_shares_are_those_that_sshare_prints(name):
    tree, rows = seen_by_slurm(name), shares_printed(name)
    state = state_at_0(tree, CLASSIC)
    for place, line in enumerate(tree.lines[1:], start=1):
        row = rows[line.account, line.user]
        assert f"{state.norm[0, place]:.6f}" == row["NormShares"]
        assert float(row["EffectvUsage"]) == pytest.approx(state.level[0, place], abs=2e-6)
        if line.user:
            assert float(row["FairShare"]) == pytest.approx(state.factor[0, place], abs=4e-6)


def test_those_below_an_account_with_shares_parent_are_below_the_account_above_it(tmp_path):
    """optics and lasers pass their users on to physics, where ben and cem stand beside ana."""
    text = "Account|User|RawShares|RawUsage\nroot|||\n physics||{0}|\n  physics|ana|1|60\n"
    nested = "  optics||parent|\n   optics|ben|2|20\n   lasers||parent|\n    lasers|cem|3|40\n"
    (tmp_path / "f").write_text(text.format(4) + nested + " other||4|\n  other|dee|1|9\n")
    tree = read_priorities(tmp_path / "f")["accounts"]
    lines = [("physics", "", 4), ("physics", "ana", 1, 60), ("physics", "ben", 2, 20)]
    lines += [("physics", "cem", 3, 40), ("other", "", 4), ("other", "dee", 1, 9)]
    alike = {pair[1]: factor for pair, factor in factors_of(Accounts.of(lines)).items()}
    assert {pair[1]: factor for pair, factor in factors_of(tree).items()} == alike
    assert tree.row_of("lasers", "cem") is not None
    assert tree.row_of("physics", "cem") is None


def test_a_tree_may_name_parents_or_be_indented():
    by_parent = read_priorities(FILES / "assoc-parent.txt")["accounts"]
    indented = read_priorities(FILES / "assoc-tree.txt")["accounts"]
    shown = read_priorities(FILES / "tree-sshare.txt")["accounts"]
    assert set(by_parent.lines) == set(indented.lines)
    assert {line._replace(usage=0.0) for line in shown.lines} == set(indented.lines)


def test_the_text_slurm_names_files():
    files = [FILES / "tree-config.txt", FILES / "partition.txt", FILES / "qos.txt"]
    policy = as_policy(f"slurm:{','.join(map(str, files))}")
    assert policy.name == slurm_policy(*files).name
    assert policy.name.startswith("multifactor:age=1000,fairshare=10000,jobsize=500")
    command = ["simulate", "tiny", "--policy", "slurm:none.txt"]
    said = CliRunner().invoke(app, command)
    assert said.exit_code != 0 and "none.txt: no such file" in said.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("PriorityWeightTRES=CPU=1000", r"f:1: PriorityWeightTRES is 'CPU=1000'.*not modelled"),
        ("\nPriorityWeightAssoc = 5", r"f:2: PriorityWeightAssoc is '5', which is not modelled"),
        ("PriorityFlags=MAX_TRES", r"f:1: PriorityFlags has MAX_TRES, .*SMALL_RELATIVE_TO_TIME"),
        ("PriorityType=priority/basic", r"f:1: PriorityType is 'priority/basic'"),
        ("PriorityWeightAge=many", r"f:1: PriorityWeightAge is 'many'; allowed: a whole number"),
        ("PriorityMaxAge=a-b", r"f:1: PriorityMaxAge is 'a-b'; allowed: \[D-\]HH:MM:SS"),
        ("NodeName=c1", "f: nothing about priorities; print them by: scontrol show config"),
        ("Account|User|RawShares\nroot|", "f:2: 2 cells, and the first line names 3"),
        ("Account|User|Shares\nroot||1", "f:2: no column RawShares or Share"),
        ("Account|User|RawShares\nroot||1\n a|ana|parent", "f:3: shares 'parent' of 'ana' are not"),
        ("Account|User|RawShares\nroot||1\n a|ana|1", "f: accounts: user 'ana' of account 'a'"),
        ("Account|User|Partition|Share\nroot|ana|p|1", "f:2: associations of a partition"),
        ("Name|Priority\nhigh|much", "f:2: Priority is 'much'"),
    ],
)
def test_what_is_not_modelled_is_refused_with_its_line(tmp_path, text, said):
    (tmp_path / "f").write_text(text)
    with pytest.raises(MachineError, match=said):
        read_priorities(tmp_path / "f")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(MachineError, match=r"none\.txt: no such file"):
        read_priorities(tmp_path / "none.txt")
