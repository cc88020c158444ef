"""Other libraries run on hpcgym, each in a virtual environment of its own.

An environment is kept, and made anew when what it needs has changed. A program of `tests/clients/`
prints what ran as lines that begin with "client: ".
"""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from hpcgym.base.output import writing

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "datasets" / "clients.csv"
TORCH = "torch==2.13.0"
VIDEOS = ("imageio[ffmpeg]==2.38.1", "pygame-ce==2.5.8", "pytest==9.2.0")
FOR_D3RLPY = (
    *("minari==0.5.4", "pyarrow==26.0.1", "pillow==13.0.0", "gym==0.26.2", "h5py==3.16.0"),
    *("scikit-learn==1.9.1", "structlog==26.1.0", "click==8.5.1", "colorama==0.4.6"),
    *("dataclasses-json==0.6.7", "tqdm==4.70.1"),
)
FOR_PUFFERLIB = (
    *("psutil==7.2.2", "nvidia-ml-py==13.615.71", "rich-argparse==1.8.0", "pyro-ppl==1.9.2"),
    *("setuptools==81.0.0",),
)
CLIENTS = {
    "sb3": ("stable-baselines3==2.9.2", TORCH),
    "sb3-contrib": ("sb3-contrib==2.9.2", TORCH),
    "rl_zoo3": ("rl_zoo3==2.9.2", TORCH),
    "sbx": ("sbx-rl==0.28.0", "jax[cpu]==0.10.2", TORCH),
    "cleanrl": (TORCH, "gymnasium==1.4.0", "tensorboard==2.21.0", "tyro==1.0.17"),
    "rllib": ("ray[rllib]==2.60.0", TORCH),
    "torchrl": ("torchrl==0.14.1", TORCH),
    "tianshou": ("tianshou==2.0.1", TORCH),
    "skrl": ("skrl[torch]==2.1.1", TORCH),
    "d3rlpy": ("d3rlpy==2.8.1", TORCH, *FOR_D3RLPY),
    "pufferlib": ("pufferlib-core==3.0.23", TORCH, *FOR_PUFFERLIB),
    "gymnasium": ("gymnasium[torch]==1.4.0", TORCH, *VIDEOS),
    "gymnasium-1.2": ("gymnasium[torch]==1.2.2", TORCH, *VIDEOS),
}
"""What each installs, itself first; `tests/clients/use_NAME.py` runs it."""
LOOSE = ("d3rlpy", "pufferlib")
"""Clients whose own pins refuse hpcgym's Gymnasium, or a torch for the CPU.

They are installed without what they ask for, and CLIENTS has it.
"""

NO_NETWORK = re.compile("from versions: none|max retries|name resolution|connection", re.IGNORECASE)
"""What pip says where there is no network."""


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        ran: What ran, as the program says.
        result: "passed", "FAILED", or "skipped" with the reason.
        seconds: How long it took, without its installation.
    """

    client: str
    version: str
    ran: str
    result: str
    seconds: str = ""


def run(client: str, folder: Path, cleanrl: Path | None) -> tuple[Row, str]:
    """Run a client; return its row, and what it printed if it failed.

    Args:
        client: A name of CLIENTS.
        folder: Where its virtual environment is.
        cleanrl: Folder of CleanRL's scripts; without one they are skipped.
    """
    version = re.sub(r"(\[.*\])?==", " ", CLIENTS[client][0])
    if client == "cleanrl" and cleanrl is None:
        return Row(client, version, "", "skipped: no --cleanrl FOLDER was given"), ""
    python, refusal = _install(client, folder)
    if refusal:
        return refused(client, version, refusal)
    begun = time.monotonic()
    arguments = [] if cleanrl is None else [cleanrl.resolve()]
    code, printed = _call(python, _program(client), *arguments)
    seconds = f"{time.monotonic() - begun:.0f}"
    lines = re.findall(r"^client: (.*)", printed, re.MULTILINE)
    versions = ", ".join(dict.fromkeys([version, *lines[:1]]))
    result = "FAILED" if code else "passed"
    return Row(client, versions, "; ".join(lines[1:]), result, seconds), printed if code else ""


def refused(client: str, version: str, refusal: str) -> tuple[Row, str]:
    """Return the row of a client that pip did not install: skipped if there is no network.

    Example:
        >>> refused("skrl", "skrl 2.1.1", "ERROR: no version (from versions: none)")[0].result
        'skipped: ERROR: no version (from versions: none)'
    """
    reason = next((line for line in refusal.splitlines() if NO_NETWORK.search(line)), "")
    if reason:
        return Row(client, version, "", f"skipped: {reason.strip()[:200]}"), ""
    return Row(client, version, "", "FAILED: not installed"), refusal


def table_of(rows: Iterable[Row]) -> Table:
    """Return rows as a table to print."""
    table = Table("client", "version", "what ran", "result", "s")
    for row in rows:
        table.add_row(*row)
    return table


def with_row(text: str, row: Row) -> str:
    """Return the text of the table with a new row in place of its client's row.

    A client that was skipped keeps the row it has.
    """
    head, *old = csv.reader(io.StringIO(text))
    lines = {line[0]: line for line in old}
    if row.client not in lines or not row.result.startswith("skipped"):
        lines[row.client] = [*row]
    written = io.StringIO()
    ordered = [lines[client] for client in CLIENTS if client in lines]
    csv.writer(written, lineterminator="\n").writerows([head, *ordered])
    return written.getvalue()


def write(row: Row) -> None:
    """Write a row into the table."""
    text = with_row(TABLE.read_text(encoding="utf-8"), row)
    with writing(TABLE, force=True) as file:
        file.write_text(text, encoding="utf-8")


def _program(client: str) -> Path:
    """Return the program that runs a client."""
    name = client.removesuffix("-1.2").replace("-", "_")
    return ROOT / "tests" / "clients" / f"use_{name}.py"


def _install(client: str, folder: Path) -> tuple[Path, str]:
    """Make the environment of a client if need be; return its Python, and why there is none."""
    place, calls = folder.resolve() / client, [[*CLIENTS[client], "-e", str(ROOT)]]
    if client in LOOSE:
        itself, *rest = calls[0]
        calls = [rest, ["--no-deps", itself]]
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp, key = place / "hpcgym.txt", repr((calls, (ROOT / "pyproject.toml").read_text()))
    if stamp.exists() and stamp.read_text() == key:
        return python, ""
    code, printed = _call(sys.executable, "-m", "venv", "--clear", place)
    for wanted in calls:
        if code == 0:
            code, printed = _call(python, "-m", "pip", "install", "--quiet", *wanted)
    if code == 0:
        stamp.write_text(key)
    return python, printed if code else ""


def _call(*command: str | Path) -> tuple[int, str]:
    """Run a program in an empty folder; return its exit status and what it printed."""
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(command, cwd=folder, env=variables, stdout=output, stderr=output)
        output.seek(0)
        return done.returncode, output.read()
