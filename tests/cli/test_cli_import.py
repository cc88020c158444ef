"""`hpcgym traces import`: from what a real Slurm printed to a log that is simulated."""

import re
from collections.abc import Callable
from pathlib import Path

from hpcgym.trace import read_swf, read_table

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
    assert "rows       123, of which 120 are runs of jobs" in said
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
    assert log.header_values("Note") == ["MaxProcs is the fewest on which the runs fit as recorded"]


def test_commands_that_take_a_log_say_how_to_import_accounting(refuse: Command) -> None:
    for name in ("sacct-minimal.txt", "sacct.json.gz"):
        said = refuse("simulate", SLURM / name)
        assert f"hpcgym traces import {SLURM / name} -o jobs.csv" in said


def test_imports_are_refused_in_one_line_that_says_what_is_allowed(
    refuse: Command, tmp_path: Path
) -> None:
    text = SLURM / "sacct-minimal.txt"
    said = refuse("traces", "import", text, "-o", tmp_path / "jobs.txt")
    assert "allowed endings: .csv, .csv.gz, .swf, .swf.gz" in said
    said = refuse("traces", "import", text, "-o", tmp_path / "jobs.csv", "--counted-from", "start")
    assert 'allowed: "eligible", "submit"' in said
    said = refuse("traces", "import", tmp_path / "none.txt", "-o", tmp_path / "jobs.csv")
    assert "none.txt: cannot be read" in said
    assert not (tmp_path / "jobs.csv").exists()


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
