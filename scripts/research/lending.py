"""Learning which job goes on trial: a linear rule, searched by evolution on weeks of three logs.

`hpcgym train` has no preset for action `lend`. The rule begins as that of URGENT-YOUNG's trials,
the smallest area first, under that agent's order and mode.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.evolution import XNES
from hpcgym.core.observation_fields import MAY_BE_LENT, JobField
from hpcgym.env.observation import fields_of
from hpcgym.errors import EvaluationError
from hpcgym.evaluation.statistics import Estimate, mean_over_logs, ratio_of_sums
from hpcgym.output import writing
from hpcgym.progress import steps
from hpcgym.scenario.load import load_scenario
from hpcgym.scenario.spec import Scenario
from research.curves import Judge, Judged

Floats = NDArray[Any]

LOGS = ("kth-sp2-weeks", "ctc-sp2-weeks", "sdsc-sp2-weeks")

RULE = "URGENT-YOUNG"
MODE = "cost-benefit:cap=0.97,widest=0.2+trial:young=1800,victim=0.25"
"""That agent's mode; its order is SMITH-URGENT."""

N_SLOTS = 32

LENT: dict[str, Any] = {
    "action": "lend",
    "n_slots": N_SLOTS,
    "backfill": MODE,
    "expectations": "regression",
    "observation": "dict",
}
RULED: dict[str, Any] = {
    "action": "policy",
    "policies": ["SMITH-URGENT"],
    "backfill": MODE,
    "decide": "event",
}

NAMES = [str(getattr(field, "name", field)) for field in fields_of(trials=True)[0]]
READ = [
    NAMES.index(name)
    for name in (
        *("LOG_ESTIMATE", "PROCESSORS", "LOG_WAIT_TIME", "USER_LOG_LAST_RUN_TIME"),
        *("LOG_EXPECTED_RUN_TIME_RATIO", "LOG_EXPECTED_SPEED", "IS_ON_TRIAL", "TRIED", "GAVE_WAY"),
        *("LOG_RAN", "CHANCE_TO_END"),
    )
]
"""Fields of a job that the rule reads."""

SIZE = 2 * len(READ)
"""Numbers of a rule: by what jobs are ordered, and by what none goes."""

CANDIDATES, STEP_SIZE = 16, 0.2


def lend_by(numbers: Floats, shown: Mapping[str, Floats]) -> Floats:
    """Return the slot that goes on trial in each environment, or N_SLOTS to stop.

    Zeros are the rule: of the jobs that may go, the one of the smallest estimated area.
    """
    jobs = shown["jobs"]
    order, stop = numbers.reshape(2, -1)
    score = jobs[..., JobField.LOG_AREA] + jobs[..., READ] @ order
    best = np.where(jobs[..., MAY_BE_LENT] == 1, score, np.inf).argmin(axis=1)
    row = np.arange(len(jobs))
    goes = (jobs[row, best, MAY_BE_LENT] == 1) & (jobs[row, best][:, READ] @ stop < 1)
    return np.asarray(np.where(goes, best, N_SLOTS))


def at_random(shown: Mapping[str, Floats]) -> Floats:
    """Return any slot whose job may go, by chance, or N_SLOTS to stop, each as likely."""
    may_go = np.pad(shown["jobs"][..., MAY_BE_LENT] == 1, ((0, 0), (0, 1)), constant_values=True)
    chance = seeded(shown).random(may_go.shape)
    return np.asarray(np.where(may_go, chance, -1.0).argmax(axis=1))


def seeded(shown: Mapping[str, Floats]) -> np.random.Generator:
    """Return chance that what is shown decides, so that a schedule can be made again."""
    return np.random.default_rng(np.ascontiguousarray(shown["cluster"]).view(np.uint32).ravel())


def scenario_of(log: str) -> Scenario:
    """Return a log's scenario under the order of URGENT-YOUNG; SAF stays what is compared with."""
    scenario = load_scenario(log)
    return replace(scenario, scheduler=replace(scenario.scheduler, policy="SMITH-URGENT"))


class Judges:
    """Plays the same weeks of three logs by rules of lending, and by URGENT-YOUNG.

    Args:
        copies: Jittered copies of each week, besides the week itself.
    """

    def __init__(self, part: str, copies: int) -> None:
        self.lending = [Judge(scenario_of(log), part, copies, **LENT) for log in LOGS]  # type: ignore[arg-type]
        ruled = [Judge(log, part, copies, **RULED) for log in LOGS]
        self.rule = [judge(lambda shown: np.zeros(len(shown), np.int64)) for judge in ruled]

    def __call__(self, choose: Any) -> list[Judged]:
        """Return what a way to choose reaches on each log."""
        return [judge(choose) for judge in self.lending]

    def to_rule(self, found: list[Judged]) -> Estimate:
        """Return the geometric mean over logs of the ratio of sums to URGENT-YOUNG's."""
        pairs = zip(found, self.rule, strict=True)
        return mean_over_logs([ratio_of_sums(mine.bsld, rule.bsld) for mine, rule in pairs])


def search(seed: int, minutes: float, folder: Path) -> tuple[Floats, int, float]:
    """Search a rule for some minutes of CPU time on the training weeks, chosen by validation.

    Each generation is kept in the folder: the same seed goes on from there, also for more minutes.

    Returns:
        Its numbers, how many rules were tried, and its ratio to URGENT-YOUNG on validation weeks.
    """
    train, validation = Judges("train", 0), Judges("validation", 5)

    def value_of(judges: Judges, numbers: Floats) -> float:
        return judges.to_rule(judges(lambda shown: lend_by(numbers, shown))).value

    chance = np.random.default_rng(seed)
    found = XNES(np.zeros(SIZE), STEP_SIZE, chance, candidates=CANDIDATES)
    kept = folder / f"seed_{seed}.json"
    if kept.exists():
        state = json.loads(kept.read_text(encoding="utf-8"))
        if state["minutes"] > minutes:
            raise EvaluationError(
                f"{kept}: was searched for {state['minutes']:g} minutes; give as many or more, or "
                "another --output"
            )
        found.mean, found.shape = np.array(state["mean"]), np.array(state["shape"])
        found.step_size, chance.bit_generator.state = state["step_size"], state["chance"]
        best = np.array(state["best"])
    else:
        state = {"n_tried": 0, "seconds": 0.0, "least": value_of(validation, np.zeros(SIZE))}
        best = np.zeros(SIZE)
    begun = time.process_time() - state["seconds"]
    with steps(60 * minutes, f"lend, seed {seed}", "s") as work:
        work.advance(int(state["seconds"]))
        while state["seconds"] < 60 * minutes:
            found.tell([value_of(train, numbers) for numbers in found.ask()])
            if (value := value_of(validation, found.mean)) < state["least"]:
                best, state["least"] = found.mean.copy(), value
            spent = time.process_time() - begun
            work.advance(int(spent) - int(state["seconds"]))
            state |= {
                "n_tried": state["n_tried"] + CANDIDATES,
                "seconds": spent,
                "minutes": minutes,
            }
            state |= {"mean": found.mean.tolist(), "shape": found.shape.tolist()}
            state |= {"step_size": found.step_size, "best": best.tolist()}
            state["chance"] = chance.bit_generator.state
            with writing(kept, force=True) as part:
                part.write_text(json.dumps(state), encoding="utf-8")
    return best, state["n_tried"], state["least"]
