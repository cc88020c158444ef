"""Twenty jobs on a real Slurm: what an import says of them is what was submitted."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
import pytest

from hpcgym.trace.accounting import read_accounting
from research.toy_slurm import SleepingJob, n_in_queue, printed, recorded_json, recorded_text

TOY_CLUSTER = Path(__file__).parents[4] / "shared" / "slurm" / "toy-cluster"
CONFIGURATION = Path("/etc/slurm/slurm.conf")
LATE_S = 2  # how much longer than its sleep a job may run, and how late it may be seen
PATIENCE_S = 120
ODD_NAME = "a | b, c"
ELSEWHERE = ("-D", "/")
USERS, ACCOUNT = ("games", "mail"), "leisure"
"""Users that Debian has. Without an account, JSON of Slurm 22.05 does not name them."""
PLAIN = [
    SleepingJob("wide", 0, 2, 32, 4, 1),
    SleepingJob("on two nodes", 0, 2, 8, 2, 3),
    SleepingJob("half", 0, 1, 8, 3, 2),
    SleepingJob("of games", 0, 1, 2, 2, 60, (*ELSEWHERE, "--uid=games")),
    SleepingJob("of mail", 0, 1, 4, 1, 1500, (*ELSEWHERE, "--uid=mail")),
    SleepingJob("debug", 0, 1, 1, 2, 30, ("-p", "debug")),
    SleepingJob(ODD_NAME, 0, 1, 1, 1, 5),
    SleepingJob("exclusive", 0, 1, 2, 3, 4, ("--exclusive",)),
    SleepingJob("before", 0, 1, 1, 5, 1),
    *(SleepingJob(f"small {n}", 0, 1, n, n, n) for n in range(1, 6)),
]
ARRAY = SleepingJob("array", 0, 1, 2, 2, 2, ("--array=0-2",))
AFTER = SleepingJob("after", 0, 1, 1, 1, 1)
AGAIN = SleepingJob("again", 0, 1, 1, 5, 2, ("--requeue",))
ASKED = {"text": recorded_text, "json": recorded_json}

pytestmark = [pytest.mark.slow, pytest.mark.slurm]


@pytest.fixture(scope="module")
def slurm() -> Iterator[None]:
    """Start a Slurm of two nodes of 16 CPUs, and stop it in the end."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("a Slurm is started by root only")
    if not TOY_CLUSTER.exists():
        pytest.skip(f"no script that starts a Slurm: {TOY_CLUSTER}")
    if CONFIGURATION.exists() and "ClusterName=toy\n" not in CONFIGURATION.read_text():
        pytest.skip(f"{CONFIGURATION} is of another Slurm, and would be replaced")
    if shutil.which("squeue") and subprocess.run(["squeue"], capture_output=True).returncode == 0:
        pytest.skip("a Slurm is running here already")
    toy = Path(mkdtemp(prefix="toy-"))
    toy.chmod(0o755)  # jobs of other users start in it
    environment = os.environ | {"TOY": str(toy)}
    said = toy / "toy-cluster.log"
    with said.open("w") as log:
        command = [TOY_CLUSTER, "start"]
        begun = subprocess.run(command, env=environment, stdout=log, stderr=log, check=False)
    if begun.returncode and not shutil.which("slurmctld"):
        pytest.skip("the packages of Slurm cannot be installed here")
    assert begun.returncode == 0, said.read_text()[-2000:]
    yield
    subprocess.run([TOY_CLUSTER, "stop"], env=environment, capture_output=True, check=True)


@pytest.fixture(scope="module")
def ids(slurm: None) -> dict[str, str]:
    """Run all jobs to their ends, and return their ids by name."""
    for added in (["account", ACCOUNT], ["user", ",".join(USERS), f"account={ACCOUNT}"]):
        printed("sacctmgr", "-i", "add", *added)
    found = {AGAIN.name: AGAIN.submit()}
    requeue(found[AGAIN.name])
    found |= {job.name: job.submit() for job in [*PLAIN, ARRAY]}
    after = replace(AFTER, options=("-d", f"afterany:{found['before']}"))
    found[AFTER.name] = after.submit()
    until = time.monotonic() + PATIENCE_S
    while n_in_queue(found.values()):
        assert time.monotonic() < until, printed("squeue")
        time.sleep(1)
    time.sleep(LATE_S)  # until the accounting has heard of the last end
    return found


def requeue(job: str) -> None:
    """Put a job back once it runs, and let it start again without the usual two minutes."""
    for wanted, command in (
        ("RUNNING None", ["requeue", job]),
        ("PENDING BeginTime", ["update", f"JobId={job}", "StartTime=now"]),
    ):
        until = time.monotonic() + PATIENCE_S
        while printed("squeue", "-h", "-o", "%T %r", "-j", job).strip() != wanted:
            assert time.monotonic() < until, printed("squeue")
            time.sleep(0.2)
        time.sleep(1)
        printed("scontrol", *command)


@pytest.fixture(scope="module", params=ASKED)
def runs(
    request: pytest.FixtureRequest, ids: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> pd.DataFrame:
    """Import what sacct says of the jobs."""
    path = tmp_path_factory.mktemp("accounting") / f"jobs.{request.param}"
    path.write_text(ASKED[request.param](ids.values()))
    return read_accounting(path).runs.reset_index(drop=True)


def rows_of(runs: pd.DataFrame, job: SleepingJob) -> pd.DataFrame:
    """Return the runs of a job, of which there is one at least."""
    rows = runs[runs["executable"] == job.name]
    assert len(rows), sorted(runs["executable"])
    return rows


def test_every_job_that_was_submitted_is_a_run(runs: pd.DataFrame) -> None:
    assert runs["executable"].value_counts().to_dict() == {
        **{job.name: 1 for job in [*PLAIN, AFTER]},
        ARRAY.name: 3,
        AGAIN.name: 2,
    }


@pytest.mark.parametrize("job", [*PLAIN, ARRAY, AFTER], ids=lambda job: job.name)
def test_what_a_job_asked_for_and_how_long_it_ran_is_read(
    runs: pd.DataFrame, job: SleepingJob
) -> None:
    users = [user for user in USERS if f"--uid={user}" in job.options]
    for _, run in rows_of(runs, job).iterrows():
        assert run["chunks"] * run["cpus"] == job.cpus
        assert run["requested_time"] == 60 * job.limit
        assert job.seconds <= run["run_time"] <= job.seconds + LATE_S
        assert run["partition"] == ("debug" if "debug" in job.options else "batch")
        assert run["user"] == (users or ["root"])[0]
        assert run["group"] == (ACCOUNT if users else "root")
        assert run["exclusive"] == ("--exclusive" in job.options)
        assert run["spread"] == (job.nodes > 1)


def test_a_job_after_another_waits_from_when_it_was_eligible(runs: pd.DataFrame) -> None:
    (before,) = (
        row for job in PLAIN if job.name == "before" for row in rows_of(runs, job).itertuples()
    )
    (after,) = rows_of(runs, AFTER).itertuples()
    ended = before.submit_time + before.wait_time + before.run_time
    assert ended <= after.submit_time <= ended + LATE_S
    assert after.wait_time >= 0


def test_a_requeued_job_is_two_attempts(runs: pd.DataFrame) -> None:
    first, second = rows_of(runs, AGAIN).sort_values("submit_time").itertuples()
    assert first.run_time < AGAIN.seconds <= second.run_time <= AGAIN.seconds + LATE_S
    ended = first.submit_time + first.wait_time + first.run_time
    assert ended <= second.submit_time <= ended + LATE_S


def test_text_and_json_say_the_same(ids: dict[str, str], tmp_path: Path) -> None:
    found = {}
    for name, ask in ASKED.items():
        (tmp_path / name).write_text(ask(ids.values()))
        found[name] = read_accounting(tmp_path / name).runs
    columns = ["submit_time", "wait_time", "run_time", "requested_time", "chunks", "cpus"]
    columns += ["spread", "exclusive", "partition", "user", "group", "executable"]
    one, other = (
        runs[columns].sort_values([*columns]).reset_index(drop=True) for runs in found.values()
    )
    pd.testing.assert_frame_equal(one, other, check_dtype=False)
