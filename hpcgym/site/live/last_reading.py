"""What the reading before this one had, kept between commands: a queue does not empty at once."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from hpcgym.base.errors import LiveError
from hpcgym.base.output import make_folder, writing
from hpcgym.site.live.readings import Reading


def check_against_last(reading: Reading, folder: Path | None = None) -> None:
    """Refuse a queue without jobs where the last reading of this cluster had some; keep the count.

    A cluster is known by its nodes. Where nothing can be written, nothing is kept.

    Args:
        folder: Where counts are; default the user's cache.
    """
    path = (folder or _folder()) / _name(reading)
    jobs = len(reading.waiting) + len(reading.running)
    if not jobs:
        if before := _kept(path):
            raise LiveError(
                f"squeue: no jobs, and the last reading of this cluster had {before}; nothing is "
                "advised on it. Ask the controller (scontrol ping). If the queue is truly empty, "
                f"there is nothing to advise, and to be told so, delete {path}"
            )
        return
    with suppress(OSError):
        make_folder(path.parent)
        with writing(path, force=True) as partial:
            partial.write_text(str(jobs), encoding="ascii")


def _kept(path: Path) -> int:
    """Return how many jobs the last reading had, 0 where nothing is kept."""
    with suppress(OSError, ValueError):
        return int(path.read_text(encoding="ascii"))
    return 0


def _folder() -> Path:
    """Return the folder in the system's place for caches."""
    import pooch

    return Path(pooch.os_cache("hpcgym")) / "live"


def _name(reading: Reading) -> str:
    """Return the file's name: a digest of the nodes' names."""
    names = sorted({node.name for node in reading.nodes})
    return f"{sha256(' '.join(names).encode()).hexdigest()[:16]}.txt"
