"""Search the weights of an order on weeks of one or more scenarios; write the agent's card.

    python scripts/tune_weights.py --trainer tuned-network --scenario kth-sp2-weeks --name MINE

Without `--weeks` the last of five blocks of weeks, and the week before it, are left out, so that
`hpcgym cross-validate runs/tuned/mine.toml --scenario kth-sp2-weeks` can evaluate the agent there.
With `--shelf` the agent goes to the shelf too, and `python scripts/update_agents.py --agent MINE`
then writes its results.
"""

import argparse
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

from hpcgym.errors import HpcgymError
from hpcgym.output import output_folder
from hpcgym.progress import shown

KEYS = ("strategy", "evaluations")
"""Fields of a trainer that options set."""


def main() -> int:
    """Train and write the agent."""
    options = read_arguments()
    try:
        run(options)
    except HpcgymError as error:
        sys.exit(f"tune_weights: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; nothing was written")
    return 0


def run(options: argparse.Namespace) -> None:
    """Train on the chosen weeks, write card and weights, and print where."""
    from hpcgym.agent.card_writer import commit_at, ensure_free, put_on_shelf, write_agent
    from hpcgym.agent.training_weeks import Training, digests_of_logs
    from hpcgym.evaluation.folds import left_of_each_log

    trainer = chosen_trainer(options)
    sets = left_of_each_log(options.scenario, options.weeks)
    with output_folder(options.output) as folder:
        ensure_free(options.name, folder, shelf=options.shelf, force=options.force)
        logs = digests_of_logs(options.scenario)
        began = time.monotonic()
        with shown():
            agent = trainer.train(sets, options.seed)
        training = Training(
            {one.scenario.name: one.numbers for one in sets},
            options.seed,
            time.monotonic() - began,
            commit_at(Path(__file__).parent),
            shlex.join(["python", *sys.argv, *default_options(options, trainer)]),
            logs,
        )
        card = write_agent(agent, options.name, folder, training, force=options.force)
    print(f"{options.name}: {training.seconds:.0f} s; wrote {card}")
    if options.shelf:
        print(f"wrote {put_on_shelf(card, force=options.force)}")


def chosen_trainer(options: argparse.Namespace):
    """Return the trainer with the given settings; refuse those it does not have."""
    from hpcgym.agent.trainers import load_trainer

    if options.trainer.casefold() == "ppo":
        raise HpcgymError("ppo tunes no weights of an order: python scripts/train_ppo.py trains it")
    trainer = load_trainer(options.trainer)
    given = {key: getattr(options, key) for key in KEYS}
    given = {key: value for key, value in given.items() if value is not None}
    for key in given.keys() - settable(options):
        raise HpcgymError(f"the trainer {options.trainer} has no --{key}; leave it out")
    return replace(trainer, **given)


def settable(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the fields that may be set; w*train is by definition searched by XNES."""
    return ("evaluations",) if options.trainer.casefold() == "weights" else KEYS


def default_options(options: argparse.Namespace, trainer: object) -> list[str]:
    """Return the trainer's defaults as options, so that the card states them."""
    words = []
    for key in settable(options):
        if getattr(options, key) is None:
            words += [f"--{key}", str(getattr(trainer, key))]
    return words


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--scenario", action="append", required=True, metavar="NAME", help="once for each log"
    )
    parser.add_argument(
        "--weeks", action="append", default=[], metavar="1-36", help="once for each, or never"
    )
    parser.add_argument(
        "--trainer", default="tuned-network", help="as of `hpcgym cross-validate`, but ppo"
    )
    parser.add_argument("--strategy", help="cma or xnes")
    parser.add_argument("--evaluations", type=int, help="weight vectors that are tried")
    parser.add_argument("--seed", type=int, default=0, help="of all chance")
    parser.add_argument("--name", default="TUNED", help="of the agent and its files")
    parser.add_argument("--output", type=Path, default=Path("runs/tuned"), help="folder")
    parser.add_argument("--shelf", action="store_true", help="put the agent on the shelf too")
    parser.add_argument("--force", action="store_true", help="replace a card that is there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
