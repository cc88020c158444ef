"""Train a network by PPO on weeks of one or more scenarios; write its weights and its card.

    python scripts/train_ppo.py --scenario kth-sp2-weeks --minutes 8 --name MINE --output runs/ppo

The folder gets NAME.npz and NAME.toml (the best network on the validation weeks), a checkpoint, and
a log for `tensorboard --logdir`. The same command with `--resume` goes on from the checkpoint; only
`--steps`, `--minutes` and `--threads` may then be others. Without `--weeks` the last of five blocks
of weeks, and the week before it, are left out, so that `hpcgym judge runs/ppo/mine.toml --scenario
kth-sp2-weeks` can judge the agent there. `--validation-weeks` are not played; without them the last
fifth is kept. Several `--scenario` make a mixture, with either kind of weeks once for each or not
at all. `--set` is described in `hpcgym/agent/ppo/config.py`, `--augment` in
`hpcgym/scenario/augment.py`. `--shelf` puts the agent on the shelf, too, where `python
scripts/update_agents.py --agent NAME` then writes its results.
"""

import argparse
import shlex
import sys
from itertools import zip_longest
from pathlib import Path

from hpcgym.errors import HpcgymError
from hpcgym.output import make_folder


def main() -> int:
    """Train, or go on training, and write what came of it."""
    options = read_arguments()
    try:
        trained, card = run(options)
    except HpcgymError as error:
        sys.exit(f"train_ppo: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command with --resume goes on from the last checkpoint")
    for steps, ratio, _ in trained.history:
        print(f"{steps:>10} steps: {ratio:.3f} times SAF on the validation weeks")
    rate = trained.steps / trained.seconds
    print(f"{trained.seconds:.0f} s, {rate:.0f} steps/s, best {trained.ratio:.3f}; wrote {card}")
    return 0


def run(options: argparse.Namespace):
    """Train; return what came of it, and the card."""
    from hpcgym.agent.ppo import augmentation_of, overridden, preset, resume, train
    from hpcgym.agent.ppo.checkpoint import Course
    from hpcgym.agent.ppo.shelving import write_agent
    from hpcgym.agent.shelving import commit_at, ensure_free, put_on_shelf
    from hpcgym.agent.trained import Training

    folder, seed = make_folder(options.output), options.seed
    ensure_free(options.name, folder, shelf=options.shelf, force=options.force)
    limits, steps, minutes = {"threads": options.threads}, options.steps, options.minutes
    if minutes is not None and not minutes > 0:
        raise HpcgymError(f"--minutes must be above 0, got {minutes:g}")
    if (steps, minutes) != (None, None):  # what is given alone decides
        limits |= {"steps": 10**9 if steps is None else steps, "minutes": minutes or 0.0}
    config = overridden(preset(options.action, network=options.network, **limits), options.set)
    augmentation = augmentation_of(options.augment)
    playing, kept = chosen_weeks(options, config.validation_share)
    if options.resume:
        asked = Course.of(config, seed, playing, kept, augmentation)
        trained = resume(folder, asked=asked, progress=True)
    else:
        given = {"validation": kept, "augmentation": augmentation, "seed": seed}
        trained = train(config, playing, **given, output=folder, progress=True)
    command, commit = shlex.join(["python", *sys.argv]), commit_at(Path(__file__).parent)
    training = Training(trained.weeks, trained.seed, trained.seconds, commit, command)
    card = write_agent(trained, options.name, folder, training, force=options.force)
    return trained, put_on_shelf(card, force=options.force) if options.shelf else card


def chosen_weeks(options: argparse.Namespace, share: float):
    """Return what to play and what to validate on, set apart from all other weeks of each log."""
    from hpcgym.agent.ppo.weeks import held_back
    from hpcgym.evaluation.folds import left_to_train_on
    from hpcgym.scenario.build import Episodes
    from hpcgym.scenario.select import number_ranges

    given = [options.scenario, options.weeks, options.validation_weeks]
    for what, weeks in zip(("weeks", "validation weeks"), given[1:], strict=True):
        if weeks and len(weeks) != len(given[0]):
            raise HpcgymError(f"{len(given[0])} scenarios, yet {what} are given {len(weeks)} times")
    parts = []
    for name, own, kept in zip_longest(*given):
        apart = left_to_train_on(Episodes(name), own)
        if kept is not None:
            both = sorted({*apart.numbers, *Episodes(name).select(kept).numbers})
            apart = left_to_train_on(Episodes(name), number_ranges(both))
        parts.append(held_back(apart, share, kept))
    if len({playing.scenario.name for playing, _ in parts}) < len(parts):
        raise HpcgymError("a scenario is given twice; each may stand once, with all its weeks")
    return zip(*parts, strict=True)


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", action="append", required=True, metavar="NAME")
    parser.add_argument("--weeks", action="append", default=[], metavar="1-29")
    parser.add_argument("--validation-weeks", action="append", default=[], metavar="31-36")
    parser.add_argument("--action", default="order", help="order, job, policy or weights")
    parser.add_argument("--network", default="kernel", help="kernel or attention")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--augment", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--name", default="TRAINED")
    parser.add_argument("--output", type=Path, default=Path("runs/ppo"))
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--force", action="store_true", help="replace a card that is there")
    parser.add_argument("--shelf", action="store_true", help="put it on the shelf, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
