"""d3rlpy: DiscreteCQL on the bundled data set, and on the same recording with flat observations."""

import subprocess
import sys
from pathlib import Path

import minari
import numpy as np
from client import PAGE, check_returns, example, refuse_infinite, report

RECORDING = "--agents SMITH-REG --scenario synthetic-busy-weeks --weeks 10 --action job --slots 16"
"""How docs/tutorials/offline_data.md records the bundled data set."""


def check_flat(shown: np.ndarray) -> None:
    """Check that a flat recording shows what the example put together."""
    record = ["-m", "hpcgym", "record", "flat-v0", *RECORDING.split(), "--observation", "flat"]
    subprocess.run([sys.executable, *record, "--output", "recorded"], check=True)
    (episode,) = minari.MinariDataset(Path("recorded/flat-v0/data").absolute())
    assert np.array_equal(episode.observations[:-1], shown)


if __name__ == "__main__":
    Path("docs").symlink_to(PAGE.parent)  # the folder is an empty one
    made = example("d3rlpy")
    cql, recorded = made["cql"], made["recorded"]
    (episode,) = recorded.episodes
    refuse_infinite(cql.impl.q_function.parameters())
    check_returns([episode.rewards.sum(), -made["info"]["ratio"]])
    report(f"DiscreteCQL on busy-smith-v0, {len(episode):,} decisions, a week played")
    check_flat(episode.observations)
    report("a flat recording shows the same")
