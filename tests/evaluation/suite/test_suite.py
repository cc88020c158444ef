"""Records of a suite: made, replayed, attacked and put side by side."""

import base64
import copy
import json
import math
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hpcgym.base.errors import EvaluationError, ScenarioError
from hpcgym.cli import app
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import Evaluation, evaluate
from hpcgym.evaluation.runner import Copies
from hpcgym.evaluation.suite import load_suite, read_record, run_suite, suite_frame, verify_record
from hpcgym.evaluation.suite.definition import Suite, SuiteLog, episodes_of, jobs_digest
from hpcgym.evaluation.suite.record import METRICS, Player
from hpcgym.evaluation.suite.record_file import Record, record_of

pytestmark = pytest.mark.long

SUITE = load_suite()
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def saf() -> dict[str, Any]:
    """A record of SAF on the bundled part."""
    return run_suite("SAF", parts=["bundled"], progress=False)


@pytest.fixture(scope="module")
def trial() -> dict[str, Any]:
    """A record of an agent that kills jobs and starts them again."""
    return run_suite("SAF-TRIAL", parts=["bundled"], progress=False)


def altered(record: dict[str, Any], *keys: Any, value: Any) -> dict[str, Any]:
    """Return a copy of a record with one value changed."""
    found = copy.deepcopy(record)
    at = found
    for key in keys[:-1]:
        at = at[key]
    assert at[keys[-1]] != value
    at[keys[-1]] = value
    return found


def written(folder: Path, record: dict[str, Any]) -> Path:
    """Write a record as the command does."""
    path = folder / "record.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    return path


BUSY_WEEK = ("logs", "synthetic-busy-weeks", "weeks", "3")


@cache
def evaluated(log: str) -> Evaluation:
    """Evaluate the agent of `trial`."""
    return evaluate(["SAF-TRIAL"], log, jitter=600, replicas=10, progress=False)


def test_a_record_says_what_an_evaluation_says(trial: dict[str, Any]) -> None:
    log = "synthetic-busy-weeks"
    found = evaluated(log)
    record = record_of(trial)
    for metric in METRICS:
        values = found.values("SAF-TRIAL", metric)
        assert np.array_equal(record.values(log, metric), values), metric
    assert record.contests[log] == "requeue"


def test_every_week_of_a_true_record_is_replayed(trial: dict[str, Any], tmp_path: Path) -> None:
    record = read_record(written(tmp_path, trial))
    found = verify_record(record, seed=3, progress=False)
    assert found.holds and found.n_replayed == found.n_weeks == 38 and not found.not_here
    some = verify_record(record, weeks=5, seed=3, progress=False)
    assert some.holds and some.n_replayed == 5


def test_executors_make_the_same_record(saf: dict[str, Any]) -> None:
    again = run_suite("SAF", parts=["bundled"], executor="local:2", progress=False)
    assert json.dumps(again) == json.dumps(saf)


def test_an_altered_record_is_found(trial: dict[str, Any]) -> None:
    """So is one that says which weeks it played otherwise."""
    log = "synthetic-busy-weeks"
    week = next(week for week in trial["logs"][log]["weeks"] if week != "3")
    false = altered(trial, *BUSY_WEEK, "mean_bsld", value=[1.5] * 11)
    false = altered(false, "logs", log, "weeks", week, "starts", value="0" * 64)
    false = altered(false, "logs", log, "contest", value="guarded")
    wrong = "\n".join(verify_record(record_of(false), progress=False).wrong)
    assert wrong.count("\n") == 2
    for said in ("starts are those replayed, mean_bsld not", "other starts", "contest is requeue"):
        assert said in wrong
    weeks = false["logs"][log]["weeks"]
    weeks["99"] = weeks.pop("3")
    found = verify_record(record_of(false), weeks=1, progress=False).wrong
    assert f"{log}: weeks 3 are missing" in found
    assert f"{log}: weeks 99 are not its to play" in found


def test_a_fake_saf_is_found(trial: dict[str, Any], saf: dict[str, Any]) -> None:
    """A bad agent under the name SAF would make all others look good."""
    renamed = altered(trial, "agent", "name", value="SAF")
    with pytest.raises(EvaluationError, match="has another card"):
        verify_record(record_of(renamed), progress=False)
    other = {"name": "SAF", "given": "FCFS", "card": None, "weights": {}}
    with pytest.raises(EvaluationError, match="has another card"):
        verify_record(record_of(altered(saf, "agent", value=other)), progress=False)
    unknown = {"name": "BEST", "given": "FCFS", "card": None, "weights": {}}
    with pytest.raises(EvaluationError, match="the record calls BEST what is FCFS"):
        verify_record(record_of(altered(saf, "agent", value=unknown)), progress=False)
    runs = altered(saf, "logs", value=trial["logs"])
    assert not verify_record(record_of(runs), weeks=1, progress=False).holds


def test_another_agent_of_the_same_name_is_found(trial: dict[str, Any]) -> None:
    card = trial["agent"]["card"].replace("easy+trial", "easy+trial:limit=60")
    with pytest.raises(
        EvaluationError, match="another card, or other weights, than the SAF-TRIAL of the shelf"
    ):
        verify_record(record_of(altered(trial, "agent", "card", value=card)), progress=False)


def test_other_weights_under_the_card_of_the_shelf_are_found(saf: dict[str, Any]) -> None:
    agents = ROOT / "agents"
    weights = base64.b64encode((agents / "ppo-trials.npz").read_bytes()).decode()
    card = (agents / "ppo-order.toml").read_text("utf-8")
    agent = {"name": "PPO-ORDER", "given": "", "card": card, "weights": {"ppo-order.npz": weights}}
    with pytest.raises(EvaluationError, match="or other weights, than the PPO-ORDER of the shelf"):
        verify_record(record_of(altered(saf, "agent", value=agent)), progress=False)


def test_code_in_a_record_is_not_run(saf: dict[str, Any], tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    own = tmp_path / "own.py"
    own.write_text(f"open({str(ran)!r}, 'w').close()\n", encoding="utf-8")
    for given in (f"{own}:Agent", "os:system", "model.zip", "../card.toml"):
        agent = {"name": "OWN", "given": given, "card": None, "weights": {}}
        record = record_of(altered(saf, "agent", value=agent))
        with pytest.raises(EvaluationError, match="is code"):
            verify_record(record, progress=False)
    assert not ran.exists()


def test_weights_of_a_record_are_bounded_before_they_are_unpacked(saf: dict[str, Any]) -> None:
    card = (ROOT / "agents" / "ppo-order.toml").read_text("utf-8").replace("PPO-ORDER", "BOMB")
    bomb = base64.b64encode(b"PK\x03\x04" + b"\0" * 1_000).decode()
    agent = {"name": "BOMB", "given": "BOMB", "card": card, "weights": {"ppo-order.npz": bomb}}
    with pytest.raises(EvaluationError, match="agent cannot be made"):
        verify_record(record_of(altered(saf, "agent", value=agent)), progress=False)
    agent["weights"] = {"../x.npz": bomb}
    with pytest.raises(EvaluationError, match=r"no name of a \.npz file"):
        record_of(altered(saf, "agent", value=agent))


def test_an_agent_that_is_not_deterministic_is_named(
    saf: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(0)
    run = Player.run

    def jittered(self: Player, task: tuple[int, int]) -> list[dict[str, Any]]:
        (row,) = run(self, task)
        return [row | {"starts": f"{generator.integers(2**62):064x}"}]

    monkeypatch.setattr(Player, "run", jittered)
    found = verify_record(record_of(saf), weeks=1, progress=False)
    assert "it must be deterministic" in found.wrong[0]


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("format",), 2, "format is 2"),
        (("suite",), "suite-0", "unknown suite 'suite-0'"),
        ((*BUSY_WEEK, "mean_bsld"), [math.nan] * 11, "NaN is no number"),
        ((*BUSY_WEEK, "mean_bsld"), [1.0], "must be 11 numbers"),
        ((*BUSY_WEEK, "mean_bsld"), [True] * 11, "must be 11 numbers"),
        ((*BUSY_WEEK, "mean_bsld"), [-1.0] * 11, "below 0"),
        ((*BUSY_WEEK, "starts"), "abc", "no sha256"),
        (("logs", "synthetic-busy-weeks", "digest"), "abc", "not that of suite-2"),
        (("logs",), {}, "logs is empty"),
        (("logs",), {"tiny": {"digest": "", "contest": "", "weeks": {}}}, "unknown log of"),
        (("agent",), [], "agent must be a table"),
        (("agent", "name"), 7, "agent.name must be a text"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_with_the_key(
    saf: dict[str, Any], tmp_path: Path, keys: tuple[str, ...], value: Any, said: str
) -> None:
    path = written(tmp_path, altered(saf, *keys, value=value))
    with pytest.raises(EvaluationError) as error:
        read_record(path)
    assert str(error.value).startswith(f"{path}: ") and said in str(error.value)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "\xff", '{"format": 1}', "[1e999]"])
def test_what_is_no_record_is_refused_in_a_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(EvaluationError, match=r"record\.json: ") as error:
        read_record(path)
    assert "\n" not in str(error.value)


def test_a_large_file_is_refused_unread(
    saf: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpcgym.evaluation.suite.record_file.MOST_BYTES", 1_000)
    with pytest.raises(EvaluationError, match="bytes; allowed: 1,000"):
        read_record(written(tmp_path, saf))


def test_a_log_that_is_not_the_suites_is_refused() -> None:
    log = SuiteLog("synthetic-busy-weeks", "bundled", "0" * 64)
    with pytest.raises(EvaluationError, match="other jobs or settings than those of the suite"):
        episodes_of(log, SUITE)


def test_logs_that_are_not_here_are_named(
    saf: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HPCGYM_TRACES", str(tmp_path))
    more = copy.deepcopy(saf)
    log = SUITE.log("theta-2022-weeks")
    more["logs"][log.scenario] = {"digest": log.digest, "contest": "guarded", "weeks": {}}
    found = verify_record(record_of(more), weeks=1, progress=False)
    assert found.not_here == ("theta-2022-weeks",) and found.holds


@pytest.fixture
def older(saf: dict[str, Any]) -> dict[str, Any]:
    """A record of the first version, a log among them whose jobs are others since."""
    record = altered(saf, "suite", value="suite-1")
    log = load_suite("suite-1").log("cea-curie-weeks")
    record["logs"][log.scenario] = {"digest": log.digest, "contest": "guarded", "weeks": {}}
    return record


NOTE = "suite-1 is an earlier version of suite-2, which has other jobs of cea-curie-weeks"


def test_a_record_of_an_earlier_version_is_replayed_but_for_logs_with_other_jobs_since(
    older: dict[str, Any], tmp_path: Path
) -> None:
    found = verify_record(record_of(older), weeks=2, progress=False)
    assert found.holds and found.changed == ("cea-curie-weeks",) and not found.not_here
    said = CliRunner().invoke(app, ["suite", "verify", str(written(tmp_path, older))])
    assert said.exit_code == 0
    assert f"{NOTE}, so not replayed: cea-curie-weeks" in " ".join(said.output.split())
    del older["logs"]["synthetic-256-weeks"], older["logs"]["synthetic-busy-weeks"]
    with pytest.raises(EvaluationError, match=f"no log of the record can be replayed: {NOTE}"):
        verify_record(record_of(older), progress=False)


def test_a_table_of_an_earlier_version_says_so(older: dict[str, Any], tmp_path: Path) -> None:
    del older["logs"]["cea-curie-weeks"]
    said = CliRunner().invoke(app, ["suite", "table", str(written(tmp_path, older))])
    assert NOTE in said.output


def test_a_log_with_other_jobs_since_is_run_on_the_newest_version_only() -> None:
    suite = load_suite("suite-1")
    with pytest.raises(EvaluationError, match=f"cea-curie-weeks: {NOTE}; take suite-2, or"):
        episodes_of(suite.log("cea-curie-weeks"), suite)
    assert not SUITE.changed and not SUITE.note


def test_the_table_is_that_of_an_evaluation(saf: dict[str, Any], trial: dict[str, Any]) -> None:
    frame = suite_frame([record_of(saf), record_of(trial)])
    assert frame["agent"].tolist() == ["SAF-TRIAL", "SAF"]
    ratios = []
    for log in SUITE.of(["bundled"]):
        summaries = evaluated(log.scenario).summaries
        ratios.append(next(one for one in summaries if one.agent != "SAF").ratio.value)
    assert frame["bundled"][0].split()[0] == f"{math.sqrt(math.prod(ratios)):.3f}"
    assert [name for name in frame if name in SUITE.parts] == ["bundled"]
    logs = suite_frame([record_of(saf), record_of(trial)], by_log=True)
    shown = [logs[f"synthetic-{name}"][0].split()[0] for name in ("256", "busy")]
    assert shown == [f"{ratio:.3f}" for ratio in ratios]


def test_tables_that_cannot_be_are_refused(saf: dict[str, Any], trial: dict[str, Any]) -> None:
    one, other = record_of(saf), record_of(trial)
    with pytest.raises(EvaluationError, match="its record is missing: hpcgym suite run SAF"):
        suite_frame([other])
    with pytest.raises(EvaluationError, match="one record of the name SAF stand twice"):
        suite_frame([one, record_of(saf)])
    apart = Record(**{**vars_of(other), "weeks": {"tiny": {}}})
    with pytest.raises(EvaluationError, match="SAF-TRIAL has no log in common with SAF"):
        suite_frame([one, apart])
    renamed = Record(**{**vars_of(other), "name": "SAF"})
    with pytest.raises(EvaluationError, match="two agents of the name SAF"):
        suite_frame([one, renamed])


def vars_of(record: Record) -> dict[str, Any]:
    """Return the attributes a record was made of."""
    return {name: getattr(record, name) for name in Record.__dataclass_fields__}


def test_an_agent_plays_no_week_it_was_trained_on(tmp_path: Path) -> None:
    """Nor one next to it; what its card says is taken for true, which replay cannot see."""
    card = tmp_path / "mine.toml"
    text = (ROOT / "agents" / "saf.toml").read_text("utf-8").replace('"SAF"', '"MINE"', 1)
    training = """
        [training]
        weeks = { synthetic-busy-weeks = "1-5" }
        seed = 0
        seconds = 1.0
        commit = "0123456"
        command = "hpcgym tune"
    """
    card.write_text(text + dedent(training), encoding="utf-8")
    made = run_suite(str(card), parts=["bundled"], progress=False)
    record = record_of(made)
    assert sorted(record.weeks["synthetic-busy-weeks"]) == list(range(7, 18))
    assert verify_record(record, weeks=3, progress=False).holds
    assert len(record.weeks["synthetic-256-weeks"]) == 21


@pytest.fixture
def on_nodes(monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite of a bundled log and one of nodes, in two parts."""
    logs = [SUITE.log("synthetic-busy-weeks")]
    scenario = "hetero-64-weeks"
    logs.append(SuiteLog(scenario, "nodes", jobs_digest(Episodes(scenario))))
    suite = replace(SUITE, logs=tuple(logs), copies=Copies(600, 1, 0))
    for module in ("record", "record_file"):
        monkeypatch.setattr(f"hpcgym.evaluation.suite.{module}.load_suite", lambda name: suite)
    return suite


def test_a_log_that_an_agent_cannot_schedule_is_left_out_and_named(on_nodes: Suite) -> None:
    told: list[str] = []
    record = run_suite("SLACK", progress=False, told=told.append)
    assert list(record["logs"]) == ["synthetic-busy-weeks"]
    (line,) = told
    assert line.startswith("hetero-64-weeks is left out: backfill 'slack:c=1' counts processors")
    saf = run_suite("SAF", progress=False, told=told.append)
    assert list(saf["logs"]) == ["synthetic-busy-weeks", "hetero-64-weeks"] and len(told) == 1
    assert verify_record(record_of(saf), progress=False).holds
    frame = suite_frame([record_of(saf), record_of(record)])
    assert frame["nodes"].tolist() == ["1.000 [1.000, 1.000]", ""]
    with pytest.raises(EvaluationError, match="counts processors"):
        run_suite("SLACK", parts=["nodes"], progress=False)


@pytest.mark.parametrize("change", ["chunks", "memory_mb", "placement", "machine"])
def test_a_digest_of_nodes_holds_what_jobs_ask_of_them_and_the_nodes(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    episodes = Episodes("hetero-64-weeks").select("1-2")
    before, scenario = jobs_digest(episodes), episodes.scenario
    if change == "placement":
        episodes.settings = replace(episodes.settings, placement="tightest")
    elif change == "machine":
        nodes = scenario.machine.nodes
        first = replace(nodes.nodes[0], memory_mb=nodes.nodes[0].memory_mb + 1)
        machine = replace(nodes, nodes=(first, *nodes.nodes[1:]))
        episodes.scenario = replace(scenario, machine=replace(scenario.machine, nodes=machine))
    else:
        jobs = episodes.workload(0)
        jobs = replace(jobs, **{change: getattr(jobs, change) + 1})
        monkeypatch.setattr(Episodes, "workload", lambda self, position: jobs)
    assert jobs_digest(episodes) != before


OWN = """
import time
import numpy as np

class Mine:
    name = "MINE"
    env_keywords = {"action": "policy", "policies": ["SAF", "FCFS"], "decide": 86_400}

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        n = 0 if state is None else state
        return np.int64(CHOICE), n + 1
"""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundled log of fewest jobs, with one copy."""
    suite = replace(SUITE, logs=SUITE.logs[:1], copies=Copies(600, 1, 0))
    for module in ("record", "record_file"):
        monkeypatch.setattr(f"hpcgym.evaluation.suite.{module}.load_suite", lambda name: suite)


def test_code_is_played_and_replayed_in_a_sandbox(few: None, tmp_path: Path) -> None:
    own = tmp_path / "suite_of_mine.py"
    own.write_text(OWN.replace("CHOICE", "n % 2"), encoding="utf-8")
    given, path = f"{own}:Mine", tmp_path / "mine.json"
    words = ["suite", "run", given, "--sandbox", "-o", str(path)]
    made = CliRunner().invoke(app, words, env={"COLUMNS": "300"})
    if "this system has no sandbox" in made.stderr:
        pytest.skip(made.stderr)
    assert made.exit_code == 0, made.stderr
    record = json.loads(path.read_text("utf-8"))
    assert "suite_of_mine" not in sys.modules
    assert record["agent"] == {
        "name": "MINE",
        "given": "suite_of_mine.py:Mine",
        "card": None,
        "weights": {},
    }
    assert json.dumps(run_suite(given, progress=False)) == json.dumps(record)
    assert verify_record(record_of(record), code=given, weeks=3, progress=False).holds
    words = ["suite", "verify", str(path), "--agent", given, "--weeks", "1"]
    assert "1 of 21 weeks replayed" in CliRunner().invoke(app, words).stdout
    with pytest.raises(EvaluationError, match=r"is code .* \(--agent\), which a sandbox runs"):
        verify_record(record_of(record), progress=False)
    own.write_text(OWN.replace("CHOICE", "1"), encoding="utf-8")
    found = verify_record(record_of(record), code=given, weeks=1, progress=False)
    assert "other starts than those replayed" in found.wrong[0]
    own.write_text(OWN.replace("CHOICE", "time.time_ns() // 1_000 % 2"), encoding="utf-8")
    found = verify_record(record_of(record), code=given, weeks=1, progress=False)
    assert "it must be deterministic" in found.wrong[0]
    for name in ("SAF", "OTHER"):
        own.write_text(OWN.replace("CHOICE", "1").replace("MINE", name), encoding="utf-8")
        renamed = record_of(altered(record, "agent", "name", value=name))
        with pytest.raises(EvaluationError, match="is not of code of that name"):
            verify_record(renamed if name == "SAF" else record_of(record), code=given)


def test_unknown_parts_and_suites_name_the_nearest() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'bundled'"):
        run_suite("SAF", parts=["bundle"])
    with pytest.raises(ScenarioError, match="did you mean 'suite-"):
        load_suite("suite1")


def test_the_commands_write_replay_and_compare(tmp_path: Path) -> None:
    run = CliRunner().invoke
    paths = [tmp_path / name for name in ("saf.json", "fcfs.json")]
    for agent, path in zip(("SAF", "FCFS"), paths, strict=True):
        made = run(app, ["suite", "run", agent, "-p", "bundled", "-o", str(path)])
        assert made.exit_code == 0 and f"{agent}: 38 weeks of 2 logs" in made.stdout
    again = run(app, ["suite", "run", "SAF", "-p", "bundled", "-o", str(paths[0])])
    assert again.exit_code == 2 and "--force" in again.stderr
    good = run(app, ["suite", "verify", str(paths[1]), "--weeks", "3", "--seed", "1"])
    assert good.exit_code == 0 and "3 of 38 weeks replayed" in good.stdout
    text = paths[1].read_text("utf-8").replace('"contest": "guarded"', '"contest": "open"', 1)
    paths[1].write_text(text, encoding="utf-8")
    bad = run(app, ["suite", "verify", str(paths[1]), "--weeks", "1"])
    assert bad.exit_code == 2 and "the contest is guarded, not open" in bad.stdout
    command = ["suite", "table", *map(str, paths)]
    shown = run(app, command, env={"COLUMNS": "60"}).stdout.splitlines()
    assert max(map(len, shown)) <= 60 and shown[1].split()[:2] == ["SAF", "1.000"]
    assert "| FCFS | guarded, open |" in run(app, [*command, "--format", "markdown"]).stdout
    page = tmp_path / "table.html"
    table = run(app, ["suite", "table", *map(str, paths), "-o", str(page)])
    assert table.exit_code == 0 and "<td>FCFS</td>" in page.read_text("utf-8")
    wrong = run(app, ["suite", "table", *map(str, paths), "-o", str(tmp_path / "table.pdf")])
    assert wrong.exit_code == 2 and ".md, .csv or .html" in wrong.stderr
