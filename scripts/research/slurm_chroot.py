"""A Debian with Slurm 24.11 in a folder, and programs in it, each with a network of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hpcgym.base.errors import EvaluationError
from research.slurm_arm import OPERATOR, USER

SUITE = "trixie"
PACKAGES = "slurm-wlm,slurmdbd,slurm-client,mariadb-server,munge,python3"
TOOLS = ("debootstrap", "unshare", "chroot", "ip")
ENTER = """\
root=$1 output=$2 recipe=$3 programs=$4; shift 4
mount --make-rprivate /
hostname toy
ip link set lo up
ip addr add 10.9.0.1/32 dev lo
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
for each in run tmp srv etc/slurm; do mount -t tmpfs none "$root/$each"; done
chmod 1777 "$root/tmp"
mkdir "$root/srv/output" "$root/srv/recipe" "$root/srv/programs"
mount --bind "$output" "$root/srv/output"
mount --bind "$recipe" "$root/srv/recipe"
mount --bind "$programs" "$root/srv/programs"
exec chroot "$root" "$@"
"""
"""Slurm looks names up as a machine does that has an address beside 127.0.0.1."""


def why_not() -> str:
    """Say why no such folder can be made or entered here; "" if nothing is known against it."""
    if os.geteuid():
        return "only root can make a chroot and enter it"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"{', '.join(missing)} must be installed" if missing else ""


def make_chroot(folder: Path) -> Path:
    """Return a folder with Debian and Slurm; make it if it is not there, which takes minutes.

    Raises:
        EvaluationError: It cannot be had here; the reason.
    """
    if reason := why_not():
        raise EvaluationError(reason)
    if not (folder / "usr/sbin/slurmctld").exists():
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1:]
            raise EvaluationError(f"debootstrap {SUITE}: {''.join(last)}")
    for user in (USER, OPERATOR):
        subprocess.run(["chroot", str(folder), "useradd", "-M", user], capture_output=True)
    return folder.resolve()


def version_of(chroot: Path) -> str:
    """Return the version of Slurm in a folder."""
    done = subprocess.run(
        ["chroot", str(chroot), "slurmctld", "-V"], capture_output=True, text=True, check=True
    )
    return done.stdout.split()[-1]


def begin(
    chroot: Path, output: Path, recipe: Path, command: Sequence[str]
) -> subprocess.Popen[bytes]:
    """Start a command in the folder, with a network, processes and folders of its own.

    There `/srv/output`, `/srv/recipe` and `/srv/programs` are the folders given, and this one. What
    it started ends with it.
    """
    output.mkdir(parents=True, exist_ok=True)
    spaces = ["unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child"]
    folders = [chroot, output.resolve(), recipe.resolve(), Path(__file__).parent]
    words = [*spaces, "bash", "-ec", ENTER, "bash", *map(str, folders), *command]
    with (output / "arm.log").open("w") as log:
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
