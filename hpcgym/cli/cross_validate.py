"""`hpcgym cross-validate`: run agents and trainers on weeks they have not been trained on."""

from __future__ import annotations

from typing import Annotated

import typer

from hpcgym.base.registry import has_room
from hpcgym.cli import comparison, options

FILES = ("runs.csv", "summary.csv", "trainings.csv", "comparison.png")
"""Files in the output folder: every run, one line per agent, every training, the picture; of
several logs a picture each, such as comparison-tiny.png."""

NETWORKS = ", ppo, ppo-controls, ppo-open, ppo-urgent, ppo-order-open"
if not has_room("agent/learn"):
    NETWORKS = ""


@options.with_options(comparison.OPTIONS, jitter=600, replicas=10)
def cross_validate_agents(
    context: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Trainers (weights, tuned-weights, network, tuned-history, tuned-network, "
            f"evolved-score, tuned-controls, tuned-open, credit{NETWORKS}), or agents' names, "
            "cards or weights. Or your own: file.py:Name, module:Name or a model's .zip, which "
            "runs what is in it.",
            show_default=False,
        ),
    ],
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario",
            "-s",
            help="A name or a .toml, of weeks; default synthetic-256-weeks. May be given for "
            "several logs: trainers then train on all at once.",
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option(help="Contiguous blocks of weeks, each held out of training once.")
    ] = 5,
    baselines: Annotated[
        bool, typer.Option(help="Whether to add the baselines; SAF is always there.")
    ] = True,
    seeds: Annotated[int, typer.Option(help="Trainings of each fold.")] = 5,
    **_: object,
) -> None:
    """Run agents on weeks they have not been trained on, and compare them with baselines.

    A trainer gets the weeks of a log without one block and its neighbours. The agent it trains runs
    on that block. This is repeated for each block and several seeds. Over several logs a block of
    each is held out at once, and a last table has the geometric mean of the ratios.

    An agent that was trained before runs on the weeks its card leaves open, a rule on all. Ratios
    are to SAF on the same weeks and jittered copies, in pairs. Baselines show what is achieved
    today, and what hindsight and clairvoyance would give.
    """
    from hpcgym.agent.base import NamedAgent
    from hpcgym.agent.rule import RuleAgent
    from hpcgym.env.scenario.load import load_scenario
    from hpcgym.evaluation import cross_validate
    from hpcgym.evaluation.baselines import BASELINES
    from hpcgym.evaluation.cross_validation import DEFAULT_SCENARIO, load_agent_or_trainer

    given = comparison.refuse_idle_options(context)
    several = scenarios or [DEFAULT_SCENARIO]
    figures = [f"comparison-{load_scenario(name).name}.png" for name in several]
    if len(several) == 1:
        figures = [FILES[-1]]
    with comparison.results_folder(
        given.output, (*FILES[:-1], *figures), resume=given.resume, force=given.force
    ) as folder:
        chosen = [load_agent_or_trainer(name) for name in names]
        learns = baselines or not all(
            isinstance(candidate, RuleAgent | NamedAgent) for candidate in chosen
        )
        why = None if learns else "with --no-baselines and no trainer"
        options.refuse_idle(context, {"folds": why, "seeds": why})
        logs = comparison.weeks_of(context, several)
        trained = {"folds": folds, "seeds": seeds} if learns else {}
        for weeks in logs:
            comparison.show_conditions(context, weeks, **trained, **given.copies)
        result = cross_validate(
            chosen,
            logs,
            folds=folds,
            seeds=seeds,
            executor=given.executor,
            baselines=BASELINES if baselines else (),
            resume=folder and comparison.store_in(folder, resume=given.resume),
            **given.copies,
        ).against(given.baseline)
        by_figure = dict(zip(figures, result.evaluations, strict=True))
        comparison.show_and_write(result, folder, result.frames(), by_figure, given)
