"""Accounting in JSON is read piece by piece: wherever a piece ends, the jobs are the same."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpcgym.base.errors import TraceError
from hpcgym.trace.accounting import read_accounting
from hpcgym.trace.accounting.rows import Source

SLURM = Path(__file__).parents[2] / "data" / "slurm" / "sacct.json.gz"


@pytest.mark.parametrize("size", [997, 5000])
def test_jobs_are_the_same_wherever_a_piece_of_the_text_ends(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read_accounting(SLURM)
    text = gzip.decompress(SLURM.read_bytes()).decode()

    def pieces(self: Source) -> Iterator[str]:
        yield from (text[begin : begin + size] for begin in range(0, len(text), size))

    monkeypatch.setattr(Source, "pieces", pieces)
    cut = read_accounting(SLURM)
    assert cut.runs.equals(whole.runs)
    assert cut.lines.tolist() == whole.lines.tolist()
    assert cut.ledger == whole.ledger


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda text: text[:40_000], r"jobs\.json:\d+: the file ends within its jobs"),
        (lambda text: text.replace('"account":', '"account"', 5), r"jobs\.json:\d+: no JSON here"),
        (lambda text: text[: text.rindex("]")], r"jobs\.json:\d+: the file ends within its jobs"),
    ],
)
def test_a_text_that_is_damaged_is_refused_by_line(
    damage: object, why: str, tmp_path: Path
) -> None:
    assert callable(damage)
    text = gzip.decompress(SLURM.read_bytes()).decode()
    (tmp_path / "jobs.json").write_text(damage(text))
    with pytest.raises(TraceError, match=why):
        read_accounting(tmp_path / "jobs.json")


def test_a_packed_text_that_ends_early_is_refused_by_line(tmp_path: Path) -> None:
    (tmp_path / "jobs.json.gz").write_bytes(SLURM.read_bytes()[:-2000])
    with pytest.raises(TraceError, match=r"jobs\.json\.gz:\d+: the gzip stream ends early here"):
        read_accounting(tmp_path / "jobs.json.gz")
