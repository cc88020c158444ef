"""What a change touches: files that differ from where the branch left main, and pages of them."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path


def changed_files(root: Path) -> set[str]:
    """Return files, from the root, that differ from main, that are new, or that are gone.

    On main itself they are those that are not committed; without git there are none.
    """

    def git(*arguments: str) -> list[str]:
        try:
            done = subprocess.run(
                ["git", *arguments], cwd=root, capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return []
        return done.stdout.split("\0" if "-z" in arguments else None)

    bases = git("merge-base", "HEAD", "origin/main") or git("merge-base", "HEAD", "main")
    differing = git("diff", "--name-only", "--relative", "-z", *(bases or ["HEAD"]))
    return {*differing, *git("ls-files", "--others", "--exclude-standard", "-z")} - {""}


def pages_of(changed: Iterable[str], pages: Iterable[str], root: Path) -> set[str]:
    """Return the pages whose text changed, or a file that they name from there or from the root."""
    of_root = {name.removeprefix("./") for name in changed}
    files = {root / name for name in of_root}

    def is_touched(page: str) -> bool:
        text = (root / page).read_text(encoding="utf-8")
        names = {name.rstrip(".") for name in re.findall(r"[\w./-]+", text)}
        beside = ((root / page).parent / name for name in names if "." in name)
        return page in of_root or bool(names & of_root) or any(p.resolve() in files for p in beside)

    return {page for page in pages if is_touched(page)}
