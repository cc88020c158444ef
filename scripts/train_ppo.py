"""Train a network by PPO on weeks of one or more scenarios; write its weights and its card.

    python scripts/train_ppo.py --scenario kth-sp2-weeks --weeks 1-29 --validation-weeks 31-36 \\
        --minutes 8 --output runs/ppo

The folder gets NAME.npz and NAME.toml (the best network on the validation weeks), a checkpoint, and
a log for `tensorboard --logdir`. The same command with `--resume` goes on from the checkpoint.
Several `--scenario` make a mixture, with `--weeks` and `--validation-weeks` once for each or not at
all. Hyper-parameters are described in `hpcgym/agent/ppo/config.py`. To put the agent on the shelf,
copy both files to `agents/` and run `python scripts/update_agents.py --agent NAME`.
"""

import argparse
import shlex
import sys
from pathlib import Path

from hpcgym.errors import HpcgymError
from hpcgym.output import ensure_writable, make_folder

ENDLESS = 10**9
"""Steps of a training that minutes end."""


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
    from hpcgym.agent.ppo import overridden, preset, resume, train
    from hpcgym.agent.ppo.shelving import write_agent
    from hpcgym.agent.ppo.weeks import chosen_weeks
    from hpcgym.agent.shelving import commit_at
    from hpcgym.agent.trained import Training

    folder, name = make_folder(options.output), options.name.casefold()
    for suffix in (".toml", ".npz"):
        ensure_writable(folder / f"{name}{suffix}", force=options.force)
    steps = options.steps or (ENDLESS if options.minutes else None)
    minutes = options.minutes or (0.0 if options.steps else None)  # what is given alone decides
    limits = {"steps": steps, "minutes": minutes}
    config = preset(
        options.action,
        network=options.network,
        threads=options.threads,
        **{key: value for key, value in limits.items() if value is not None},
    )
    config = overridden(config, options.set)
    share = config.validation_share
    chosen = chosen_weeks(options.scenario, options.weeks, options.validation_weeks, share)
    if options.resume:
        trained = resume(folder, **limits, progress=True)
    else:
        trained = train(
            config,
            chosen.training,
            validation=chosen.validation,
            seed=options.seed,
            output=folder,
            progress=True,
        )
    command = shlex.join(["python", *sys.argv])
    commit = commit_at(Path(__file__).parent)
    training = Training(chosen.weeks, trained.seed, trained.seconds, commit, command)
    return trained, write_agent(trained, options.name, folder, training, force=options.force)


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
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--name", default="PPO")
    parser.add_argument("--output", type=Path, default=Path("runs/ppo"))
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--force", action="store_true", help="replace a card that is there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
