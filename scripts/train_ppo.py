"""Train a network by PPO on weeks of one or more scenarios; write its weights and its card.

    python scripts/train_ppo.py --scenario kth-sp2-weeks --minutes 8 --name MINE --output runs/ppo

The folder gets NAME.npz and NAME.toml (the best network on the validation weeks), a checkpoint, and
a log for `tensorboard --logdir`. The same command with `--resume` goes on from the checkpoint; only
`--steps`, `--minutes` and `--threads` may then change. With the presets, a checkpoint has some 80
MB on kth-sp2-weeks alone and 600 MB on five logs, and twice that while it is replaced.

Without `--weeks` the last of five blocks of weeks, and the week before it, are left out, so that
`hpcgym cross-validate runs/ppo/mine.toml --scenario kth-sp2-weeks` can evaluate the agent there.
`--validation-weeks` are not played; without them the last fifth is kept. Several `--scenario` make
a mixture, each of another log, with either kind of weeks once for each or not at all. `--set` is
described in `hpcgym/agent/ppo/config.py`, `--augment` in `hpcgym/scenario/augment.py`. `--shelf`
puts the agent on the shelf, too, and `python scripts/update_agents.py --agent NAME` then writes its
results.
"""

import argparse
import shlex
import sys
from pathlib import Path

from hpcgym.errors import HpcgymError
from hpcgym.output import output_folder


def main() -> int:
    """Train or resume, and print the result."""
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
    """Train; return the result and the card."""
    from hpcgym.agent.card_writer import commit_at, ensure_free, put_on_shelf, write_agent
    from hpcgym.agent.ppo import augmentation_of, overridden, preset, resume, train
    from hpcgym.agent.ppo.checkpoint import TrainingSettings
    from hpcgym.agent.training_weeks import Training, digests_of_logs

    force, seed, steps, minutes = options.force, options.seed, options.steps, options.minutes
    limits = {"threads": options.threads}
    if minutes is not None and not minutes > 0:
        raise HpcgymError(f"--minutes must be above 0, got {minutes:g}")
    if (steps, minutes) != (None, None):  # what is given alone decides
        limits |= {"steps": 10**9 if steps is None else steps, "minutes": minutes or 0.0}
    config = overridden(preset(options.action, network=options.network, **limits), options.set)
    augmentation = augmentation_of(options.augment)
    playing, kept = chosen_weeks(options, config.validation_share)
    with output_folder(options.output) as folder:
        ensure_free(options.name, folder, shelf=options.shelf, force=force)
        logs = digests_of_logs(options.scenario)
        if options.resume:
            asked = TrainingSettings.of(config, seed, playing, kept, augmentation)
            trained = resume(folder, asked=asked, progress=True)
        else:
            given = {"validation": kept, "augmentation": augmentation, "seed": seed}
            trained = train(config, playing, **given, output=folder, progress=True)
        command, commit = shlex.join(["python", *sys.argv]), commit_at(Path(__file__).parent)
        training = Training(trained.weeks, trained.seed, trained.seconds, commit, command, logs)
        card = write_agent(trained, options.name, folder, training, force=force)
    return trained, put_on_shelf(card, force=force) if options.shelf else card


def chosen_weeks(options: argparse.Namespace, share: float):
    """Return the weeks to play and those to validate on, apart from all others of each log."""
    from hpcgym.agent.ppo.validation_split import split_validation
    from hpcgym.evaluation.folds import left_of_each_log

    left = left_of_each_log(options.scenario, options.weeks, options.validation_weeks)
    kept = options.validation_weeks or [None] * len(left)
    parts = [split_validation(one, share, own) for one, own in zip(left, kept, strict=True)]
    return zip(*parts, strict=True)


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add, of_each = parser.add_argument, {"action": "append", "default": []}
    add("--scenario", action="append", required=True, metavar="NAME", help="once for each log")
    add("--weeks", **of_each, metavar="1-29", help="of each; else all but the last block")
    add("--validation-weeks", **of_each, metavar="31-36", help="of each, to choose the network by")
    add("--action", default="order", help="order, job, policy or weights")
    add("--network", default="kernel", help="kernel or attention")
    add("--seed", type=int, default=0, help="of all chance")
    add("--steps", type=int, help="decisions to end after; alone, it lifts the limit of 9 minutes")
    add("--minutes", type=float, help="time to end after; alone, it lifts the limit of steps")
    add("--set", **of_each, metavar="KEY=VALUE", help="a hyper-parameter")
    add("--augment", **of_each, metavar="KEY=VALUE", help="a change of the weeks that are played")
    add("--threads", type=int, default=1, help="of torch, and those that step environments")
    add("--name", default="TRAINED", help="of the agent; its files are called so, too")
    add("--output", type=Path, default=Path("runs/ppo"), help="folder; runs/ppo unless given")
    add("--resume", action="store_true", help="go on from the checkpoint in the folder")
    add("--force", action="store_true", help="replace a card that is there")
    add("--shelf", action="store_true", help="put it on the shelf, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
