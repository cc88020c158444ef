"""The agent of the recipe of trials on Slurm: what it decides and does, with fake commands."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

RECIPE = Path(__file__).parents[1] / "docs" / "recipes" / "trials"
spec = importlib.util.spec_from_file_location("recipe_agent", RECIPE / "agent.py")
agent = importlib.util.module_from_spec(spec)
sys.modules["recipe_agent"] = agent
spec.loader.exec_module(agent)

LONG = "7|R|trial|5:00|0|1|"  # A job whose trial has lasted for the limit


class Site:
    """Commands of a Slurm that lists what it is told to, and fails where it is told to."""

    def __init__(self, tmp_path, *words):
        self.journal, self.stop = tmp_path / "journal.jsonl", tmp_path / "stop"
        self.options = agent.parsed(
            ["--journal", str(self.journal), "--stop", str(self.stop), *words]
        )
        self.now, self.listed, self.calls, self.failure = 1_000_000.0, (0, "", ""), [], ""
        self.begin()

    def begin(self):
        """Start the agent, as after a crash: only its journal is left."""
        self.agent = agent.Agent(self.options, self.journal.open("a+"), self.call, lambda: self.now)

    def call(self, *words):
        if words == agent.READ:
            return self.listed
        self.calls.append(" ".join(words))
        return (1, "", self.failure) if self.failure else (0, "", "")

    def lists(self, *rows):
        """Let squeue list these rows, and the agent make a step; return what it then called."""
        self.listed, self.calls = (0, "\n".join(rows) + "\n", ""), []
        self.goes_on = self.agent.step()
        return self.calls

    def written(self, *keys):
        """Return what the journal says."""
        entries = [json.loads(line) for line in self.journal.read_text().splitlines()]
        return [tuple(entry.get(key) for key in keys) for entry in entries]


def kill(job):
    return f"scontrol requeue Incomplete {job}"


def home(job):
    return [f"scontrol update jobid={job} {change}" for change in ("partition=main", "qos=normal")]


def test_a_trial_is_ended_at_its_limit_and_its_job_kept_off_trials_then(tmp_path):
    site = Site(tmp_path)
    assert (
        site.lists("7|R|trial|4:59|0|1|", "8|R|main|9:00:00|0|1|", "9|PD|main,trial|0:00|0|1|")
        == []
    )
    assert site.lists(LONG, "8|R|main|1-00:00:00|0|1|") == [kill(7)]
    assert site.lists("7|PD|main,trial|0:00|1|1|") == home(7)
    assert site.lists("7|PD|main|0:00|1|1|") == []
    assert site.written("act", "job") == [("kill", "7"), ("home", "7")]


def test_a_job_that_was_evicted_as_often_as_it_may_be_is_kept_off_trials(tmp_path):
    site = Site(tmp_path)
    assert site.lists("7|PD|main,trial|0:00|1|1|") == []
    assert site.lists("7|PD|main,trial|0:00|2|1|") == home(7)
    assert site.lists("8|PD|trial|0:00|3|1|", "9_4|PD|main,trial|0:00|2|1|") == home(8) + home(
        "9_4"
    )


def test_no_job_is_killed_more_often_than_it_may_be_also_after_a_crash(tmp_path):
    site = Site(tmp_path, "--kills", "2")
    assert site.lists(LONG) == [kill(7)]
    site.begin()
    assert site.lists(LONG) == [kill(7)]
    site.begin()
    assert site.lists(LONG) == []
    assert site.lists("8|R|trial|6:00|2|1|") == []  # Slurm has restarted it twice
    assert site.written("act", "job", "why")[-2:] == [
        ("leave", "7", "kills of the job"),
        ("leave", "8", "kills of the job"),
    ]


def test_a_line_that_a_crash_cut_short_is_passed_over(tmp_path):
    site = Site(tmp_path, "--kills", "2")
    assert site.lists(LONG) == [kill(7)]
    with site.journal.open("a") as journal:
        journal.write('{"time": 1, "act": "ki')
    for again in ([kill(7)], []):
        site.begin()
        assert site.lists(LONG) == again
    assert {act for (act,) in site.written("act")} == {"kill", "leave"}


def test_no_more_jobs_are_killed_in_an_hour_than_may_be_those_first_that_ran_longest(tmp_path):
    site = Site(tmp_path, "--kills-an-hour", "2")
    rows = ["1|R|trial|6:00|0|1|", "2|R|trial|8:00|0|1|", "3|R|trial|7:00|0|1|"]
    assert site.lists(*rows) == [kill(2), kill(3)]
    site.now += 3599
    site.begin()
    assert site.lists(rows[0]) == []
    assert site.written("act", "job", "why")[-1] == ("leave", "1", "kills of this hour")
    site.now += 2
    assert site.lists(rows[0]) == [kill(1)]


def test_what_is_left_alone_is_written_once(tmp_path):
    site = Site(tmp_path, "--kills-an-hour", "0")
    for _ in range(3):
        assert site.lists(LONG) == []
    assert site.written("act") == [("leave",)]


def test_a_job_that_may_not_be_requeued_is_left_alone(tmp_path):
    site = Site(tmp_path)
    assert site.lists(LONG.replace("|1|", "|0|")) == []
    assert site.written("act", "why") == [("leave", "it may not be requeued")]


def test_a_dry_run_changes_nothing_and_its_journal_counts_for_nothing(tmp_path):
    site = Site(tmp_path, "--dry-run")
    for _ in range(3):
        assert site.lists(LONG, "8|PD|main,trial|0:00|2|1|") == []
    assert site.written("act", "job", "dry") == [("kill", "7", True), ("home", "8", True)]
    site.options.dry_run = False
    site.begin()
    assert site.lists(LONG) == [kill(7)]


@pytest.mark.parametrize("moment", ["before", "between"])
def test_no_act_follows_once_the_stop_file_is_there(tmp_path, moment):
    site = Site(tmp_path)
    if moment == "before":
        site.stop.touch()
        assert site.lists(LONG) == []
    else:
        done = site.call
        site.agent.call = lambda *words: (
            site.stop.touch() if words[0] == "scontrol" else None,
            done(*words),
        )[1]
        assert site.lists(LONG, "8|R|trial|9:00|0|1|") == [kill(8)]
    assert not site.goes_on
    assert site.written("act")[-1] == ("stop",)


@pytest.mark.parametrize(
    "reading",
    [
        (1, "", "slurm_load_jobs error: Unable to contact slurm controller"),
        (0, LONG, "squeue: error: Invalid job format specification"),
        (0, f"{LONG}\n7|R|trial", ""),
        (0, f"{LONG}\n7|R|trial|INVALID|0|1|", ""),
        (0, f"{LONG}\n7|R|trial|5:00|0|N/A|", ""),
        (0, f"{LONG}\n7|R|trial|5:00|0|1|more", ""),
        (1, "", "Command 'squeue' timed out after 60 seconds"),
    ],
)
def test_a_reading_that_is_not_understood_is_no_ground_to_act_on(tmp_path, reading):
    site = Site(tmp_path)
    site.listed = reading
    assert site.agent.step()
    assert site.calls == []
    assert site.written("act") == [("unread",)]


def test_what_slurm_refuses_is_written_and_tried_a_few_times(tmp_path):
    site = Site(tmp_path)
    site.failure = "Access/permission denied"
    called = [site.lists("7|PD|main,trial|0:00|2|1|") for _ in range(5)]
    assert called == [home(7)] * 3 + [[]] * 2
    assert site.written("act", "why")[1] == ("failed", "Access/permission denied")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0:00", 0), ("4:59", 299), ("1:00:01", 3601), ("2-00:00:00", 172_800), ("59", 59)],
)
def test_times_are_read_as_slurm_prints_them(text, seconds):
    assert agent.seconds(text) == seconds


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--limit", "0"], "--limit must be positive"),
        (["--kills", "-1"], "--kills must be positive"),
        (["--kills-an-hour", "-1"], "--kills-an-hour must not be negative"),
    ],
)
def test_bounds_that_mean_nothing_are_refused(tmp_path, capsys, words, said):
    with pytest.raises(SystemExit):
        Site(tmp_path, *words)
    assert said in capsys.readouterr().err


def run_agent(tmp_path, listed, *words):
    """Run the agent as a program, with commands that are scripts."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    for name, text in (
        ("squeue", f"#!/bin/sh\necho '{listed}'\n"),
        ("scontrol", f'#!/bin/sh\necho "$@" >> {tmp_path}/called\ntouch {tmp_path}/stop\n'),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    command = [sys.executable, str(RECIPE / "agent.py"), "--every", "0.01"]
    command += ["--journal", str(tmp_path / "journal.jsonl"), "--stop", str(tmp_path / "stop")]
    return subprocess.run(
        [*command, *words],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_program_kills_writes_and_ends_at_the_stop_file(tmp_path):
    done = run_agent(tmp_path, LONG)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "called").read_text() == "requeue Incomplete 7\n"
    acts = [json.loads(line)["act"] for line in (tmp_path / "journal.jsonl").open()]
    assert acts == ["start", "kill", "stop"]


def test_a_journal_that_another_agent_writes_or_nobody_wrote_is_refused(tmp_path):
    import fcntl

    journal = tmp_path / "journal.jsonl"
    with journal.open("a+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = run_agent(tmp_path, LONG)
    assert done.returncode == 1
    assert "does another agent run?" in done.stderr
    journal.write_text("a line\n")
    assert "is no journal of mine" in run_agent(tmp_path, LONG).stderr


def test_the_files_name_the_same_partitions_and_qos():
    options = agent.parsed(["--journal", "j", "--stop", "s"])
    lua = (RECIPE / "job_submit.lua").read_text()
    assert (
        f'HOME, HOME_QOS, TRIAL, TRIAL_QOS = "{options.home}", "{options.home_qos}", '
        f'"{options.partition}", "trial"'
    ) in lua
    conf = (RECIPE / "trials.conf").read_text()
    assert f"PartitionName={options.home} " in conf and f"AllowQos={options.home_qos} " in conf
    assert f"PartitionName={options.partition} " in conf and "AllowQos=trial " in conf
    assert (
        "add qos trial flags=NoReserve preemptmode=requeue" in (RECIPE / "sacctmgr.txt").read_text()
    )


LUA = shutil.which("lua") or shutil.which("lua5.4") or shutil.which("lua5.3")


@pytest.mark.skipif(LUA is None, reason="no interpreter of Lua is installed")
@pytest.mark.parametrize(
    ("job", "partition"),
    [
        ("script='x', requeue=65534", "main,trial"),
        ("script='x', requeue=1, partition='main', qos='normal'", "main,trial"),
        ("script='x', requeue=0", "nil"),
        ("requeue=1", "nil"),
        ("script='x', partition='other'", "other"),
        ("script='x', qos='high'", "nil"),
        ("script='x', reservation='r'", "nil"),
    ],
)
def test_only_batch_jobs_that_may_be_requeued_may_go_on_trial(job, partition):
    program = f"""slurm = {{SUCCESS=0, NO_VAL16=65534}}
    dofile('{RECIPE / "job_submit.lua"}')
    job = {{{job}}}
    assert(slurm_job_submit(job, {{}}, 0) == 0)
    print(job.partition)"""
    done = subprocess.run([LUA, "-e", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == partition
