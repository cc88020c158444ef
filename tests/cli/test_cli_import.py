"""`hpcgym traces import`: from what a real Slurm printed to a log that is simulated."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hpcgym.cli import app
from hpcgym.machine import Machine, NodeType, Partition
from hpcgym.trace import read_log, read_swf, read_table
from hpcgym.trace.accounting import anonymise, read_accounting, to_workload

Command = Callable[..., str]
ROOT = Path(__file__).parents[2]
SLURM = ROOT / "tests" / "data" / "slurm"
MACHINE = """\
[[nodes]]
count = 2
cpus = 16
gpus = 4

[[partitions]]
name = "batch"
nodes = "0-1"

[[partitions]]
name = "debug"
nodes = "0-1"

[[partitions]]
name = "gpu"
nodes = "0"
"""


def test_accounting_is_imported_and_simulated_on_its_nodes(run: Command, tmp_path: Path) -> None:
    (tmp_path / "machine.toml").write_text(MACHINE)
    text, jobs = SLURM / "sacct-allocations.txt", tmp_path / "jobs.csv"
    said = run("traces", "import", text, "-o", jobs, "--machine", tmp_path / "machine.toml")
    assert "rows       123, of which 120 are attempts" in said
    assert "left out   2  cancelled before its start: line 116, 118" in said
    assert "machine    32 processors\n" in said
    shown = run("simulate", jobs, "--machine", tmp_path / "machine.toml")
    assert re.search(r"jobs +120", shown)


def test_anonymised_names_are_equal_where_names_are_and_nowhere_found(
    run: Command, tmp_path: Path
) -> None:
    jobs = tmp_path / "jobs.csv"
    run("traces", "import", SLURM / "sacct-allocations.txt", "-o", jobs)
    plain = read_table(jobs).records
    run("traces", "import", SLURM / "sacct-allocations.txt", "-o", jobs, "--anonymise", "--force")
    assert read_table(jobs).records.equals(plain)  # numbers by first appearance
    words = set(re.findall(r"[\w-]+", jobs.read_text()))
    assert not words & {"ana", "ben", "chi", "chem", "phys", "cancelled", "name", "root"}
    assert {"batch", "gpu", "normal"} <= words


def test_a_log_in_swf_explains_its_numbers_and_says_that_its_machine_is_a_guess(
    run: Command, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.swf.gz"
    run("traces", "import", SLURM / "sacct.json.gz", "-o", path)
    log = read_swf(path)
    assert "2 gpu" in log.header_values("Partition")
    assert log.header_values("Note") == ["MaxProcs is the fewest on which the jobs fit as recorded"]


@pytest.mark.long
@pytest.mark.parametrize("name", ["sacct-allocations.txt", "sacct.json.gz"])
def test_commands_that_take_a_log_take_accounting_and_nodes_as_slurm_prints_them(
    name: str, run: Command, tmp_path: Path
) -> None:
    nodes, jobs = tmp_path / "nodes.txt", tmp_path / "jobs.csv"
    texts = ((SLURM / f"scontrol-{kind}.txt").read_text() for kind in ("partition", "node"))
    nodes.write_text("\n".join(texts))
    run("traces", "import", SLURM / name, "-o", jobs, "--machine", nodes)
    figures = re.compile(r"(?:wait|bsld|utilisation).*")
    for machine in ([], ["--machine", nodes]):
        size = [] if machine else ["--processors", 32]
        shown, imported = (
            run("simulate", log, *machine, *size, "--by", "class") for log in (SLURM / name, jobs)
        )
        if machine:  # without nodes accounting keeps whole nodes, which a table loses
            assert figures.findall(shown) == figures.findall(imported)
        assert "120 of 120 jobs kept" in shown
    said = CliRunner().invoke(app, ["simulate", str(SLURM / name)]).stderr
    assert (
        "120 attempts in 123 rows; left out 2 cancelled before its start, 1 still waiting;" in said
    )
    assert "waits from eligible time" in said


def test_jobs_of_a_partition_that_the_machine_lacks_are_counted(
    run: Command, tmp_path: Path
) -> None:
    machine = Machine((NodeType(2, 16, 4),), (Partition("batch", "0-1"), Partition("gpu", "0")))
    found = read_accounting(SLURM / "sacct-allocations.txt", machine=machine)
    assert found.ledger.left_out["partition 'debug' is not of the machine"].rows == 1
    assert len(to_workload(found, machine)) == len(found.runs) == 119
    unnamed = Machine((NodeType(2, 16, 4),))
    found = read_accounting(SLURM / "sacct-allocations.txt", machine=unnamed)
    workload = to_workload(found, unnamed)
    assert len(workload) == 120
    assert workload.source is not None and "debug" in workload.source.named("partition")


@pytest.mark.long
def test_a_machine_that_nobody_stated_is_called_a_guess(run: Command, tmp_path: Path) -> None:
    guess = "a guess: the fewest on which the jobs fit as recorded"
    text = SLURM / "sacct-allocations.txt"
    assert f"machine    32 processors ({guess})" in run("simulate", text)
    for command in (
        ["evaluate", "--log", text, "--agents", "FCFS,SAF"],
        ["plot", text, "-o", tmp_path / "jobs.png"],
    ):
        assert guess in run(*command)
    run("traces", "import", text, "-o", tmp_path / "jobs.swf")
    assert guess in run("simulate", tmp_path / "jobs.swf")
    assert "120" in run("traces", "check", text)
    assert "jobs" in run("traces", "statistics", text)


def test_names_of_accounting_survive_in_a_workload_and_can_be_hidden() -> None:
    found = read_accounting(SLURM / "sacct-allocations.txt")
    workload = to_workload(found, processors=64)
    source = workload.source
    assert source is not None and workload.machine_processors == 64
    assert workload.wait_time.tolist() == found.runs["wait_time"].tolist()
    for column, name in (("user", "ana"), ("group", "chem"), ("partition", "gpu")):
        names = source.named(column)[workload.source_row]
        assert names.tolist() == found.runs[column].tolist()
        assert name in names
    hidden = anonymise(found.runs, key=b"k")
    assert hidden.equals(anonymise(found.runs, key=b"k"))
    assert not set(hidden["user"]) & set(found.runs["user"])
    assert hidden["partition"].equals(found.runs["partition"])


def test_names_in_a_table_and_in_comments_of_a_log_are_known_too(
    run: Command, tmp_path: Path
) -> None:
    for name in ("jobs.csv", "jobs.swf"):
        run("traces", "import", SLURM / "sacct-allocations.txt", "-o", tmp_path / name)
        log = read_log(tmp_path / name)
        assert {"root", "ana", "ben", "chi"} == set(log.named("user"))
        assert {"batch", "debug", "gpu"} == set(log.named("partition"))


def test_the_page_shows_what_the_import_of_its_rows_prints(run: Command, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "accounting.md").read_text(encoding="utf-8")
    rows = re.search(r"<<'END'\n(.*?)END\n", page, re.DOTALL)
    shown = re.search(r"```text\n(.*?)```", page, re.DOTALL)
    assert rows is not None
    assert shown is not None
    (tmp_path / "sacct.txt").write_text(rows[1])
    jobs = tmp_path / "jobs.csv"
    zone = ("--timezone", "Europe/Paris")
    said = run("traces", "import", tmp_path / "sacct.txt", "-o", jobs, *zone)
    assert said.replace(f"{tmp_path}/", "") == shown[1]
