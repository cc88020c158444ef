"""Limits of arrays, of accounts with all below them, and as Slurm's files have them."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpcgym
import reference_limits as reference
from engines import jobs_of, workload_of
from fair_share_cases import with_names
from hpcgym.base.errors import HpcgymError, MachineError, PolicyError, WorkloadError
from hpcgym.core.events import as_event
from hpcgym.machine.files.limits import read_limits
from strategies import one_of, workloads

COUNTS = st.sampled_from((None, None, 1, 2, 3))


def starts(schedule):
    """Return the starts of all jobs."""
    return schedule.start_time.tolist()


def by_reference(workload, policy, limits, **settings):
    """Return the starts of the reference."""
    made = reference.simulate(
        jobs_of(workload), workload.machine_processors, policy, limits, **settings
    )
    return [start.start_time for start in made]


# --- Arrays ---------------------------------------------------------------------------------------


def test_two_tasks_of_an_array_run_at_once():
    """Array 5 has %2, array 6 states none, and job 5 is no task."""
    rows = [(0, 10, 10, 1, 0)] * 6
    jobs = replace(
        workload_of(rows, 8),
        array=np.array([5, 5, 5, 6, 6, -1]),
        array_limit=np.array([2, 2, 2, -1, -1, -1]),
    )
    text = "limit:per=array"
    held = hpcgym.simulate(jobs, events=text)
    assert starts(held) == [0, 0, 10, 0, 0, 0]
    assert held.limited_by.tolist() == ["", "", text, "", "", ""]
    assert starts(hpcgym.simulate(jobs, events="limit:per=array,jobs=1")) == [0, 10, 20, 0, 10, 0]
    assert starts(hpcgym.simulate(jobs, events="limit:per=user,array=6,jobs=1"))[3:] == [0, 10, 0]
    assert starts(hpcgym.simulate(jobs)) == [0] * 6


@given(workloads(), st.data())
def test_tasks_start_within_the_limits_of_their_arrays_as_in_the_reference(workload, data):
    n = len(workload)
    arrays = data.draw(st.lists(one_of((-1, 0, 1)), min_size=n, max_size=n))
    most = data.draw(st.lists(one_of((-1, 0, 1, 2)), min_size=3, max_size=3))
    own = [most[array] if array >= 0 else -1 for array in arrays]
    workload = replace(workload, array=np.array(arrays), array_limit=np.array(own))
    policy = data.draw(st.sampled_from(("FCFS", "SAF", "WFP3")))
    groups = [array if array >= 0 else None for array in arrays]
    limit = reference.Limit(groups, own=[each if each > 0 else None for each in own])
    ours = hpcgym.simulate(workload, policy, events="limit:per=array")
    assert starts(ours) == by_reference(workload, policy, [limit])


def test_arrays_come_from_tables_of_jobs(tmp_path):
    (tmp_path / "jobs.csv").write_text(
        "job_id,submit_time,run_time,requested_time,chunks,array,array_limit\n"
        + "".join(f"{job},0,10,10,1,7,1\n" for job in (1, 2, 3))
        + "4,0,10,10,1,,\n"
    )
    jobs = hpcgym.load_workload(tmp_path / "jobs.csv", machine_processors=8)
    assert jobs.array.tolist() == [7, 7, 7, -1]
    assert starts(hpcgym.simulate(jobs, events="limit:per=array")) == [0, 10, 20, 0]


def test_arrays_without_limits_of_their_own_are_refused():
    jobs = replace(workload_of([(0, 5, 5, 1, 0)], 2), array=np.array([3]))
    with pytest.raises(WorkloadError, match="jobs have no column array_limit; state jobs"):
        hpcgym.simulate(jobs, events="limit:per=array")
    assert starts(hpcgym.simulate(jobs, events="limit:per=array,jobs=1")) == [0]


# --- Accounts, and whom a limit spares ------------------------------------------------------------


def test_an_account_is_limited_with_those_below_it():
    rows = [(0, 10, 10, 2, 0), (0, 10, 10, 2, 1), (0, 10, 10, 2, 2)]
    jobs = with_names(workload_of(rows, 8), group=["optics", "physics", "chemistry"])
    text = "limit:per=account,cpus=3,name=physics,below=optics/lasers"
    held = hpcgym.simulate(jobs, events=text)
    assert starts(held) == [0, 10, 0]
    assert held.limited_by.tolist() == ["", text, ""]
    assert str(as_event(text)) == text
    alone = hpcgym.simulate(jobs, events="limit:per=account,cpus=3,name=physics")
    assert starts(alone) == [0, 0, 0]


def test_a_job_that_a_limit_spares_is_counted_and_not_held():
    """Urgent jobs start at once, and keep the user's others waiting."""
    rows = [(0, 10, 10, 1, 0), (1, 20, 20, 1, 0), (2, 5, 5, 1, 0), (3, 5, 5, 1, 1)]
    jobs = replace(workload_of(rows, 8), qos=np.array([0, 7, 0, 0]))
    held = hpcgym.simulate(jobs, events="limit:per=user,jobs=1,spares=7")
    assert starts(held) == [0, 1, 21, 3]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("limit:per=account,cpus=3,below=optics", "below names accounts below that of name"),
        ("limit:per=user,submitted=3,spares=high", "submitted spares nobody"),
        ("limit:per=arrays,jobs=3", "did you mean 'array'"),
    ],
)
def test_contradictions_are_refused(text, said):
    with pytest.raises(PolicyError, match=said):
        as_event(text)


# --- Files ----------------------------------------------------------------------------------------

ASSOCIATIONS = """\
Cluster|Account|User|Partition|Share|Priority|GrpJobs|GrpTRES|GrpSubmit|GrpWall|GrpTRESMins|MaxJobs\
|MaxTRES|MaxTRESPerNode|MaxSubmit|MaxWall|MaxTRESMins|QOS|Def QOS|GrpTRESRunMins
c|root|||1||||||||||||| normal||
c| root|root||1||||||||||||| normal||
c| physics|||1|||cpu=6||||3||||1-00:00:00|| normal||
c|  physics|ana||1|||||||2|cpu=4||||| normal||
c|  optics|||1||1|||||||||||normal||
c|   optics|ben||1||||||||||||| normal||
c|   optics|ana||1||||||||||||| normal||
"""
QUALITIES = """\
Name|Priority|GraceTime|Preempt|PreemptMode|Flags|UsageFactor|GrpTRES|GrpJobs|MaxTRESPU|MaxJobsPU\
|MaxSubmitPU|MaxJobsPA
normal|0|00:00:00||cluster||1.000000||||||
high|10|00:00:00||cluster|DenyOnLimit|1.000000|gres/gpu=8|4|cpu=8|5||3
"""


def test_what_sacctmgr_prints_is_read(tmp_path):
    """A user's MaxJobs is its own, else that of the nearest account above that states one."""
    (tmp_path / "assoc").write_text(ASSOCIATIONS)
    (tmp_path / "qos").write_text(QUALITIES)
    stated = read_limits(tmp_path / "assoc", tmp_path / "qos")
    assert stated.accounts == {"root": ("root",), "ana": ("physics", "optics"), "ben": ("optics",)}
    assert stated.levels == [
        [{"per": "qos", "name": "high", "gpus": 8, "jobs": 4}],
        [{"per": "user", "qos": "high", "cpus": 8, "jobs": 5}],
        [{"per": "account", "qos": "high", "jobs": 3}],
        [
            {"per": "user", "name": "ana", "account": "physics", "jobs": 2, "spares": ("high",)},
            {"per": "user", "name": "ben", "account": "optics", "jobs": 3, "spares": ("high",)},
            {"per": "user", "name": "ana", "account": "optics", "jobs": 3, "spares": ("high",)},
        ],
        [{"per": "account", "name": "optics", "below": (), "jobs": 1, "spares": ("high",)}],
        [{"per": "account", "name": "physics", "below": ("optics",), "cpus": 6}],
    ]


def test_limits_of_files_hold_by_hand(tmp_path):
    """optics may run one job, physics with optics six processors."""
    (tmp_path / "assoc").write_text(ASSOCIATIONS)
    rows = [(0, 10, 10, 3, 0), (0, 10, 10, 3, 1), (0, 10, 10, 1, 1), (0, 10, 10, 1, 0)]
    jobs = with_names(
        workload_of(rows, 16),
        user=["ana", "ben", "ben", "ana"],
        group=["physics", "", "", "physics"],
        queue=["normal"] * 4,
    )
    text = f"limits:{tmp_path / 'assoc'}"
    held = hpcgym.simulate(jobs, events=text)
    assert starts(held) == [0, 0, 10, 10]
    assert held.limited_by.tolist() == [
        *("", "", "limit:per=account,jobs=1,name=optics"),
        "limit:per=account,cpus=6,name=physics,below=optics",
    ]
    assert str(held.settings.events[0]) == text
    jobs = with_names(workload_of(rows, 16), user=["ana"] * 4, group=[""] * 4, queue=[""] * 4)
    with pytest.raises(WorkloadError, match="user 'ana' has several: physics, optics"):
        hpcgym.simulate(jobs, events=text)


class Site(NamedTuple):
    """Drawn accounts, associations and qualities of service, each with its limits by field."""

    parents: dict[str, str]
    associations: dict[tuple[str, str], dict[str, Any]]
    qualities: dict[str, dict[str, Any]]


@st.composite
def sites(draw):
    """Draw a root with accounts a and b, c below a, users in some, and two qualities of service."""
    parents = {"root": "", "a": "root", "c": "a", "b": "root"}
    names = [(account, "") for account in parents]
    names += [("a", "0"), ("a", "1"), ("c", "0"), ("c", "2"), ("b", "3")]
    fields = ("GrpJobs", "GrpTRES", "MaxJobs")
    by_association, by_quality = draw(st.booleans()), draw(st.booleans())
    associations = {}
    minutes = draw(st.integers(16, 30))
    for name in names:
        stated = {field: draw(COUNTS) for field in fields}
        stated["GrpTRES"] = draw(st.sampled_from((None, None, 8, 12)))
        stated["GrpTRESRunMins"] = draw(st.sampled_from((None, None, minutes)))
        stated |= {f: draw(COUNTS) if by_association else None for f in ("GrpSubmit", "MaxSubmit")}
        associations[name] = stated
    qualities = {}
    for name in ("normal", "high"):
        stated = {f: draw(COUNTS) for f in ("GrpJobs", "MaxJobsPU", "MaxJobsPA")}
        stated |= {f: draw(st.sampled_from((None, None, 8, 12))) for f in ("GrpTRES", "MaxTRESPU")}
        of_minutes = ("GrpTRESRunMins", "MaxTRESRunMinsPU", "MaxTRESRunMinsPA")
        stated |= {f: draw(st.sampled_from((None, None, minutes))) for f in of_minutes}
        allowed = by_quality and not by_association
        stated |= {f: draw(COUNTS) if allowed else None for f in ("GrpSubmit", "MaxSubmitPU")}
        qualities[name] = stated
    return Site(parents, associations, qualities)


def text_of(rows, names):
    """Lay rows out as sacctmgr does."""
    fields = list(next(iter(rows.values())))
    lines = ["|".join((*names, *fields))]
    for name, stated in rows.items():
        cells = (
            "" if stated[f] is None else f"{'cpu=' * ('TRES' in f)}{stated[f]}" for f in fields
        )
        lines.append("|".join((*name, *cells)))
    return "\n".join(lines) + "\n"


def limits_of(site, jobs):
    """Return the limits of a site by the specification; jobs are (account, user, qos)."""

    def above(account):
        while account:
            yield account
            account = site.parents[account]

    def group(counted):
        return [0 if each else None for each in counted]

    found = []
    for name, stated in site.qualities.items():
        mine = [qos == name for _, _, qos in jobs]
        of_user = [user if qos == name else None for _, user, qos in jobs]
        of_account = [account if qos == name else None for account, _, qos in jobs]
        found += [
            reference.Limit(group(mine), stated["GrpJobs"], stated["GrpTRES"], stated["GrpSubmit"]),
            reference.Limit(
                of_user, stated["MaxJobsPU"], stated["MaxTRESPU"], stated["MaxSubmitPU"]
            ),
            reference.Limit(of_account, stated["MaxJobsPA"]),
            reference.Limit(group(mine), minutes=stated["GrpTRESRunMins"]),
            reference.Limit(of_user, minutes=stated["MaxTRESRunMinsPU"]),
            reference.Limit(of_account, minutes=stated["MaxTRESRunMinsPA"]),
        ]

    def stated_by_qos(field):
        return [site.qualities[qos][field] is not None for _, _, qos in jobs]

    for (account, user), stated in site.associations.items():
        counted = [(a, u) == (account, user) if user else account in above(a) for a, u, _ in jobs]
        found += [
            reference.Limit(
                group(counted), jobs=stated["GrpJobs"], spared=stated_by_qos("GrpJobs")
            ),
            reference.Limit(
                group(counted), cpus=stated["GrpTRES"], spared=stated_by_qos("GrpTRES")
            ),
            reference.Limit(
                group(counted),
                minutes=stated["GrpTRESRunMins"],
                spared=stated_by_qos("GrpTRESRunMins"),
            ),
            reference.Limit(group(counted), submitted=stated["GrpSubmit"]),
        ]
        if user:
            chain = [stated, *(site.associations[each, ""] for each in above(account))]
            most, submitted = (
                next((each[f] for each in chain if each[f] is not None), None)
                for f in ("MaxJobs", "MaxSubmit")
            )
            found.append(
                reference.Limit(group(counted), jobs=most, spared=stated_by_qos("MaxJobsPU"))
            )
            found.append(reference.Limit(group(counted), submitted=submitted))
    return found


@given(workloads(), sites(), st.data())
def test_limits_of_drawn_sites_hold_as_in_the_reference(tmp_path_factory, workload, site, data):
    folder = tmp_path_factory.mktemp("site")
    parents = {(a, u): (a, u, "" if u else site.parents[a]) for a, u in site.associations}
    rows = {parents[name]: stated for name, stated in site.associations.items()}
    (folder / "assoc").write_text(text_of(rows, ("Account", "User", "ParentName")))
    (folder / "qos").write_text(text_of({(q,): s for q, s in site.qualities.items()}, ("Name",)))
    pairs = [name for name in site.associations if name[1]]
    n = len(workload)
    drawn = data.draw(
        st.lists(
            st.tuples(st.sampled_from(pairs), one_of(("normal", "high"))), min_size=n, max_size=n
        )
    )
    jobs = [(account, user, qos) for (account, user), qos in drawn]
    accounts, users, queues = (list(column) for column in zip(*jobs, strict=True))
    named = with_names(workload, user=users, group=accounts, queue=queues)
    policy = data.draw(st.sampled_from(("FCFS", "SAF")))
    backfill = data.draw(st.sampled_from(("easy", "none")))
    text = f"limits:{folder / 'assoc'},{folder / 'qos'}"
    ours = hpcgym.simulate(named, policy, events=text, backfill=backfill)
    theirs = by_reference(workload, policy, limits_of(site, jobs), backfill=backfill)
    assert starts(ours) == theirs


def test_limits_of_files_stand_beside_others_and_in_scenarios(tmp_path):
    (tmp_path / "qos").write_text("Name|MaxJobsPU\n1|2\n")
    jobs = hpcgym.load_workload("synthetic-256").select(np.arange(400))
    jobs = replace(jobs, qos=np.ones(400, dtype=np.int64))
    text = f"limits:{tmp_path / 'qos'}"
    alone = hpcgym.simulate(jobs, "SAF", events="limit:per=user,jobs=2")
    assert starts(hpcgym.simulate(jobs, "SAF", events=text)) == starts(alone)
    both = hpcgym.simulate(jobs, "SAF", events=f"{text};limit:per=user,cpus=256,name=5")
    assert not (both.limited_by == "").all()
    loaded = hpcgym.load_scenario("tiny")
    loaded = replace(loaded, scheduler=replace(loaded.scheduler, events=text))
    assert hpcgym.evaluate(["SAF"], loaded, progress=False).frame["complete"].all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Account|User|GrpTRES\nroot||node=3",
            r"f:2: GrpTRES has 'node', .*allowed: cpu, gres/gpu",
        ),
        (
            "Account|User|GrpTRESMins\nroot||cpu=9",
            "f:2: GrpTRESMins is 'cpu=9', which is not model",
        ),
        (
            "Account|User|GrpTRESRunMins\nroot||gres/gpu=9",
            "GrpTRESRunMins has 'gres/gpu', .*: cpu$",
        ),
        ("Account|User|MaxJobs\nroot||many", "f:2: MaxJobs is 'many'; allowed: a whole number"),
        ("Account|User|MaxJobs\nroot||0", "f:2: MaxJobs is 0, so that no job ever starts"),
        ("Account|User|Partition|MaxJobs\nroot|ana|p|1", "f:2: associations of a partition"),
        ("Account|User|MaxJobs\nroot|ana|1\nroot|ana|2", "f:3: it is there twice, first at .*f:2"),
        ("Account|User|GrpJobs\nroot||\na||3", "f:3: limits of account 'a' hold for those below"),
        ("Name|Flags\nhigh|OverPartQOS", "f:2: Flags is 'OverPartQOS', which is not modelled"),
        ("Name|Preempt\nhigh|low", "f:2: Preempt is 'low', which is not modelled"),
        ("Name|MaxJobsPU\nhigh", "f:2: 1 cells, and the first line names 2"),
        ("User|Jobs\nana|3", "f: nothing about limits; print them by: sacctmgr show assoc tree"),
    ],
)
def test_what_is_not_modelled_is_refused_with_file_line_and_key(tmp_path, text, said):
    (tmp_path / "f").write_text(text)
    with pytest.raises(MachineError, match=said):
        as_event(f"limits:{tmp_path / 'f'}")


def test_submitted_jobs_limited_twice_are_refused(tmp_path):
    (tmp_path / "a").write_text("Account|User|MaxSubmit\nroot||\nroot|ana|4\n")
    (tmp_path / "q").write_text("Name|MaxSubmitPU\nhigh|3\n")
    with pytest.raises(MachineError, match=r"q:2 and .*a:3 both limit submitted jobs"):
        as_event(f"limits:{tmp_path / 'a'},{tmp_path / 'q'}")


def test_limits_without_files_are_refused(tmp_path):
    with pytest.raises(HpcgymError, match="name files, as these commands print them: sacctmgr"):
        as_event("limits:")
    with pytest.raises(HpcgymError, match="no such file"):
        as_event(f"limits:{tmp_path / 'nowhere'}")
