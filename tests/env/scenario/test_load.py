"""Scenario files are strict: a typo or a contradiction is an error that says where."""

from pathlib import Path

import pytest

from hpcgym.base.errors import ScenarioError
from hpcgym.env.scenario.load import load_scenario, parse_scenario, scenario_names
from hpcgym.env.scenario.spec import EPISODE_KINDS, WeekEpisodes

GOOD = """
description = "Weeks of a log."

[trace]
name = "KTH-SP2-1996-2.1-cln"
missing_request = "max"

[machine]
processors = 100
largest_request_s = 216000

[episode]
kind = "week"
weeks = "1-45"

[scheduler]
threshold_s = 200000
"""


def edited(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_a_file_becomes_a_scenario_named_after_it(tmp_path: Path):
    path = tmp_path / "my-weeks.toml"
    path.write_text(GOOD)
    scenario = load_scenario(path)
    assert scenario == load_scenario(str(path))
    assert scenario.name == "my-weeks"
    assert scenario.trace.log == "KTH-SP2-1996-2.1-cln"
    assert scenario.episode == WeekEpisodes(weeks="1-45")
    assert scenario.scheduler.threshold_s == 200_000
    assert scenario.scheduler.policy == "SAF"


def test_a_scenario_is_handed_back_as_it_is():
    scenario = parse_scenario(GOOD, name="mine")
    assert load_scenario(scenario) is scenario


def test_a_relative_log_is_found_beside_the_scenario_file(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(edited('name = "KTH-SP2-1996-2.1-cln"', 'file = "logs/mine.swf.gz"'))
    assert load_scenario(path).trace.log == str(tmp_path / "logs" / "mine.swf.gz")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "threshold_s",
            "treshold_s",
            r"\[scheduler\] unknown key 'treshold_s'; did you mean 'threshold_s'\? Allowed: policy",
        ),
        ("threshold_s", "threshold", "did you mean 'threshold_s'"),
        ("[machine]", "[machin]", "unknown table or key 'machin'; did you mean 'machine'"),
        ("description =", "processors = 3\ndescription =", r"The key belongs to \[machine\]"),
        ("threshold_s = 200000", "processors = 3", r"The key belongs to \[machine\]"),
        ('weeks = "1-45"', "n_jobs = 3", '"week" it has no meaning; it belongs to "window"'),
        ('kind = "week"', 'kind = "window"\nn_jobs = 9', "'weeks'.* it belongs to \"week\""),
        ('kind = "week"', 'kind = "weeks"', "unknown kind 'weeks'; did you mean 'week'"),
        ('kind = "week"\n', "", r"\[episode\] kind is missing. Allowed: week, window"),
        ('kind = "week"', "kind = [1]", "unknown kind"),
        ("processors = 100\n", "", r"\[machine\] processors is missing"),
        ('missing_request = "max"\n', "", r"\[trace\] missing_request is missing"),
        ('description = "Weeks of a log."\n', "", "description is missing"),
        ('"Weeks of a log."', "3", "description must be a text, got 3"),
        (
            'missing_request = "max"',
            'missing_request = "maximum"',
            "unknown missing_request 'maximum'; did you mean 'max'",
        ),
        ('missing_request = "max"', 'missing_request = "run"', "shows true run times"),
        ("processors = 100", "processors = 100 000", "not valid TOML: .*line 9"),
        ("processors = 100", 'processors = "100"', "must be a whole number, got str '100'"),
        (
            "[scheduler]\nthreshold_s = 200000",
            "[outage]\nfrom = 3",
            r"outage must be tables \[\[outage\]\]",
        ),
        (
            GOOD,
            f"scheduler = 'SAF'\n{GOOD.partition('[scheduler]')[0]}",
            "must be a table, got 'SAF'",
        ),
        (
            "[machine]\nprocessors = 100\nlargest_request_s = 216000\n",
            "",
            r"\[machine\] is missing",
        ),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, old: str, new: str, message: str):
    path = tmp_path / "mine.toml"
    path.write_text(edited("[scheduler]\nthreshold_s = 200000", ""))
    load_scenario(path)
    path.write_text(edited(old, new))
    with pytest.raises(ScenarioError, match=message) as caught:
        load_scenario(path)
    assert str(caught.value).startswith(f"{path}: ")


OUTAGES = """
[[outage]]
from = 600_000
to = 650_000
processors = 40

[[outage]]
from = 700_000
to = 710_000
processors = 100
announced = 690_000
"""


def test_outages_are_events_of_the_scheduler(tmp_path: Path):
    path = tmp_path / "down.toml"
    path.write_text(GOOD + OUTAGES)
    first = "outage:from=600000,to=650000,processors=40"
    second = "outage:from=700000,to=710000,processors=100,announced=690000"
    assert load_scenario(path).scheduler.events == f"{first};{second}"
    path.write_text(GOOD + f'events = "{second}"\n' + OUTAGES.partition("\n\n")[0])
    assert load_scenario(path).scheduler.events == f"{second};{first}"


@pytest.mark.parametrize("nodes", ['["0-3", 7]', '"0-3,7"', '"0-3/7"'])
def test_outages_name_nodes(tmp_path: Path, nodes: str):
    path = tmp_path / "down.toml"
    path.write_text(
        GOOD + OUTAGES.partition("\n\n")[0].replace("processors = 40", f"nodes = {nodes}")
    )
    event = "outage:from=600000,to=650000,nodes=0-3/7"
    assert load_scenario(path).scheduler.events == event


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("to = 710_000", "until = 710_000", r"\[\[outage\]\] 2: unknown .*'until'"),
        ("to = 710_000", "", r"\[\[outage\]\] 2: .* needs to"),
        ("to = 710_000", "to = 700_000", "2: outage: to must be later than from"),
        ("processors = 40", 'processors = "40"', "1: processors must be a whole number, got '40'"),
        ("processors = 40", "processors = true", "1: processors must be a whole number, got True"),
        ("announced = 690_000", "announced = 700_001", "2: outage: announced must be at most from"),
        ("processors = 40", "nodes = 1.5", r"\[\[outage\]\] 1: .* ids, ranges or names of groups"),
    ],
)
def test_what_is_no_outage_is_refused(tmp_path: Path, old: str, new: str, message: str):
    path = tmp_path / "down.toml"
    path.write_text(GOOD + OUTAGES.replace(old, new))
    with pytest.raises(ScenarioError, match=message) as caught:
        load_scenario(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_an_unreadable_file_is_named(tmp_path: Path):
    with pytest.raises(ScenarioError, match=r"gone\.toml: no such file"):
        load_scenario(tmp_path / "gone.toml")
    with pytest.raises(ScenarioError, match="cannot be read: Is a directory"):
        load_scenario(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="not a text file in UTF-8"):
        load_scenario(binary)


@pytest.mark.parametrize("name", scenario_names())
def test_every_scenario_on_the_shelf_loads(name: str):
    scenario = load_scenario(name)
    assert scenario.name == name
    assert scenario.episode.kind in EPISODE_KINDS


@pytest.mark.parametrize("name", [name for name in scenario_names() if name.endswith("-weeks")])
def test_weekly_scenarios_share_one_setting(name: str):
    scenario = load_scenario(name)
    assert isinstance(scenario.episode, WeekEpisodes)
    assert (scenario.episode.rule, scenario.episode.offset_s) == ("whole", 0)
    assert scenario.episode.weeks is None
    holds_jobs_back = name == "price-weeks"  # a threshold would start them
    assert scenario.scheduler.threshold_s == (None if holds_jobs_back else 200_000)
    assert (scenario.scheduler.policy, scenario.scheduler.backfill_order) == ("SAF", None)


@pytest.mark.parametrize("name", [name for name in scenario_names() if name.startswith("rr9212-")])
def test_the_report_s_scenarios_have_its_filter_its_weeks_and_its_backfill(name: str):
    scenario = load_scenario(name)
    weeks = "1-45" if name in ("rr9212-kth-sp2", "rr9212-ctc-sp2") else "1-100"
    assert scenario.episode == WeekEpisodes(rule="rr9212", weeks=weeks)
    assert scenario.scheduler.backfill_order == "SPF"
    assert scenario.scheduler.threshold_s == 200_000
