"""Tune the weights of an order by evolution on weeks of one or more scenarios; write its card.

    python scripts/tune_weights.py --trainer tuned-network --scenario kth-sp2-weeks --name MINE

Without `--weeks` the last of five blocks of weeks, and the week before it, are left out, so that
`hpcgym judge runs/tuned/mine.toml --scenario kth-sp2-weeks` can judge the agent there. To put it
on the shelf, copy what was written to `agents/` and run `python scripts/update_agents.py`.
"""

import argparse
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

from hpcgym.errors import HpcgymError
from hpcgym.output import ensure_writable, make_folder


def main() -> int:
    """Train, and write what came of it."""
    options = read_arguments()
    try:
        run(options)
    except HpcgymError as error:
        sys.exit(f"tune_weights: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; nothing was written")
    return 0


def run(options: argparse.Namespace) -> None:
    """Train on the weeks chosen, write card and weights, and say where."""
    from hpcgym.agent.shelving import commit_at, write_tuned
    from hpcgym.agent.trained import Training
    from hpcgym.agent.training import load_trainer
    from hpcgym.evaluation.folds import left_to_train_on
    from hpcgym.scenario.build import Episodes

    folder, name = make_folder(options.output), options.name.casefold()
    for suffix in (".toml", ".npz"):
        ensure_writable(folder / f"{name}{suffix}", force=options.force)
    if options.weeks and len(options.weeks) != len(options.scenario):
        raise HpcgymError(
            f"{len(options.scenario)} scenarios, yet weeks are given {len(options.weeks)} times"
        )
    weeks = options.weeks or [None] * len(options.scenario)
    sets = [
        left_to_train_on(Episodes(name), which)
        for name, which in zip(options.scenario, weeks, strict=True)
    ]
    trainer = load_trainer(options.trainer)
    given = {"strategy": options.strategy, "evaluations": options.evaluations}
    trainer = replace(trainer, **{key: one for key, one in given.items() if one is not None})
    began = time.monotonic()
    agent = trainer.train(sets, options.seed)
    training = Training(
        {one.scenario.name: one.numbers for one in sets},
        options.seed,
        time.monotonic() - began,
        commit_at(Path(__file__).parent),
        shlex.join(["python", *sys.argv]),
    )
    card = write_tuned(agent, options.name, folder, training, force=options.force)
    print(f"{agent.policy.name}: {training.seconds:.0f} s; wrote {card}")


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", action="append", required=True, metavar="NAME")
    parser.add_argument("--weeks", action="append", default=[], metavar="1-36")
    parser.add_argument("--trainer", default="tuned-network", help="as `hpcgym judge` takes it")
    parser.add_argument("--strategy", help="cma or xnes")
    parser.add_argument("--evaluations", type=int, help="weight vectors that are tried")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="TUNED")
    parser.add_argument("--output", type=Path, default=Path("runs/tuned"))
    parser.add_argument("--force", action="store_true", help="replace a card that is there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
