"""Gymnasium: its checker, vectors, NumpyToTorch, videos, and the tests of its source package."""

import resource
import subprocess
import sys
import tarfile
import tempfile
import warnings
from pathlib import Path

import gymnasium
import torch
from client import check_returns, example, report
from gymnasium.utils.env_checker import check_env

from hpcgym.env.registration import PARTS, PROBLEMS

IDS = ["HPCBatch-v0", *(f"hpcgym/{name}-{part}-v0" for name in PROBLEMS for part in PARTS)]
MOST_MB = 300
"""Memory that a video may take, beside what its libraries take."""


def check_every_id() -> None:
    """Run the checker of environments; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in IDS:
            check_env(gymnasium.make(name).unwrapped, skip_render_check=True)
    report(f"check_env on {len(IDS)} ids")


def step_vectors() -> None:
    """Step each kind of vector through ends of episodes."""
    for kind in ("sync", "async", "vector_entry_point"):
        envs = gymnasium.make_vec(IDS[0], num_envs=2, vectorization_mode=kind)
        watched = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)
        watched.reset(seed=0)
        watched.action_space.seed(0)
        for _ in range(700):
            watched.step(watched.action_space.sample())
        check_returns(watched.return_queue)
        watched.close()
    report("vectors sync, async and compiled, 700 steps each")


def step_tensors() -> None:
    """Play an episode in tensors of torch, infos included."""
    env = gymnasium.wrappers.NumpyToTorch(gymnasium.make("hpcgym/Windows-pick-train-v0"))
    env.reset(seed=0)
    over = False
    while not over:
        shown, _, over, _, info = env.step(torch.tensor(0))
    assert isinstance(shown, torch.Tensor) and shown.shape == env.observation_space.shape
    assert float(info["mean_bsld"]) >= 1 and float(info["complete"]) == 1
    report("NumpyToTorch, an episode")


def write_videos() -> None:
    """Write the video of an episode as docs/clients.md does, in bounded memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = example("Videos")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert Path("episode.mp4").stat().st_size > 10_000 and grown < MOST_MB, grown
    report(f"video of {made['n_frames']} frames, {grown:.0f} MB more")


def run_own_tests() -> None:
    """Run the tests that Gymnasium's source package has, with the ids of hpcgym registered."""
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=gymnasium"]
    with tempfile.TemporaryDirectory() as folder:
        wanted = f"gymnasium=={gymnasium.__version__}"
        if subprocess.run([*pip, "-d", folder, wanted], capture_output=True).returncode:
            return report("its own tests skipped: its source package could not be downloaded")
        (package,) = Path(folder).glob("*.tar.gz")
        with tarfile.open(package) as files:
            files.extractall(folder, filter="data")
        (root,) = (one for one in Path(folder).iterdir() if one.is_dir())
        found = sorted(one.name for one in root.glob("tests/**/test_*.py"))
        if not found:
            return report("its own tests skipped: its source package has none")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "hpcgym", "tests"]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    report(f"its own {', '.join(found)}: {done.stdout.splitlines()[-1].partition(' in ')[0]}")


if __name__ == "__main__":
    check_every_id()
    step_vectors()
    step_tensors()
    write_videos()
    run_own_tests()
