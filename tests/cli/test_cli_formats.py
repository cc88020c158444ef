"""What is no log that is read: every command and function says the same of it, and never SWF."""

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

import hpcgym
from hpcgym.base.errors import TraceError
from hpcgym.base.registry import has_room
from hpcgym.core.loaders import load
from hpcgym.env.scenario.from_log import episodes_of_log
from hpcgym.trace import read_log
from hpcgym.trace.accounting import read_accounting
from hpcgym.trace.accounting.slurm import COMMAND

Command = Callable[..., str]

NO_HEADER = "11|ann|2026-02-01T08:00:00|2026-02-01T08:00:05|2026-02-01T09:00:05|COMPLETED|8"
FIXED = """\
       JobID      User              Submit               Start      State      NCPUS
------------ --------- ------------------- ------------------- ---------- ----------
11                 ann 2026-02-01T08:00:00 2026-02-01T08:00:05  COMPLETED          8
11.batch               2026-02-01T08:00:05 2026-02-01T08:00:05  COMPLETED          8
"""
GWF = "# Version: 1.0\n# JobID SubmitTime WaitTime ...\n" + " ".join(["1"] * 29) + "\n"
BATSIM = {"nb_res": 4, "jobs": [{"id": "w0!1", "subtime": 0, "res": 1}], "profiles": {"a": {}}}
UTF_16 = "JobID|State\n11|COMPLETED\n".encode("utf-16")

FILES: dict[str, tuple[str | bytes, str]] = {
    "no-header.txt": (NO_HEADER, "without the line that names its fields"),
    "no-header.csv": (NO_HEADER.replace("|", ","), "without the line that names its fields"),
    "no-header-seconds.txt": ("9_3|1700000000|1700000060|FAILED|4", "without the line that names"),
    "no-header-quoted.csv": (f'"{NO_HEADER}"'.replace("|", '","'), "without the line that names"),
    "user-first.txt": ("ann|11|1700000000|COMPLETED|4|a b\n", "without the line that names"),
    "fixed-no-dashes.txt": (FIXED.replace("-", ""), "text of sacct for people"),
    "fixed.txt": (FIXED, "a table for people, whose values are cut short"),
    "fixed-no-header.txt": ("11    j0   batch   root    8  COMPLETED  0:0\n", "for people"),
    "gwf.gwf": (GWF, "GWF"),
    "gwf.swf": (GWF, "GWF"),
    "semicolons.swf": ("1;0;0;100;1;-1;-1;1;100;-1;1;1;1;1;1;1;-1;0\n", "no spaces between"),
    "commas.swf": ("1,0,0,100,1,-1,-1,1,100,-1,1,1,1,1,1,1,-1,0\n", "no spaces between"),
    "commas.csv": ("1,0,0,100,1,-1,-1,1,100,-1,1,1,1,1,1,1,-1,0\n", "no spaces between"),
    "batsim.json": (json.dumps(BATSIM), "a workload of Batsim"),
    "batsim-indented.json": (json.dumps(BATSIM, indent=2), "a workload of Batsim"),
    "accasim.json": ('{"groups": {"a": {"core": 4}}, "resources": {"a": 9}}', "AccaSim"),
    "jobs-alone.json": ('[{"job_id": 5, "state": "COMPLETED"}]', "jq '{jobs: .}'"),
    "other.json": ('{"jobs": [{"id": 1, "arrival": 0}]}', "JSON of jobs, id, arrival"),
    "lines.json": ('{"job_id": 5}\n{"job_id": 6}\n', "JSON of job_id"),
    "scontrol-job.txt": ("JobId=11 JobName=a\n   UserId=ann(100) GroupId=g(2)\n", "scontrol show"),
    "scontrol-node.txt": ("NodeName=c1 CPUTot=4\n", "--machine"),
    "slurm.conf": ("# slurm.conf\nClusterName=toy\nNodeName=c[1-4] CPUs=4\n", "--machine"),
    "topology.conf": ("SwitchName=s0 Nodes=c[1-4]\n", "--machine"),
    "nodes.machines": ("36\tfer\t2\t2\t1\t256\n", "machines of Alea"),
    "sinfo.json": ('{"meta": {}, "sinfo": []}', "--machine"),
    "sshare.txt": ("Account|User|RawShares|FairShare\nroot||1|1\n", "sshare, sacctmgr or sreport"),
    "squeue.txt": ("JOBID PARTITION  NAME USER ST  TIME NODES NODELIST(REASON)\n", "squeue"),
    "qstat-f.txt": ("Job Id: 12.srv\n    Job_Name = a\n    job_state = R\n", "qstat of PBS"),
    "qstat.txt": ("Job id   Name   User   Time Use S Queue\n-----\n", "qstat of PBS"),
    "qacct.txt": ("=" * 62 + "\nqname        all.q\n", "qacct of SGE"),
    "bjobs.txt": ("JOBID   USER    STAT  QUEUE      FROM_HOST\n", "bjobs or bhist of LSF"),
    "jobs.xml": ('<?xml version="1.0"?>\n<adag></adag>\n', "XML"),
    "page.swf": ("<!DOCTYPE html>\n<html></html>\n", "a web page"),
    "jobs.xlsx": (b"PK\x03\x04\x14\x00\x06\x00\x08\x00", "a zip archive"),
    "jobs.tar": (b"mine.swf".ljust(257, b"\0") + b"ustar\0", "an archive"),
    "jobs.zst": (b"\x28\xb5\x2f\xfd\x04\x00", "packed by another program"),
    "windows.txt": (UTF_16, "UTF-16"),
    "numbers.bin": (bytes(range(256)), "no text"),
    "lfs.swf.gz.txt": ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
    "scenario.toml": ('[trace]\nname = "tiny"\n', "a configuration"),
    "packed.txt.gz": (gzip.compress(NO_HEADER.encode()), "without the line that names"),
    "packed.json.xz": (lzma.compress(json.dumps(BATSIM).encode()), "a workload of Batsim"),
    "prose.txt": ("who knows\n", "it begins with 'who knows'"),
    "prose.swf": ("who knows\n", "it begins with 'who knows'"),
    "empty.txt": ("", "the file is empty"),
    "named.swf.gz": ("JobID|State\n", "named .gz but not gzip"),
}
"""A file's content, and what each message about it says."""

COMMANDS = {
    "simulate": ("simulate", "FILE"),
    "check": ("traces", "check", "FILE"),
    "statistics": ("traces", "statistics", "FILE"),
    "import": ("traces", "import", "FILE", "-o", "out.csv"),
    "report": ("report", "FILE", "-o", "out.html"),
    "plot": ("plot", "FILE", "-o", "out.svg"),
    "evaluate": ("evaluate", "--log", "FILE", "--agents", "FCFS"),
    "cross-validate": ("cross-validate", "FCFS", "--log", "FILE", "-o", "out"),
}
FUNCTIONS = [hpcgym.load_workload, read_log, read_accounting, episodes_of_log]
FUNCTIONS += [load("hpcgym.site.log:read_site_log")] if has_room("site") else []


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write every file in the folder of work."""
    monkeypatch.chdir(tmp_path)
    for name, (content, _) in FILES.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_alike_what_is_no_log(command: str, refuse: Command) -> None:
    """Each file to one command in turns; the functions behind them are given all."""
    turn, n = [*COMMANDS].index(command), len(COMMANDS)
    for name, (_, said) in [*FILES.items()][turn::n]:
        words = [word.replace("FILE", name) for word in COMMANDS[command]]
        message = refuse(*words)
        assert said in message, message
        assert "field 1 (job_id)" not in message and "SWF log" not in message
        assert message.partition(f"{name}:")[2] == f"{said_of(name)}\n"


def said_of(name: str) -> str:
    """Return what the reader of logs says of a file, behind its name."""
    with pytest.raises(TraceError) as raised:
        read_log(name)
    return str(raised.value).removeprefix(f"{name}:")


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_function_says_alike_what_is_no_log(function: Callable[[str], object]) -> None:
    for name, (_, said) in FILES.items():
        with pytest.raises(TraceError) as raised:
            function(name)
        assert said in str(raised.value)


@pytest.mark.parametrize("name", ["no-header.txt", "fixed.txt", "scontrol-job.txt", "squeue.txt"])
def test_what_comes_of_slurm_is_answered_with_the_command_that_prints_what_is_read(
    name: str,
) -> None:
    assert COMMAND in said_of(name)


@pytest.mark.long
def test_a_table_of_jobs_and_swf_are_known_by_their_content(run: Command, refuse: Command) -> None:
    swf = "1 0 0 100 1 -1 -1 1 100 -1 1 1 1 1 1 1 -1 0\n"
    table = "job_id,submit_time,run_time,requested_time,chunks\n1,0,100,100,1\n"
    for name, text in (("swf.csv", swf), ("swf.txt", swf), ("jobs.txt", table), ("jobs", table)):
        Path(name).write_text(text)
        assert "1 of 1 jobs kept" in run("simulate", name, "--processors", 4)
    assert "a table of jobs, no accounting" in refuse("traces", "import", "jobs", "-o", "new.csv")
    Path("odd.csv").write_text(table.replace("run_time", "runtime"))
    assert "unknown column 'runtime'; did you mean 'run_time'?" in refuse("simulate", "odd.csv")
    Path("other.csv").write_text("'id','submit'\n'1','0'\n")
    for words in (["simulate", "other.csv"], ["traces", "import", "other.csv", "-o", "new.csv"]):
        assert "unknown column \"'id'\"" in refuse(*words)
