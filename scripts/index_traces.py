"""Rewrite the index of the logs, `traces/README.md`."""

from collections.abc import Iterable

from hpcgym.base.registry import shelf_folders
from hpcgym.trace.catalogue import (
    ARCHIVE_REQUEST,
    FOLDERS_VARIABLE,
    UNVERIFIED_VARIABLE,
    TraceEntry,
    catalogue,
)

_INDEX = """\
# Traces

Logs in the Standard Workload Format, and tables of jobs. The code that reads, makes and downloads
them is in `hpcgym/trace/`. `python scripts/index_traces.py` writes this page.

## Bundled

Each log lies beside a `.toml` that describes it, or is made at first use as that says.

{bundled}

## Published by the Parallel Workloads Archive

`catalogue.toml` lists these logs; they are not bundled. `hpcgym traces download NAME` downloads
one. `{folders}` names folders where you keep such logs. Another text under the name of a log is
refused, unless `{unverified}=1` is set. A log without a digest on record cannot be verified, so its
download needs `--unverified`. *states* says what its jobs state for a
machine of nodes, as `docs/machines.md` explains.

If you use one of these logs, please {request}.
Please also acknowledge the provider that `hpcgym traces info NAME` names.

{published}
"""


def shelf_index() -> str:
    """Return the index of the shelf `traces/`, in Markdown, as its README holds it."""
    known = catalogue().values()
    bundled = [log for log in known if log.folder]
    published = [log for log in known if not log.folder]
    return _INDEX.format(
        folders=FOLDERS_VARIABLE,
        unverified=UNVERIFIED_VARIABLE,
        request=ARCHIVE_REQUEST,
        bundled="\n".join(_index_table(bundled)),
        published="\n".join(_index_table(published)),
    )


def _index_table(logs: Iterable[TraceEntry]) -> list[str]:
    """Lay entries out as a Markdown table."""
    rows = ["| name | what | jobs | processors | states | digest |", "|---|---|---:|---:|---|---|"]
    for log in logs:
        sizes = " | ".join("" if n is None else str(n) for n in (log.jobs, log.processors))
        digest = "yes" if log.sha256 else "none"
        states = " ".join(log.states)
        rows.append(f"| `{log.name}` | {log.description} | {sizes} | {states} | {digest} |")
    return rows


if __name__ == "__main__":
    (shelf_folders("traces")[0] / "README.md").write_text(shelf_index(), encoding="utf-8")
