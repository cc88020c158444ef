"""Through the environment, each rule agent makes the schedule of simulate(), to the second."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import hpcgym
from hpcgym.agent import RuleAgent, agent_names, load_agent
from hpcgym.base.errors import CardError, ScenarioError
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.evaluation import play
from hpcgym.schedule.schedule import Schedule
from hpcgym.schedule.simulate import simulate

PREDICTING = "EASY-PLUS-PLUS"
IN_TIME = "GANG"
SHELF = [load_agent(name) for name in agent_names()]
RULES = {agent.name: agent for agent in SHELF if isinstance(agent, RuleAgent)}
IN_PYTHON = [name for name, agent in RULES.items() if agent.policy.is_python]
AGENTS = [name for name in RULES if name not in (PREDICTING, IN_TIME, *IN_PYTHON)]


def make(agent: RuleAgent, scenario: str) -> SchedulingEnv:
    """Make the environment by its registered name, with the keywords of the agent's card."""
    env = gymnasium.make("HPCBatch-v0", scenario=scenario, **agent.env_keywords).unwrapped
    assert isinstance(env, SchedulingEnv)
    return env


def rule(name: str) -> RuleAgent:
    """Load a rule from its card."""
    agent = load_agent(name)
    assert isinstance(agent, RuleAgent)
    return agent


def simulated(agent: RuleAgent, workload: Workload, episodes: Episodes) -> Schedule:
    """Simulate a workload with the scenario's settings and what the rule states."""
    return simulate(workload, **vars(agent.settings(episodes.settings)))


def assert_same(played: Schedule, expected: Schedule) -> None:
    """Compare start times, and how each job was started."""
    assert played.complete
    assert np.array_equal(played.start_time, expected.start_time)
    assert np.array_equal(played.run_time, expected.run_time)
    assert np.array_equal(played.backfilled, expected.backfilled)
    assert np.array_equal(played.thresholded, expected.thresholded)


@pytest.mark.long
@pytest.mark.parametrize("name", AGENTS)
def test_schedule_of_a_week_is_that_of_simulate_to_the_second(name: str) -> None:
    """Of every agent on the shelf that plans with the scenario's estimates; each has its week."""
    agent, episodes = rule(name), Episodes("synthetic-256-weeks")
    env = make(agent, "synthetic-256-weeks")
    workload = episodes.workload(4 * AGENTS.index(name) % len(episodes))
    assert_same(play(agent, env, workload), simulated(agent, workload, episodes))


@pytest.mark.parametrize("name", AGENTS)
def test_schedule_on_a_week_of_a_real_log_is_that_of_simulate(
    name: str, real_log: Callable[[str], Path]
) -> None:
    real_log("KTH-SP2-1996-2.1-cln")
    agent, episodes = rule(name), Episodes("kth-sp2-weeks").select("3,18")
    workload = episodes.workload(AGENTS.index(name) % 2)
    played = play(agent, make(agent, "kth-sp2-weeks"), workload)
    assert_same(played, simulated(agent, workload, episodes))


def test_rule_with_estimates_of_its_own_names_what_runs_it() -> None:
    with pytest.raises(CardError, match=r"hpcgym\.evaluate runs it"):
        _ = rule(PREDICTING).env_keywords
    episodes = Episodes("tiny")
    assert simulated(rule(PREDICTING), episodes.workload(0), episodes).complete


def test_rule_of_any_place_among_many_makes_its_own_schedule() -> None:
    """One environment that offers every policy serves every rule."""
    episodes = Episodes("synthetic-256-weeks")
    names = [name for name in hpcgym.policy_names() if not hpcgym.as_policy(name).is_python]
    env = make(RuleAgent("FCFS", policies=names), "synthetic-256-weeks")
    workload = episodes.workload(1)
    for name in ("FCFS", "WFP3", "SMITH"):
        chosen = RuleAgent(name, policies=names)
        assert_same(play(chosen, env, workload), simulated(chosen, workload, episodes))


@pytest.fixture
def strict() -> Iterator[None]:
    """Make every warning an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("name", ["SAF", "EASY-SJBF", "SMITH-NET"])
@pytest.mark.parametrize("n_envs", [1, 3])
def test_evaluate_policy_of_stable_baselines_runs_a_rule_as_it_is(name: str, n_envs: int) -> None:
    """The return of an episode is minus its mean bounded slowdown, which tells the schedule."""
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    agent = rule(name)
    keywords = {"scenario": "tiny", "reward": "bsld", **agent.env_keywords}
    envs = make_vec_env("HPCBatch-v0", n_envs=n_envs, env_kwargs=keywords)
    returns, lengths = evaluate_policy(
        agent, envs, n_eval_episodes=2 * n_envs, return_episode_rewards=True
    )
    episodes = Episodes("tiny")
    bsld = simulated(agent, episodes.workload(0), episodes).bsld().mean()
    assert returns == pytest.approx([-bsld] * 2 * n_envs, rel=1e-6)
    assert min(lengths) > 0


@pytest.mark.parametrize("name", IN_PYTHON)
def test_a_rule_that_chooses_in_python_is_refused_by_the_environment(name: str) -> None:
    with pytest.raises(ScenarioError, match=f"{name}.*orders in Python"):
        make(rule(name), "tiny")


def test_a_rule_that_shares_in_time_is_refused_by_the_environment() -> None:
    with pytest.raises(ScenarioError, match="take turns"):
        make(rule(IN_TIME), "tiny")
