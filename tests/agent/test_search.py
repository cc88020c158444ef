"""Trainers that search the numbers of an order, and the cards of their agents."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from hpcgym import evaluate, simulate
from hpcgym.agent import NamedAgent, RuleAgent, card_writer
from hpcgym.agent.card_writer import put_on_shelf, write_agent
from hpcgym.agent.objective import Objective
from hpcgym.agent.search import SMITH, W_TRAIN, SearchTrainer
from hpcgym.agent.shelf import load_agent, load_card
from hpcgym.agent.trainers import load_trainer
from hpcgym.agent.training_weeks import Training, digests_of_logs
from hpcgym.agent.weights import ConstantAction, divisors_of, weights_agent
from hpcgym.base.errors import CardError, HpcgymError, OutputError
from hpcgym.cli import app
from hpcgym.core.constants import N_LAST
from hpcgym.core.index_policy import index_policy
from hpcgym.core.policy import as_policy, mixed_policy
from hpcgym.env.scenario.episodes import Episodes
from stores import forget_first


@pytest.fixture(scope="module")
def weeks():
    """Two weeks of the bundled log."""
    return Episodes("synthetic-256-weeks").select("1-2")


@pytest.fixture
def training():
    """How an agent might have been trained."""
    return Training({"synthetic-256-weeks": (1, 2)}, 7, 1.5, "abc1234", "python train.py")


@pytest.fixture(scope="module")
def smith(weeks):
    """Smith's rule with a network that was fitted on these weeks."""
    return load_trainer("network").train([weeks], 0)


def test_objective_is_the_mean_log_ratio_to_saf(weeks):
    objective = Objective([weeks])
    found = objective([as_policy("SAF"), as_policy("FCFS")])
    logs = [
        np.log(
            simulate(
                weeks.workload(week), policy="FCFS", threshold=weeks.settings.threshold
            ).metrics()["mean_bsld"]
        )
        - np.log(
            simulate(
                weeks.workload(week), policy="SAF", threshold=weeks.settings.threshold
            ).metrics()["mean_bsld"]
        )
        for week in range(2)
    ]
    assert found[0] == 0.0
    assert found[1] == pytest.approx(np.mean(logs), rel=1e-9)


def test_copies_are_shaken_by_the_generator_alone(weeks):
    policies = [as_policy("FCFS")]
    one, same, other = (
        Objective([weeks], copies=1, generator=np.random.default_rng(seed))(policies)[0]
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_every_log_weighs_alike(weeks):
    first, second = weeks.select("1"), weeks.select("2")
    policies = [as_policy("FCFS")]
    apart = [Objective([one])(policies)[0] for one in (first, second)]
    assert Objective([first, second])(policies)[0] == pytest.approx(np.mean(apart))


def test_weights_are_worth_what_their_policies_are_on_each_log(weeks):
    """Scales differ: on each log, weights are divided by its own."""
    logs, vectors = [weeks, Episodes("tiny")], np.random.default_rng(3).normal(size=(3, 6))
    found = Objective(logs).of_weights(vectors)
    apart = [
        Objective([log])([mixed_policy(vector, divisors=divisors_of(log)) for vector in vectors])
        for log in logs
    ]
    assert found.tolist() == pytest.approx(np.mean(apart, axis=0).tolist())
    assert len(set(found.tolist())) == 3


@pytest.mark.long
def test_without_a_search_smiths_rule_stands(smith):
    assert smith.name == "SMITH-NET"
    assert smith.policy.parameters.tolist() == [*SMITH[:2], 0, 0, *SMITH[2:], 0, 0, 0]
    assert smith.policy.network is not None


@pytest.mark.parametrize("seed", [-1, 2**32])
@pytest.mark.parametrize("name", ["weights", "tuned-weights", "network"])
def test_trainers_refuse_seeds_that_generators_do_not_take(weeks, name, seed):
    with pytest.raises(HpcgymError, match=f"whole number from 0 to 4294967295, got {seed}"):
        load_trainer(name).train([weeks], seed)


def test_trainers_refuse_numbers_of_nothing():
    with pytest.raises(HpcgymError, match="evaluations must be at least 1, got 0"):
        replace(W_TRAIN, evaluations=0)
    with pytest.raises(HpcgymError, match="evaluations must be at least 0, got -1"):
        SearchTrainer("MINE", "features", evaluations=-1)
    with pytest.raises(HpcgymError, match="copies must be at least 0, got -1"):
        SearchTrainer("MINE", copies=-1)


@pytest.mark.parametrize("strategy", ["cma", "xnes"])
def test_search_moves_weights_and_keeps_the_first(weeks, strategy):
    trainer = SearchTrainer("MINE", strategy=strategy, evaluations=20, copies=0)
    agent, again = trainer.train([weeks], 1), trainer.train([weeks], 1)
    assert agent.policy.parameters[0] == 1.0
    assert agent.policy.parameters[1:4].tolist() != list(SMITH[1:])
    assert np.array_equal(agent.policy.parameters, again.policy.parameters)
    assert agent.policy.network is None


@pytest.mark.parametrize("strategy", ["cma", "xnes"])
def test_search_of_feature_weights_begins_at_saf_and_beats_it(weeks, strategy):
    still = SearchTrainer("MINE", "features", evaluations=0).train([weeks], 0)
    workload = weeks.workload(0)
    assert np.array_equal(
        simulate(workload, still.policy).start_time, simulate(workload, "SAF").start_time
    )
    trainer = SearchTrainer("MINE", "features", strategy=strategy, evaluations=60, copies=0)
    agent, again = trainer.train([weeks], 1), trainer.train([weeks], 1)
    assert np.array_equal(agent.policy.parameters, again.policy.parameters)
    assert Objective([weeks])([agent.policy])[0] < 0


def test_feature_weights_of_several_logs_are_written_and_played_in_unit_scale(
    weeks, training, tmp_path
):
    """What is read again orders each log as a rule in that log's scale does."""
    agent = SearchTrainer("MINE", "features", evaluations=20, copies=0).train(
        [weeks, Episodes("tiny")], 0
    )
    assert isinstance(agent, NamedAgent)
    read = load_agent(str(write_agent(agent, "MINE", tmp_path, training)))
    assert (read.agent, read.env_keywords) == (agent.agent, {"action": "weights"})
    open_weeks = Episodes("synthetic-256-weeks").select("4-5")
    for log in (open_weeks, Episodes("tiny")):
        rule = weights_agent(np.array(read.agent.action), [log], name="rule")
        assert isinstance(rule, RuleAgent)
        found = evaluate([read, rule], log, progress=False)
        assert np.array_equal(found.values("MINE"), found.values("rule"))


@pytest.mark.parametrize(
    ("trainer", "evaluations", "is_start"),
    [
        ("weights", 12, True),  # the twelve pure policies, and no more
        ("weights", 60, False),
        ("tuned-history", 0, True),
        ("tuned-history", 13, False),
        ("tuned-controls", 0, True),
        ("network", 0, False),  # its network was fitted
    ],
)
def test_a_search_that_ends_where_it_began_says_so_and_so_does_its_card(
    trainer, evaluations, is_start, tmp_path
):
    options = ["--scenario", "synthetic-256-weeks", "--weeks", "1-2", "--output", tmp_path]
    printed = tune(*options, "--trainer", trainer, "--evaluations", evaluations)
    said = "TUNED ended where it began: no other vector that was tried was better"
    assert (said in printed) == is_start
    card = load_card(str(tmp_path / "tuned.toml"))
    assert card.training.ended_at_start == is_start
    assert card.description.endswith("better than this, its start.") == is_start


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[\n    0.5,", "[", "weights must be 6"),
        ("    0.5,", "    2.5,", r"in \[-1, 1\], got 2.5"),
        ("    0.5,", "    1,", "must be a number, got 1"),
        ('action = "weights"', 'action = "policy"', "weights"),
    ],
)
def test_malformed_cards_of_weights_are_refused(training, tmp_path, old, new, said):
    action = ConstantAction((0.5, 0.0, 0.0, 0.0, 0.0, -0.5))
    agent = NamedAgent("MINE", action, {"action": "weights"})
    card = write_agent(agent, "MINE", tmp_path, training)
    text = card.read_text()
    assert old in text
    card.write_text(text.replace(old, new))
    with pytest.raises(CardError, match=said):
        load_card(str(card))


@pytest.mark.long
def test_searched_score_adds_to_smiths_rule_by_what_the_last_layer_has_found(weeks, smith):
    trainer = SearchTrainer("MINE", network=True, searched="score", evaluations=16, copies=0)
    found = trainer.train([weeks], 0).policy
    assert found.parameters.tolist() == smith.policy.parameters.tolist()
    moved = np.flatnonzero(found.network != smith.policy.network)
    first = len(found.network) - 2 * (N_LAST + 1)
    assert moved.tolist() == list(range(first, first + N_LAST))
    together = Objective([weeks])([found, smith.policy, as_policy("SAF")])
    apart = [Objective([weeks])([one])[0] for one in (found, smith.policy)]
    assert together.tolist() == [*apart, 0.0]
    assert apart[0] != apart[1]


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"strategy": "xness"}, "xnes"),
        ({"searched": "scores"}, "score"),
        ({"searched": "score"}, "network=True"),
        ({"objective": "log-rato"}, "did you mean 'log-ratio'"),
        ({"gives": "best"}, "gives='best' is for searched='features', not 'index'"),
    ],
)
def test_search_that_cannot_be_is_refused(keywords, said):
    with pytest.raises(HpcgymError, match=said):
        SearchTrainer("MINE", **keywords)


def test_index_is_written_as_a_card_and_read_again(weeks, smith, training, tmp_path):
    card = write_agent(smith, "MINE", tmp_path, training)
    read = load_agent(str(card))
    assert read.name == "MINE"
    assert read.training == training
    workload = weeks.workload(0)
    assert np.array_equal(
        simulate(workload, read.policy).start_time, simulate(workload, smith.policy).start_time
    )
    with pytest.raises(OutputError):
        write_agent(smith, "MINE", tmp_path, training)


def test_index_without_a_network_needs_no_file(training, tmp_path):
    policy = index_policy([1, 1.5, 0.25, -0.125, 0, 0])
    agent = load_agent("SAF")
    card = write_agent(type(agent)(policy), "MINE", tmp_path, training)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]
    assert load_card(str(card)).agent.policy.parameters.tolist() == policy.parameters.tolist()


def test_weights_of_features_are_written_to_the_last_digit(weeks, training, tmp_path):
    agent = replace(W_TRAIN, evaluations=30).train([weeks], 0)
    card = write_agent(agent, "MINE", tmp_path, training)
    read, workload = load_agent(str(card)), weeks.workload(0)
    assert np.allclose(
        read.policy.parameters,
        agent.policy.parameters / abs(agent.policy.parameters).sum(),
        rtol=1e-12,
    )
    assert np.array_equal(
        simulate(workload, read.policy).start_time, simulate(workload, agent.policy).start_time
    )


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_weight_on_the_wait_alone_is_written_as_the_rule_it_is(weeks, training, tmp_path, sign):
    agent = weights_agent(np.array([0, 0, sign, 0, 0, 0]), [weeks], name="whatever")
    read = load_agent(str(write_agent(agent, "MINE", tmp_path, training)))
    assert read.policy is as_policy("FCFS" if sign < 0 else "LCFS")


def test_agent_that_is_no_weights_is_refused_before_a_file_is_written(training, tmp_path):
    with pytest.raises(CardError, match="MINE orders by no tuned weights"):
        write_agent(NamedAgent("MINE", load_agent("SAF")), "MINE", tmp_path, training)
    assert list(tmp_path.iterdir()) == []


def test_card_goes_to_the_shelf_with_the_weights_it_names(smith, training, tmp_path, monkeypatch):
    """A network of that name, left by an earlier training, stays where it is."""
    made, shelf = tmp_path / "made", tmp_path / "agents"
    made.mkdir()
    shelf.mkdir()
    monkeypatch.setattr(card_writer, "shelf_folders", lambda name: [tmp_path / name])
    for agent, files in ((load_agent("SPF"), ["mine.toml"]), (smith, ["mine.npz", "mine.toml"])):
        (made / "mine.npz").write_bytes(b"left")
        card = put_on_shelf(write_agent(agent, "MINE", made, training, force=True), force=True)
        assert sorted(path.name for path in shelf.iterdir()) == files
        assert load_card(str(card)).training == training
    with pytest.raises(OutputError):
        put_on_shelf(made / "mine.toml")


def test_name_of_a_trainer_is_for_no_card_of_the_shelf(training, tmp_path, monkeypatch):
    monkeypatch.setattr(card_writer, "shelf_folders", lambda name: [tmp_path / "agents"])
    card = write_agent(load_agent("SPF"), "NETWORK", tmp_path, training)
    with pytest.raises(CardError, match=r"`hpcgym cross-validate NETWORK` would train new agents"):
        put_on_shelf(card)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("weights = [", "weight = [", "weight"),
        ('action = "policy"', 'action = "order"', "policy"),
        ('network = "mine.npz"', 'network = "other.npz"', "mine.npz"),
        ("weights = [", "weights = [0, 0, 0, 0, ", "an index needs 1 to 9"),
    ],
)
def test_malformed_cards_of_an_index_are_refused(smith, training, tmp_path, old, new, said):
    card = write_agent(smith, "MINE", tmp_path, training)
    text = card.read_text()
    assert old in text
    card.write_text(text.replace(old, new))
    with pytest.raises(CardError, match=said):
        load_card(str(card))


def tune(*options, check=True):
    """Run `hpcgym tune`; return what it printed, or what it refused."""
    done = CliRunner().invoke(app, ["tune", *map(str, options)])
    assert done.exit_code == (0 if check else 2), done.output
    return done.stdout if check else done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--trainer", "PPO"], "`hpcgym train`"),
        (["--trainer", "weights", "--strategy", "cma"], "weights has no --strategy"),
        (["--trainer", "tuned-wieghts"], "did you mean 'tuned-weights'"),
        (["--trainer", "tuned-weights", "--strategy", "cmaes"], "did you mean 'cma'"),
        (["--scenario", "tiny"], "tiny and tiny cut one log"),
        (["--seed", -1], "a seed must be a whole number from 0 to 4294967295, got -1"),
        (["--evaluations", -4], "evaluations must be at least 0, got -4"),
        (["--name", "SAF", "--shelf"], "saf.toml: exists already"),
        (["--name", "Network", "--shelf"], "Network is a trainer"),
        (["--name", "../mine"], "'../mine' cannot be its name"),
        (["--name", ""], "'' cannot be its name"),
        (["--name", "n" * 240], "nnn' cannot be its name"),
    ],
)
def test_tuning_refuses_before_it_works(options, said, tmp_path):
    """Nothing is trained: a search would take longer than any test may."""
    folder = tmp_path / "new" / "runs"
    given = ["--scenario", "tiny", "--output", folder, "--evaluations", 10**9, *options]
    assert said in tune(*given, check=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("trainer", ["weights", "tuned-weights"])
def test_tuning_writes_weights_of_logs_of_several_scales(trainer, tmp_path):
    logs = ["--scenario", "tiny", "--scenario", "synthetic-256-weeks", "--weeks", 1, "--weeks", 1]
    printed = tune(*logs, "--trainer", trainer, "--evaluations", 13, "--output", tmp_path)
    assert "tuned.toml" in printed
    agent = load_agent(str(tmp_path / "tuned.toml"))
    assert agent.training.weeks == {"tiny": (1,), "synthetic-256-weeks": (1,)}
    assert agent.training.logs == digests_of_logs(["tiny", "synthetic-256-weeks"])
    assert agent.env_keywords == {"action": "weights"}


@pytest.mark.long
def test_tuning_leaves_the_last_block_out(tmp_path):
    """The agent that is written may be evaluated on the last block, and nowhere else."""
    options = ["--trainer", "tuned-history", "--scenario", "synthetic-256-weeks"]
    options += ["--evaluations", 8, "--name", "BRIEF", "--output", tmp_path]
    tune(*options)
    agent = load_agent(str(tmp_path / "brief.toml"))
    assert agent.training.command.endswith("--strategy cma")
    trained = agent.training.weeks["synthetic-256-weeks"]
    every = Episodes("synthetic-256-weeks").numbers
    n_block = len(every) // 5
    assert max(trained) < every[-n_block] - 1
    assert "brief.toml" in tune(*options, check=False)


# --- Constant controls ----------------------------------------------------------------------------


def test_constant_controls_are_searched_and_written(weeks, training, tmp_path):
    trainer = replace(load_trainer("tuned-open"), evaluations=6)
    agent = trainer.train([weeks], 0)
    assert agent.env_keywords == {"action": "controls", "backfill": trainer.backfill}
    assert len(agent.agent.action) == 4 and any(agent.agent.action)
    again = load_card(str(write_agent(agent, "MINE", tmp_path, training))).agent
    assert again.agent == agent.agent and again.env_keywords == agent.env_keywords
    tiny = Episodes("tiny")
    ran = evaluate([again, "SAF"], tiny, progress=False).frame
    assert set(ran["agent"]) == {"MINE", "SAF"}


def test_a_search_of_no_controls_gives_the_agent_on_the_shelf(weeks):
    agent = replace(load_trainer("tuned-controls"), evaluations=0).train([weeks], 0)
    assert agent.agent == ConstantAction((0.0,) * 4)
    rule = load_agent("URGENT-BENEFIT")
    objective = Objective([weeks], "sum-ratio")
    plain = simulate(weeks.workload(0), **vars(rule.settings(weeks.settings)))
    saf = simulate(weeks.workload(0), "SAF", threshold=weeks.settings.threshold)
    one = Objective([weeks.select("1")], "sum-ratio").of_rules([rule])
    assert one[0] == pytest.approx(plain.metrics()["mean_bsld"] / saf.metrics()["mean_bsld"])
    assert objective.of_rules([rule, rule]).shape == (2,)


def test_controls_need_a_mode_with_numbers(tmp_path):
    with pytest.raises(HpcgymError, match="controls change a cap or a cost, not backfill 'easy'"):
        SearchTrainer("MINE", "controls", backfill="easy")


# --- A search that is cut off ---------------------------------------------------------------------

BRIEF = ("--trainer", "tuned-history", "--scenario", "tiny", "--weeks", 1, "--evaluations", 40)
KEPT = "tuned.unfinished.sqlite"


def stop_after(patch, generations):
    """Press Ctrl-C in an objective; return the list of those that were computed before."""
    computed = []
    objective = Objective.__call__

    def counted(self, policies):
        if len(computed) == generations:
            raise KeyboardInterrupt
        computed.append(len(policies))
        return objective(self, policies)

    patch.setattr(Objective, "__call__", counted)
    return computed


def card_but_seconds(folder):
    lines = (folder / "tuned.toml").read_text().replace(str(folder), "FOLDER").splitlines()
    return [line for line in lines if not line.startswith("seconds")]


def interrupted_search(folder, *options):
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 2)
        done = CliRunner().invoke(app, ["tune", *map(str, BRIEF), "-o", str(folder), *options])
    assert done.exit_code == 130
    return done.stderr


@pytest.mark.long
def test_a_search_goes_on_where_it_was_cut_off(tmp_path, monkeypatch):
    whole, cut_off = tmp_path / "whole", tmp_path / "cut_off"
    tune(*BRIEF, "-o", whole)
    assert f"finished generations are kept in {cut_off / KEPT}" in interrupted_search(cut_off)
    assert [one.name for one in cut_off.iterdir()] == [KEPT]
    said = tune(*BRIEF, "-o", cut_off, check=False)
    assert all(word in said for word in (KEPT, "--resume", "--force"))
    computed = stop_after(monkeypatch, 100)
    tune(*BRIEF, "-o", cut_off, "--resume")
    n_generations = len(computed) + 2
    assert card_but_seconds(cut_off) == card_but_seconds(whole)
    assert [one.name for one in cut_off.iterdir()] == ["tuned.toml"]
    assert "nothing to resume" in tune(*BRIEF, "-o", cut_off, "--resume", check=False)
    computed.clear()
    tune(*BRIEF, "-o", cut_off, "--force")
    assert len(computed) == n_generations > 3


@pytest.mark.long
@pytest.mark.parametrize("other", [("--seed", 1), ("--evaluations", 50)])
def test_another_search_is_not_gone_on_with(tmp_path, other):
    interrupted_search(tmp_path)
    before = (tmp_path / KEPT).read_bytes()
    assert "keeps another search" in tune(*BRIEF, *other, "-o", tmp_path, "--resume", check=False)
    assert (tmp_path / KEPT).read_bytes() == before
    tune(*BRIEF, *other, "-o", tmp_path, "--force")
    assert [one.name for one in tmp_path.iterdir()] == ["tuned.toml"]


@pytest.mark.long
def test_a_search_that_was_not_begun_begins(tmp_path):
    tune(*BRIEF, "-o", tmp_path, "--resume")
    tune(*BRIEF, "-o", tmp_path / "whole")
    assert card_but_seconds(tmp_path) == card_but_seconds(tmp_path / "whole")


@pytest.mark.long
def test_a_search_goes_on_among_the_files_that_it_had_written(tmp_path):
    """As when it is killed between its card and the end."""
    whole = tmp_path / "whole"
    interrupted_search(tmp_path)
    kept = (tmp_path / KEPT).read_bytes()
    tune(*BRIEF, "-o", tmp_path, "--resume")
    (tmp_path / KEPT).write_bytes(kept)
    tune(*BRIEF, "-o", tmp_path, "--resume")
    tune(*BRIEF, "-o", whole)
    assert card_but_seconds(tmp_path) == card_but_seconds(whole)


@pytest.mark.long
def test_a_generation_of_a_search_that_is_gone_is_computed_again(tmp_path, monkeypatch):
    whole = tmp_path / "whole"
    interrupted_search(tmp_path)
    forget_first(tmp_path / KEPT)
    computed = stop_after(monkeypatch, 100)
    tune(*BRIEF, "-o", tmp_path, "--resume")
    n_computed = len(computed)
    tune(*BRIEF, "-o", whole)
    assert len(computed) == 2 * n_computed + 1
    assert card_but_seconds(tmp_path) == card_but_seconds(whole)


OWN = """
from hpcgym.agent.search import SearchTrainer
class Own(SearchTrainer):
    def __init__(self): super().__init__("OWN", evaluations=8)
    def train(self, episodes, seed): return super().train(episodes, seed)
class Searching(SearchTrainer):
    def __init__(self): super().__init__("SEARCHING", evaluations=8)
    def search(self, episodes, generator, network=None):
        return super().search(episodes, generator, network)
"""


@pytest.mark.parametrize("name", ["Own", "Searching"])
def test_a_class_of_one_s_own_that_searches_keeps_nothing(name, tmp_path):
    file = tmp_path / f"{name.casefold()}_one.py"  # a module is imported once
    file.write_text(OWN)
    folder = tmp_path / "out"
    tune("--trainer", f"{file}:{name}", *BRIEF[2:-2], "-o", folder)
    assert [one.name for one in folder.iterdir()] == ["tuned.toml"]
