"""The folder that `hpcgym evaluate` and `hpcgym judge` write to, and take up again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from hpcgym.errors import HpcgymError

if TYPE_CHECKING:
    from hpcgym.evaluation import Evaluation

UNFINISHED = "unfinished.jsonl"
"""What stands there until all is done: the weeks that are; see `hpcgym.evaluation.run_cache`."""


@contextmanager
def results_folder(
    output: Path | None, files: Sequence[str], *, resume: bool, force: bool
) -> Iterator[Path | None]:
    """Lend the output folder, if there is one; after Ctrl-C, say what is kept in it.

    What a run keeps there is thrown away when the block ends well.

    Args:
        output: The folder, or None.
        files: What will be written to it.
        resume: Whether to go on from what an interrupted run kept there.
        force: Whether existing files may be replaced.

    Yields:
        The folder, which exists, or None.

    Raises:
        HpcgymError: A file is there already, or an interrupted run's; or there is nothing to resume
            from.
    """
    from hpcgym.output import ensure_writable, output_folder

    if output is None:
        if resume:
            raise HpcgymError("--resume goes with --output, where an interrupted run keeps weeks")
        try:
            yield None
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "what had finished is lost; with --output FOLDER it is kept for --resume"
            ) from None
        return
    with output_folder(output) as folder:
        for name in files:
            ensure_writable(folder / name, force=force)
        journal = folder / UNFINISHED
        if journal.exists() and not (resume or force):
            raise HpcgymError(
                f"{journal}: an interrupted run kept its finished weeks here; go on from them with "
                "--resume, or start anew with --force"
            )
        try:
            yield folder
            journal.unlink(missing_ok=True)
        except KeyboardInterrupt:
            is_kept = journal.exists() and journal.stat().st_size > 0
            what = f"finished weeks are kept in {journal}: add --resume to go on from there"
            raise KeyboardInterrupt(what if is_kept else "no week had finished") from None
        finally:
            if journal.exists() and journal.stat().st_size == 0:
                journal.unlink()


def journal_in(folder: Path | None, *, resume: bool) -> Path | None:
    """Return where a run keeps what has finished; what an earlier one kept goes unless resumed.

    Args:
        folder: The output folder, or None.
        resume: Whether to go on from there.

    Returns:
        The file, or None where there is no folder.
    """
    if folder is None:
        return None
    journal = folder / UNFINISHED
    if not resume:
        journal.unlink(missing_ok=True)
    return journal


def draw(result: Evaluation, picture: Path, *, force: bool) -> None:
    """Draw the comparison and say where, or why not.

    Args:
        result: What to draw.
        picture: The file.
        force: Whether to replace it.
    """
    from importlib.util import find_spec

    from hpcgym.report import draw_evaluation

    if find_spec("matplotlib") is None:
        typer.echo("no picture: matplotlib is not installed (pip install 'hpcgym[report]')")
        return
    draw_evaluation(result, picture, force=force)
    typer.echo(f"wrote {picture}")
