"""What agents that kill jobs waste stands in tables and files; others are as ever."""

import pytest

from hpcgym.evaluation import evaluate


def test_an_evaluation_says_what_trials_waste_and_how_many_jobs_they_kill():
    found = evaluate(["SAF-TRIAL", "FCFS"], "synthetic-256-weeks", weeks="1-2", progress=False)
    (table,) = found.further_tables()
    row = found.summary().set_index("agent").loc["SAF-TRIAL"]
    runs = found.frame[found.frame["agent"] == "SAF-TRIAL"]
    assert row["waste"] == pytest.approx(runs["waste"].mean()) and row["waste"] > 0
    assert row["share_killed"] > 0 and row["contest"] == "requeue"
    cells = {column.title.split("\n")[0]: column.cells for column in table.columns}
    place = cells["agent"].index("SAF-TRIAL")
    assert cells["machine"][place] == f"{100 * row['waste']:.3f}"
    assert cells["machine"][cells["agent"].index("FCFS")] == "0.000"


def test_an_evaluation_without_kills_has_no_such_table():
    found = evaluate(["FCFS"], "synthetic-256-weeks", weeks="1", progress=False)
    assert found.further_tables() == [] and "waste" not in found.summary()
