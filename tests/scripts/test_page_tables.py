"""Tables of pages are what their commands write, where these take a moment."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

from hpcgym.base.text_table import machine_text
from research.page_tables import OF_FILES, SHELF, shelf_results
from research.tables import Tables

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs" / "datasets"
SHIPPED = {"trials": DATA / "real-logs", "old_logs": DATA / "learning"}


def test_tables_of_rules_are_what_the_script_makes() -> None:
    spec = importlib.util.spec_from_file_location("rules", ROOT / "scripts" / "rule_tables.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    folder = ROOT / "docs" / "appendices"
    shipped = {
        path.relative_to(folder).with_suffix("").as_posix(): path.read_text("utf-8")
        for path in folder.rglob("*.csv")
    }
    made = {name: f"{machine_text(table, 'csv')}\n" for name, table in script.all_tables().items()}
    assert made == shipped


@pytest.mark.parametrize("name", SHELF)
def test_tables_of_the_shelf_are_what_its_results_make(name: str) -> None:
    text = (SHIPPED[name] / f"{name}.csv").read_text("utf-8")
    assert machine_text(SHELF[name](shelf_results()), "csv") == text.rstrip("\n")


def test_agents_stand_by_their_means_over_logs_with_each_log_beside() -> None:
    kinds = {"SAF": "achievable", "BEST": "achievable", "w*": "hindsight"}
    ratios = {"SAF": 1.0, "BEST": 0.5, "w*": 0.25}
    rows = [
        {"scenario": log, "agent": name, "kind": kinds[name], "ratio": ratio}
        | {"ratio_low": ratio, "ratio_high": ratio}
        | dict.fromkeys(("log_ratio", "log_ratio_low", "log_ratio_high"), ratio - 1)
        for log in ("a-weeks", "all logs")
        for name, ratio in ratios.items()
    ]
    table = OF_FILES["orders"](pd.DataFrame(rows))
    assert table["agent"].tolist() == ["BEST", "SAF"]
    assert table["a"].tolist() == ["0.500 [0.500, 0.500]", "1.000 [1.000, 1.000]"]
    assert table["mean log ratio"][0] == "-0.500 [-0.500, -0.500]"
    assert OF_FILES["knowing"](pd.DataFrame(rows))["agent"].tolist() == ["w*"]


def test_what_is_written_of_a_table_may_be_some_rows_and_columns(tmp_path: Path) -> None:
    table = pd.DataFrame({"agent": ["SAF", "FCFS"], "ratio": [1, 2], "weeks": [3, 3]})
    Tables(tmp_path).write("few", table, ["FCFS"], ["agent", "ratio"])
    assert (tmp_path / "few.csv").read_text("utf-8") == "agent,ratio\nFCFS,2\n"
