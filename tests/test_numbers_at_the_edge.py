"""Numbers that nothing can hold end in a sentence, from Python and from the command."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

import hpcgym
from hpcgym.base.errors import HpcgymError
from hpcgym.cli import app
from hpcgym.core.simulator import Simulator
from hpcgym.core.workload import Workload
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.env.scheduling import SchedulingEnv
from hpcgym.env.vector import SchedulingVectorEnv
from hpcgym.evaluation import evaluate

JOBS = "1 0 -1 10 2 -1 -1 2 {request} -1 1 1 -1 -1 -1 -1 -1 -1\n"
HUGE = 99999999999999999999


def log_of(folder: Path, header: str = "; MaxProcs: 4", request: object = 20) -> Path:
    """Write a log of one job."""
    path = folder / "a.swf"
    path.write_text(f"; Version: 2.2\n{header}\n{JOBS.format(request=request)}")
    return path


def refusal(*arguments: object) -> str:
    """Run the command, and return the one line of its error."""
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.output
    return result.stderr


@pytest.mark.parametrize("key", ["MaxProcs", "MaxNodes", "MaxRuntime", "UnixStartTime"])
@pytest.mark.parametrize(
    "text", ["1,024", "1e3", "2 x 64", "4.0", "4K", "4 nodes", HUGE, "9" * 5000]
)
def test_a_header_field_that_is_no_whole_number_is_refused_with_its_line(
    tmp_path: Path, key: str, text: object
) -> None:
    header = f"; {key}: {text}" + ("" if key.startswith("MaxN") else "\n; MaxNodes: 4")
    path = log_of(tmp_path, header, 2**31 - 1)
    assert f"{path}:2: {key} is '{str(text)[:60]}" in refusal("simulate", path)


@pytest.mark.parametrize("text", ["4", "4 (512 total)", "4  (1,024 in all)", "+4", "004"])
def test_a_header_field_may_have_a_text_in_brackets(tmp_path: Path, text: str) -> None:
    assert hpcgym.load_workload(log_of(tmp_path, f"; MaxProcs: {text}")).machine_processors == 4


@pytest.mark.parametrize(
    "number", [2**53, 2**53 + 1, -(2**53) - 1, f"{2**53 + 1}.0", HUGE, "1e400"]
)
def test_a_field_beyond_float64_is_refused_with_its_line(tmp_path: Path, number: object) -> None:
    path = log_of(tmp_path, request=number)
    assert f"{path}:3: field 9 (requested_time) is {number}, beyond" in refusal("simulate", path)


@pytest.mark.parametrize("key", ["processors", "largest_request_s", "threshold_s"])
@pytest.mark.parametrize("number", [HUGE, 2**63, "1e400", "9" * 5000])
def test_a_number_in_a_scenario_names_its_key_and_file(
    tmp_path: Path, key: str, number: object
) -> None:
    known = Path(__file__).parents[1] / "scenarios" / "synthetic-256-weeks.toml"
    lines = known.read_text().splitlines()
    path = tmp_path / "mine.toml"
    path.write_text("\n".join(f"{key} = {number}" if key in line else line for line in lines))
    with pytest.raises(HpcgymError, match=r"mine\.toml"):
        Episodes(path).workload(0)


def env_of(**keywords: Any) -> SchedulingEnv:
    """Make the environment of tiny and begin an episode."""
    env = SchedulingEnv(scenario="tiny", **keywords)
    env.reset(seed=0)
    return env


def vector_of(number: Any) -> Any:
    """Make a vector of environments."""
    return gymnasium.make_vec(
        "HPCBatch-v0", number, vectorization_mode="vector_entry_point", scenario="tiny"
    )


TINY = hpcgym.load_workload("tiny")
CALLS: list[Callable[[], object]] = [
    lambda: env_of(decide=2**70),
    lambda: env_of(decide=2**63),
    lambda: env_of(n_slots=10**12),
    lambda: env_of(n_slots=2**70),
    lambda: env_of(action="policy", policies=5),
    lambda: env_of(action="policy", policies="SAF"),
    lambda: env_of().reset(options=5),  # type: ignore[arg-type]
    lambda: env_of().reset(options={"episode": True}),
    lambda: env_of().reset(options={"episode": np.array([1, 2])}),
    lambda: env_of().reset(seed=-1),
    lambda: env_of().reset(seed=1.5),  # type: ignore[arg-type]
    lambda: vector_of(10**12),
    lambda: SchedulingVectorEnv("tiny", num_envs=1, max_episode_steps=2**70),
    lambda: env_of().reset(options=np.zeros(3)),  # type: ignore[arg-type]
    lambda: env_of().reset(options=[]),  # type: ignore[arg-type]
    lambda: vector_of(2).reset(options=np.zeros(3)),
    lambda: vector_of(2).reset(options=5),
    lambda: vector_of(2).reset(options={"episode": True}),
    lambda: hpcgym.simulate(TINY, threshold=2**70),
    lambda: hpcgym.simulate(TINY, threshold=math.inf),
    lambda: hpcgym.simulate(TINY, threshold=True),
    lambda: hpcgym.simulate(TINY, [1e308] * 6),
    lambda: hpcgym.simulate(TINY, ["a"] * 6),
    lambda: hpcgym.simulate(TINY, 1j),  # type: ignore[arg-type]
    lambda: Simulator(TINY, decide=2**70),
    lambda: Simulator(TINY, decide=1.5),  # type: ignore[arg-type]
    lambda: hpcgym.load_workload("tiny", max_request=2**70),
    lambda: hpcgym.load_workload("tiny", machine_processors=1.5),  # type: ignore[arg-type]
    lambda: hpcgym.load_workload("tiny", seed="a"),  # type: ignore[arg-type]
    lambda: evaluate(["FCFS"], "tiny", executor=f"local:{2**70}"),
    lambda: evaluate(["FCFS"], "tiny", seed=1.5),  # type: ignore[arg-type]
    lambda: evaluate(["FCFS"], "tiny", weeks=5),  # type: ignore[arg-type]
]


ONE = {"submit_time": [0], "run_time": [1], "requested_time": [1], "processors": [1]}
WRONG_TYPES: list[tuple[Callable[..., object], dict[str, list[Any]]]] = [
    (
        lambda **given: hpcgym.load_workload("tiny", **given),
        {"machine": [5, "a", {}], "missing_request": [5, [], np.zeros(2)], "on_bad_line": [5, []]},
    ),
    (hpcgym.load_workload, {"name_or_path": [5, None, b"x", [], {"a": 1}]}),
    (
        lambda **given: hpcgym.simulate(TINY, **given),
        {
            "policy": [5, b"x", [None], {}],
            "backfill": [5, [], b"x"],
            "correction": [5, [], {}],
            "placement": [5, [], {}],
            "event_semantics": [5, [], {}],
        },
    ),
    (
        lambda **given: hpcgym.simulate_many(
            **({"workloads": [TINY], "policies": ["FCFS"]} | given)
        ),
        {"workloads": [5, "a", [5]], "policies": [5, "FCFS", b"x"], "metrics": [5, [5], [[]]]},
    ),
    (
        env_of,
        {
            "action": [5, []],
            "decide": [[], b"event"],
            "expectations": [5, []],
            "invalid": [5, [], None],
            "observation": [5, []],
            "reward": [5, [], None],
            "weeks": [5, [], {}],
        },
    ),
    (
        lambda **given: evaluate(**({"agents": ["FCFS"], "scenario": "tiny"} | given)),
        {"agents": [5, b"x", [5], {}], "resume": [5, b"x"], "weeks": [[], {}]},
    ),
    (
        lambda **given: Workload.from_arrays(**(ONE | {"machine_processors": 1} | given)),
        {
            "machine_processors": ["a", [], None, math.nan, 1j],
            "machine": [5, "a"],
            "time_offset": [None, "a", [], math.nan, 1.5],
        },
    ),
]


@pytest.mark.parametrize(
    ("call", "given"),
    [
        pytest.param(call, {key: value}, id=f"{key}={value!r}"[:50])
        for call, keywords in WRONG_TYPES
        for key, values in keywords.items()
        for value in values
    ],
)
def test_a_keyword_of_a_wrong_type_is_refused(
    call: Callable[..., object], given: dict[str, Any]
) -> None:
    with pytest.raises(HpcgymError) as raised:
        call(**given)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_with_a_number_that_nothing_can_hold_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(HpcgymError, match=r"must be|unknown episode|whole"):
        call()
