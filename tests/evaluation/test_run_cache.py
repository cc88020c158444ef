"""An evaluation that was cut off goes on from what it had finished."""

import shutil
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest

from hpcgym.agent import RuleAgent
from hpcgym.errors import EvaluationError, OutputError
from hpcgym.evaluation import Evaluation, evaluate, run_cache, runner
from hpcgym.evaluation.run_cache import RunCache
from hpcgym.scenario.episodes import Episodes


class Stop(Exception):
    """What cuts an evaluation off."""


def run(path: Path | None, **options: int) -> Evaluation:
    """Evaluate three rules on tiny."""
    settings = {"jitter": 60, "replicas": 2, "seed": 1} | options
    return evaluate(["FCFS", "SPF", "SAF"], "tiny", resume=path, progress=False, **settings)


def count_runs(monkeypatch: pytest.MonkeyPatch, *, stop_at: int = 10**9) -> list[str]:
    """Note the policy of every simulation, and stop at one of them."""
    noted: list[str] = []
    simulate = runner.simulate

    def counted(workload, **settings):
        noted.append(settings["policy"].name)
        if len(noted) == stop_at:
            raise Stop
        return simulate(workload, **settings)

    monkeypatch.setattr(runner, "simulate", counted)
    return noted


def test_run_that_was_cut_off_goes_on_and_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(None)
    path = tmp_path / "cache.jsonl"
    with monkeypatch.context() as patch:
        count_runs(patch, stop_at=5)
        with pytest.raises(Stop):
            run(path)
    noted = count_runs(monkeypatch)
    pd.testing.assert_frame_equal(run(path).frame, whole.frame)
    assert noted == ["SPF"] * 3 + ["SAF"] * 3


def test_finished_run_is_not_repeated_and_other_settings_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cache.jsonl"
    run(path)
    noted = count_runs(monkeypatch)
    run(path)
    assert noted == []
    run(path, seed=2)
    assert len(noted) == 9
    run(path)
    assert len(noted) == 9


def test_agent_with_other_settings_under_the_same_name_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cache.jsonl"
    noted = count_runs(monkeypatch)
    for order in (None, "SPF"):
        agent = RuleAgent("FCFS", backfill_order=order, name="mine")
        evaluate([agent], "tiny", resume=path, progress=False)
    assert noted == ["FCFS", "SAF", "FCFS"]


def test_run_of_other_code_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cache.jsonl"
    run(path)
    noted = count_runs(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(run_cache, "_sources", lambda: "mended")
        run(path)
    assert len(noted) == 9
    run(path)
    assert len(noted) == 9


@pytest.mark.parametrize(
    ("place", "decides"),
    [
        ("core/kernels/easy.py", True),
        ("agent/ppo/train.py", True),
        ("__init__.py", True),
        ("report/figures.py", False),
        ("evaluation/results.py", False),
    ],
)
def test_code_that_runs_and_trains_is_digested_and_code_that_shows_is_not(
    tmp_path: Path, place: str, decides: bool
) -> None:
    own = Path(str(files("hpcgym")))
    copied = Path(
        shutil.copytree(own, tmp_path / "hpcgym", ignore=shutil.ignore_patterns("__pycache__"))
    )
    before = run_cache.source_digest(copied)
    assert before == run_cache.source_digest(own)
    with (copied / place).open("a") as file:
        file.write("# mended\n")
    assert (run_cache.source_digest(copied) != before) == decides


@pytest.mark.parametrize("column", ["job_id", "unix_start"])
def test_jobs_under_other_ids_or_in_another_part_of_the_week_are_other_jobs(column: str) -> None:
    """The f-model draws by ids, and regressions look at the time of the week."""
    jobs = Episodes("tiny").workload(0)
    other = {"job_id": jobs.job_id + 1, "unix_start": 3_600}[column]
    assert run_cache.digest(replace(jobs, **{column: other})) != run_cache.digest(jobs)


def test_line_cut_off_by_a_crash_is_run_again(tmp_path: Path) -> None:
    path = tmp_path / "cache.jsonl"
    whole = run(path)
    text = path.read_bytes()
    path.write_bytes(text[:-20])
    pd.testing.assert_frame_equal(run(path).frame, whole.frame)
    assert path.read_bytes() == text


@pytest.mark.parametrize("content", [b"agent,week\n", b"agent,week", b"[1]\n", b"\xff\x00\n"])
def test_file_that_is_no_run_cache_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "precious.csv"
    path.write_bytes(content)
    with pytest.raises(EvaluationError, match="not the run cache"):
        run(path)
    assert path.read_bytes() == content


def test_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be kept"):
        RunCache(tmp_path / "absent" / "cache.jsonl")


ROWS = [{"agent": "SAF", "week": 3, "mean_bsld": 12.5, "utilisation": float("nan")}]


def kept_in(path: Path) -> RunCache:
    """Keep two runs."""
    cache = RunCache(path)
    for key in ("a", "b"):
        cache.keep(key, ROWS)
    return cache


def test_a_last_line_cut_anywhere_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "cache.jsonl"
    kept_in(path)
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        cache = RunCache(path)
        assert (cache.find("a") is None, cache.find("b")) == (end < first, None)
        assert path.read_bytes() == whole[: first if end >= first else 0]


def test_every_altered_byte_of_a_whole_line_is_found(tmp_path: Path) -> None:
    path = tmp_path / "cache.jsonl"
    kept_in(path)
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for place in range(first, len(whole) - 1):
        altered = bytes([whole[place] ^ 1])
        path.write_bytes(whole[:place] + altered + whole[place + 1 :])
        with pytest.raises(EvaluationError, match=r"cache\.jsonl:2: damaged: .* remove it"):
            RunCache(path)


@pytest.mark.parametrize(
    "line",
    [
        '{"key": "a", "rows": []}',
        '{"key": "a", "rows": 5}',
        '{"key": 1',
        '{"key": "a"}',
        "",
        "[" * 9,
    ],
)
def test_a_row_of_a_wrong_form_is_found(tmp_path: Path, line: str) -> None:
    path = tmp_path / "cache.jsonl"
    kept_in(path)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(EvaluationError, match=r"cache\.jsonl:3: damaged"):
        RunCache(path)
