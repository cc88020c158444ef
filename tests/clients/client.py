"""What the programs of this folder share: examples of docs/clients.md, run and looked at."""

import multiprocessing
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

if multiprocessing.current_process().name == "MainProcess":
    print(f"client: gymnasium {gymnasium.__version__}", flush=True)

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"


def example(heading: str) -> dict[str, Any]:
    """Run the Python under a heading of the page, or the program it names; return variables."""
    text = PAGE.read_text(encoding="utf-8")
    start = text.index(f"## {heading}\n")
    section = text[start:].partition("\n## ")[0]
    variables: dict[str, Any] = {"__name__": heading}
    for block in re.finditer(r"^```python.*?\n(.*?)^```", section, re.M | re.S):
        before = text.count("\n", 0, start + block.start(1))  # so that a traceback shows the line
        exec(compile("\n" * before + block[1], str(PAGE), "exec"), variables)
    for name in re.findall(r"\]\((clients/\w+\.py)\)", section):
        program = PAGE.parent / name
        exec(compile(program.read_text(encoding="utf-8"), str(program), "exec"), variables)
    return variables


def report(what: str) -> None:
    """Say what ran; check_clients.py puts it into the table."""
    print(f"client: {what}", flush=True)


def refuse_infinite(parameters: Iterable[Any]) -> None:
    """Check that a training left finite numbers in its network, and at least one."""
    arrays = [one.detach().cpu().numpy() for one in parameters]
    assert arrays and all(np.isfinite(array).all() for array in arrays)


OF_PRICE = 21
"""What rewards of `Price` sum to less than: 1 + 20 - J, and J is above 0."""


def check_returns(returns: Iterable[float], below: float = 0) -> int:
    """Check that episodes ended with a sum of rewards, by default minus a ratio; count them."""
    paid = [float(one) for one in returns]
    assert paid and all(-np.inf < one < below for one in paid), paid
    return len(paid)
