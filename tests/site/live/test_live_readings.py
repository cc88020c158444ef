"""What Slurm prints is read line by line, and refused where it is no answer."""

import pytest
from live_queues import RECORDED, fake_commands, reading, waits

from hpcgym.base.errors import LiveError
from hpcgym.site.live import readings
from hpcgym.site.live.last_reading import check_against_last
from hpcgym.site.live.readings import (
    COMMANDS,
    UNLIMITED_S,
    Text,
    asked,
    printed,
    read_queue,
    rows_of,
    shell_line,
    text_of,
)

LINE = (
    "7_[2-9%2]|7|ana|phys|batch|normal|PENDING|JobArrayTaskLimit|901|-5|1000|N/A|N/A|60|0:00"
    "|1-02:03:04|4|2|NO|afterok:5(unfulfilled)||"
)
RUNS = (
    "8|8|ben|chem|batch|normal|RUNNING|None|9|0|900|900|1000|100|1:00|UNLIMITED|4|1|OK|(null)|n1|"
)
NODE = "n1|batch|mixed|16|4/12/0/16|1|\nn1|debug|mixed|16|4/12/0/16|2|\n"
IDLE = "n1|batch|idle|16|0/16/0/16|1|\n"


def queue(squeue="", sprio="", sinfo=NODE):
    """Read three texts."""
    return read_queue(Text("q.txt", squeue), Text("p.txt", sprio), Text("n.txt", sinfo))


def test_fields_of_a_waiting_array_are_read():
    read = queue(f"{LINE}\n{RUNS}\n", "7|batch|901|-40|\n")
    (array,) = read.waiting
    assert (array.job_id, array.array_id, array.tasks, array.at_once) == (7, "7_[2-9%2]", 8, 2)
    assert (array.user, array.account, array.partition) == ("ana", "phys", "batch")
    assert (array.priority, array.nice) == (901, -5)
    assert (array.submit_time, array.eligible_time, array.start_time) == (1000, None, None)
    assert (array.cpus, array.nodes, array.exclusive) == (4, 2, True)
    assert array.limit_s == 26 * 3600 + 3 * 60 + 4
    assert array.dependency == "afterok:5(unfulfilled)"


def test_clock_of_a_reading_is_slurms_own():
    read = queue(f"{LINE}\n{RUNS}\n")
    (runs,) = read.running
    assert (runs.start_time, runs.elapsed_s, runs.limit_s) == (1000, 60, UNLIMITED_S)
    assert read.now == 1000 + 60


def test_recorded_queue_has_every_job_of_its_lines():
    read = read_queue(
        *(text_of(name, RECORDED / f"{name}.txt") for name in ("squeue", "sprio", "sinfo"))
    )
    lines = (RECORDED / "squeue.txt").read_text(encoding="utf-8").splitlines()
    states = [line.split("|")[6] for line in lines]
    assert len(read.waiting) == states.count("PENDING") > 10
    assert len(read.running) == len(lines) - len(read.waiting) > 2
    reasons = {job.reason for job in read.waiting}
    assert {"JobHeldUser", "Dependency", "BeginTime", "JobArrayTaskLimit", "Priority"} <= reasons
    assert {job.user for job in read.waiting} == {"ana", "ben", "chi"}
    assert {job.account for job in read.waiting} == {"phys", "chem"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LINE + "\n" + LINE[:-40], r"q.txt:2: \d+ fields that end in '\|', expected 21"),
        (LINE + "\n\n", "q.txt:2: 0 fields"),
        (LINE[:-1], "q.txt:1: 20 fields"),
        (LINE.replace("|901|", "|much|"), "q.txt:1: PriorityLong is 'much'"),
        (LINE.replace("|1000|", "|2026-11-27T02:59:07|"), "q.txt:1: SubmitTime is '2026-11-27T"),
        (LINE.replace("|1-02:03:04|", "|3|"), "q.txt:1: TimeLimit is '3'"),
        (LINE.replace("|ana|", "||"), "q.txt:1: UserName is ''"),
        (f"{LINE}\n{LINE}\n", r"q.txt:2: job 7_\[2-9%2\] stands in q.txt:1 already"),
        (RUNS.replace("|1000|", "|N/A|"), "q.txt:1: job 8 is RUNNING without StartTime"),
        ("JOBID PARTITION NAME USER ST\n", "q.txt:1: 0 fields"),
    ],
)
def test_line_that_is_not_of_the_format_is_refused_with_its_place(text, says):
    with pytest.raises(LiveError, match=says) as refused:
        queue(text)
    message = str(refused.value)
    assert "already" in message or "StartTime" in message or shell_line("squeue") in message


def test_lines_of_nodes_and_priorities_are_as_strict():
    with pytest.raises(LiveError, match=r"n.txt:1: CPUsState is '4/12'"):
        queue(LINE, sinfo=NODE.replace("4/12/0/16", "4/12", 1))
    with pytest.raises(LiveError, match=r"p.txt:1: 3 fields .* expected 4"):
        queue(LINE, "7|batch|901|\n")
    with pytest.raises(LiveError, match=r"n.txt: no nodes"):
        queue(LINE, sinfo="")


def test_empty_queue_beside_jobs_elsewhere_is_no_answer():
    with pytest.raises(LiveError, match="no jobs, but sinfo says that jobs hold 4 cpus"):
        queue("")
    with pytest.raises(LiveError, match="no jobs, but sprio lists 1 jobs"):
        queue("", "7|batch|901|0|\n", IDLE)
    assert queue("", "", IDLE).waiting == ()


def test_queue_that_was_not_empty_before_is_refused_when_it_is(tmp_path):
    check_against_last(reading(), tmp_path)  # nothing is known of this cluster
    check_against_last(reading([waits(1, 1, 60), waits(2, 1, 60)]), tmp_path)
    with pytest.raises(LiveError, match="the last reading of this cluster had 2"):
        check_against_last(reading(), tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.unlink()
    check_against_last(reading(), tmp_path)


def test_command_that_fails_or_complains_is_no_answer(tmp_path, monkeypatch):
    dead = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    fake_commands(
        tmp_path, monkeypatch, squeue=f"echo '{dead}' >&2; exit 1", sprio="echo careful >&2"
    )
    with pytest.raises(LiveError, match="squeue: exit code 1: slurm_load_jobs error"):
        asked("squeue")
    with pytest.raises(LiveError, match="sprio: exit code 0: careful"):
        asked("sprio")
    with pytest.raises(LiveError, match="sinfo: No such file or directory; run this where"):
        monkeypatch.setenv("PATH", str(tmp_path))
        asked("sinfo")


def test_priorities_without_factors_are_an_empty_reading(tmp_path, monkeypatch):
    says = "You are not running a supported priority plugin (priority/basic)."
    fake_commands(tmp_path, monkeypatch, sprio=f"echo '{says}' >&2; exit 1")
    assert asked("sprio").text == ""
    fake_commands(tmp_path, monkeypatch, squeue=f"echo '{says}' >&2; exit 1")
    with pytest.raises(LiveError, match="supported priority plugin"):
        asked("squeue")


def test_command_that_hangs_is_given_up(tmp_path, monkeypatch):
    fake_commands(tmp_path, monkeypatch, squeue="exec sleep 30")
    monkeypatch.setattr(readings, "TIMEOUT_S", 0.2)
    with pytest.raises(LiveError, match=r"squeue: no answer within 0.2 s"):
        asked("squeue")


def test_users_shell_does_not_change_what_commands_print(tmp_path, monkeypatch):
    fake_commands(tmp_path, monkeypatch, squeue="env")
    monkeypatch.setenv("SQUEUE_USERS", "ana")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    lines = printed("squeue").splitlines()
    assert "SLURM_TIME_FORMAT=%s" in lines
    assert not [line for line in lines if line.startswith("SQUEUE_")]


def test_formats_are_pinned_and_never_cut_a_field(tmp_path, monkeypatch):
    log = fake_commands(tmp_path, monkeypatch, squeue="", sprio="", sinfo="")
    for name in COMMANDS:
        asked(name)
    asked_for = log.read_text(encoding="utf-8").splitlines()
    assert asked_for[0].startswith("squeue -a -h -t PD,R,CF,CG -O JobArrayID:|,JobID:|,UserName:|,")
    assert asked_for[1] == "sprio -h -o %i|%r|%Y|%S|"
    assert asked_for[2] == (
        "sinfo -a -h -N -O NodeList:|,Partition:|,StateLong:|,CPUs:|,CPUsState:|,PriorityTier:|"
    )
    assert asked_for[3] == "sprio -h -o %i|%r|%Y|%S|%N|%A|%B|%F|%J|%P|%Q|%T|"


def test_file_that_is_not_there_is_one_clear_error(tmp_path):
    with pytest.raises(LiveError, match=r"gone.txt: no such file.* sprio -h -o"):
        text_of("sprio", tmp_path / "gone.txt")


def test_rows_tell_where_they_stand():
    assert [where for where, _ in rows_of("sinfo", Text("n.txt", NODE))] == ["n.txt:1", "n.txt:2"]
