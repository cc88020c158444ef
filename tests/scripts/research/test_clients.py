"""The table of other libraries: what becomes of what they print, with no environment made."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from research import clients

TABLE = """client,version,what ran,result,s
sb3,stable-baselines3 1.0,PPO,passed,9
skrl,skrl 1.0,PPO,passed,8
"""


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a file that is run in place of the program of any client, by this Python."""
    file = tmp_path / "use.py"
    monkeypatch.setattr(clients, "_program", lambda client: file)
    monkeypatch.setattr(clients, "_install", lambda client, folder: (Path(sys.executable), ""))
    return file


def test_lines_of_a_program_become_its_row(program: Path, tmp_path: Path) -> None:
    program.write_text("print('client: gymnasium 1.4.0\\nnoise\\nclient: PPO\\nclient: DQN')")
    row, printed = clients.run("skrl", tmp_path, None)
    assert row[:4] == ("skrl", "skrl 2.1.1, gymnasium 1.4.0", "PPO; DQN", "passed")
    assert printed == ""


def test_a_program_that_fails_shows_what_it_printed(program: Path, tmp_path: Path) -> None:
    program.write_text("print('client: gymnasium 1.4.0')\nassert 1 == 2, 'no return'")
    row, printed = clients.run("skrl", tmp_path, None)
    assert row.result == "FAILED"
    assert "no return" in printed


def test_cleanrl_without_its_folder_is_skipped_with_the_reason(tmp_path: Path) -> None:
    row, printed = clients.run("cleanrl", tmp_path, None)
    assert (row.result, printed) == ("skipped: no --cleanrl FOLDER was given", "")


def test_a_version_that_does_not_exist_is_a_failure_and_no_network_is_not() -> None:
    wrong = "ERROR: Could not find a version that satisfies skrl==9 (from versions: 1.0, 2.0)"
    row, printed = clients.refused("skrl", "skrl 9", wrong)
    assert (row.result, printed) == ("FAILED: not installed", wrong)
    row, printed = clients.refused("skrl", "skrl 9", wrong.replace("1.0, 2.0", "none"))
    assert row.result.startswith("skipped: ERROR: Could not find")


def test_a_client_whose_pins_refuse_hpcgym_is_installed_without_what_it_asks_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[list[str]] = []

    def call(*command: str | Path) -> tuple[int, str]:
        calls.append([str(one) for one in command])
        return 0, ""

    monkeypatch.setattr(clients, "_call", call)
    for client in ("skrl", "d3rlpy"):
        (tmp_path / client).mkdir()
        clients._install(client, tmp_path)
    environment, skrl, _, rest, d3rlpy = calls
    assert "venv" in environment
    assert "skrl[torch]==2.1.1" in skrl and "--no-deps" not in skrl
    assert not any("d3rlpy==" in one for one in rest) and "--no-deps" not in rest
    assert rest[-2:] == ["-e", str(clients.ROOT)]
    assert d3rlpy[-2:] == ["--no-deps", "d3rlpy==2.8.1"]


def test_a_new_row_replaces_that_of_its_client_and_a_skipped_one_does_not() -> None:
    text = TABLE
    for row in (
        clients.Row("skrl", "skrl 2.0", "", "skipped: no network"),
        clients.Row("sb3", "stable-baselines3 2.0", "PPO; DQN", "passed", "7"),
        clients.Row("rllib", "ray 2.0", "", "skipped: no network"),
    ):
        text = clients.with_row(text, row)
    assert text.splitlines() == [
        "client,version,what ran,result,s",
        "sb3,stable-baselines3 2.0,PPO; DQN,passed,7",
        "rllib,ray 2.0,,skipped: no network,",
        "skrl,skrl 1.0,PPO,passed,8",
    ]


@pytest.mark.parametrize("result", ["passed", "skipped: no network", "FAILED"])
def test_the_command_prints_why_a_client_failed_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], result: str
) -> None:
    printed = "the last line" if result == "FAILED" else ""
    row = clients.Row("skrl", "skrl 2.0", "", result)
    monkeypatch.setattr(clients, "run", lambda *arguments: (row, printed))
    monkeypatch.setattr(clients, "write", lambda row: None)
    monkeypatch.setattr(sys, "argv", ["check_clients.py", "skrl"])
    check_clients = importlib.import_module("check_clients")
    assert check_clients.main() == (result == "FAILED")
    assert ("the last line" in capsys.readouterr().out) == (result == "FAILED")


def test_every_client_has_a_row_and_a_program() -> None:
    text = clients.TABLE.read_text(encoding="utf-8")
    for client in clients.CLIENTS:
        assert f"\n{client}," in text
        assert clients._program(client).is_file()
