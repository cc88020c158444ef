"""Long reruns go on from where they were cut off."""

import json
from functools import partial
from pathlib import Path

import pytest

from papers.common.resume import Part, run_parts
from stores import keys_in


def test_second_run_works_only_on_what_the_first_left_undone(tmp_path: Path) -> None:
    store = tmp_path / "unfinished.sqlite"
    worked: list[str] = []

    def part(key: str, *, fails: bool = False) -> Part:
        def work() -> list[dict[str, str]]:
            if fails:
                raise KeyboardInterrupt
            worked.append(key)
            return [{"part": key}]

        return Part(key, key, work)

    with pytest.raises(KeyboardInterrupt):
        run_parts([part("a"), part("b", fails=True), part("c")], store, "demo")
    done = run_parts([part("a"), part("b"), part("c")], store, "demo")
    assert worked == ["a", "b", "c"]
    assert done.rows == [[{"part": "a"}], [{"part": "b"}], [{"part": "c"}]]
    assert done.seconds >= 0


def test_parts_side_by_side_give_the_rows_of_parts_in_turn(tmp_path: Path) -> None:
    parts = [
        Part(key, key, partial(json.loads, json.dumps([{"part": key}, {"part": key}])))
        for key in ("a", "b", "c")
    ]
    alone, together = (
        run_parts(parts, tmp_path / f"{place}.sqlite", "demo", executor=executor).rows
        for place, executor in enumerate((None, "local:2"))
    )
    assert together == alone == [[{"part": key}] * 2 for key in ("a", "b", "c")]
    kept = [sorted(keys_in(tmp_path / f"{place}.sqlite")) for place in (0, 1)]
    assert kept == [["a", "b", "c"]] * 2
