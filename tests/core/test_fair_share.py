"""Fair share and multifactor priorities: against the reference, and cases worked by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_fair_share as reference
from engines import check_copies_go_on_alike, jobs_of, simulator_of, whole, workload_of
from hpcgym.accounts import Accounts, Association
from hpcgym.core.orders.fair_share import Shares, fair_share
from hpcgym.core.orders.priority import Multifactor
from hpcgym.core.parts.fair_share import CLASSIC, FAIR_TREE, FairShare
from hpcgym.core.policy import compiled_policy
from hpcgym.core.settings import SchedulerSettings
from hpcgym.core.simulator import Simulator
from hpcgym.errors import PolicyError, WorkloadError
from reference_fair_share import Line, Rule, flat
from strategies import one_of, workloads

KINDS = {"tree": FAIR_TREE, "classic": CLASSIC}
USERS = ("0", "1", "2", "7")


@st.composite
def trees(draw):
    """Draw accounts below one another, and users 0, 1, 2 and 7 in any of them."""
    lines, accounts = [Association("root")], ["root"]
    for name in "abc"[: draw(st.integers(0, 3))]:
        above = draw(st.sampled_from(accounts))
        lines.append(Association(name, "", above, draw(one_of((0, 1, 1, 2, 3)))))
        accounts.append(name)
    for user in USERS:
        shares, usage = draw(one_of((0, 1, 1, 2))), draw(one_of((0, 0, 3, 40)))
        lines.append(Association(draw(st.sampled_from(accounts)), user, "", shares, usage))
    return Accounts(tuple(lines))


@st.composite
def tables(draw):
    """Draw jobs of users 0, 1 and 2, and the machine's processors."""
    drawn = draw(workloads())
    rows = [row._replace(user=row.user % 3) for row in jobs_of(drawn)]
    return rows, drawn.machine_processors


@st.composite
def rules(draw):
    """Draw how usage decays and how often the order is made, perhaps beside other factors."""
    rule = Rule(
        draw(st.sampled_from(("tree", "classic"))),
        draw(one_of((0, 5, 7, 20, 100))),
        draw(one_of((1, 4, 7, 30))),
        draw(one_of((1, 1, 4, 7, 25))),
        draw(one_of((1, 3))),
    )
    rule = rule._replace(passed=draw(st.integers(0, rule.interval - 1)))
    if draw(st.booleans()):
        return rule
    weights = {"age": draw(one_of((0, 5, 100))), "max_age": 30}
    return rule._replace(weights=weights | {"fairshare": draw(one_of((0, 10, 1000)))})


def twin_of(tree):
    """Return a tree as the reference has it."""
    rows = zip((-1, *tree.parents[1:]), tree.lines, strict=True)
    return [Line(above, bool(line.user), line.shares, int(line.usage)) for above, line in rows]


def policy_of(rule, tree):
    """Return the policy that a rule of the reference means."""
    kept = FairShare(KINDS[rule.kind], *rule[1:6], tree)
    if rule.weights is None:
        return compiled_policy("SHARES", fair_share, keeps=kept)
    made = Multifactor(**rule.weights).policy
    return replace(made, keeps=kept if rule.weights["fairshare"] else None)


@given(tables(), trees(), rules(), st.sampled_from(("easy", "none")), st.booleans(), st.data())
def test_orders_by_usage_start_every_job_as_the_reference_does(
    table, tree, rule, mode, backfills, data
):
    rows, processors = table
    backfills = backfills and mode == "easy"
    threshold = data.draw(one_of((None, None, 5, 30)))
    nice = data.draw(st.lists(one_of((0, 0, 3, -20)), min_size=len(rows), max_size=len(rows)))
    workload = replace(workload_of(rows, processors), nice=np.array(nice))
    order = {"backfill_order" if backfills else "policy": policy_of(rule, tree)}
    ours = hpcgym.simulate(workload, backfill=mode, threshold=threshold, **order)
    theirs = reference.simulate(
        rows,
        processors,
        twin_of(tree),
        [tree.place_of("", str(row.user)) for row in rows],
        rule,
        constants=[-lowered for lowered in nice],
        backfill=mode,
        threshold=threshold,
        backfills=backfills,
    )
    assert ours.start_time.tolist() == [start.start_time for start in theirs]
