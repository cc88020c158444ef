"""Long reruns go on from where they were cut off."""

from pathlib import Path

import pytest

from papers.common.resume import Part, run_parts


def test_second_run_works_only_on_what_the_first_left_undone(tmp_path: Path) -> None:
    journal = tmp_path / "unfinished.jsonl"
    worked: list[str] = []

    def part(key: str, *, fails: bool = False) -> Part:
        def work() -> list[dict[str, str]]:
            if fails:
                raise KeyboardInterrupt
            worked.append(key)
            return [{"part": key}]

        return Part(key, key, work)

    with pytest.raises(KeyboardInterrupt):
        run_parts([part("a"), part("b", fails=True), part("c")], journal, "demo")
    done = run_parts([part("a"), part("b"), part("c")], journal, "demo")
    assert worked == ["a", "b", "c"]
    assert done.rows == [[{"part": "a"}], [{"part": "b"}], [{"part": "c"}]]
    assert done.seconds >= 0
