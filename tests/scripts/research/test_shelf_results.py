"""The figures on the cards are those their commands print."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hpcgym.agent import load_cards
from hpcgym.base.ranges import parse_numbers
from hpcgym.evaluation import evaluate
from research.shelf_results import shelf_results

BUNDLED = "synthetic-256-weeks"


PARTS = 8
EVERYDAY = 4  # this part has an order, a mode, a network and urgency


@pytest.mark.long
@pytest.mark.parametrize(
    "part", [pytest.param(k, marks=() if k == EVERYDAY else pytest.mark.slow) for k in range(PARTS)]
)
def test_every_card_quotes_the_bundled_scenario_and_its_figures_are_current(part: int) -> None:
    cards = dict(list(load_cards().items())[part::PARTS])
    found = shelf_results(cards, BUNDLED, progress=False)
    assert found.keys() == {name for name, card in cards.items() if card.kind != "price"}
    for name, card in cards.items():
        if card.kind == "price":  # the bundled scenario has none
            continue
        quoted = [result for result in card.results if result.scenario == BUNDLED]
        assert quoted == [found[name]], name


@pytest.mark.long
def test_figures_on_a_real_log_are_current(real_log: Callable[[str], Path]) -> None:
    real_log("KTH-SP2-1996-2.1-cln")
    cards = {name: card for name, card in load_cards().items() if name in ("SAF", "SMITH")}
    found = shelf_results(cards, "kth-sp2-weeks", progress=False)
    for name, card in cards.items():
        assert found[name] in card.results


def test_results_without_copies_name_a_command_without_jitter() -> None:
    card = load_cards()["SPF"]
    found = shelf_results({"SPF": card}, "tiny", replicas=0, progress=False)["SPF"]
    assert found.command == "hpcgym evaluate --agents SPF --scenario tiny --jitter 0 --replicas 0"
    plain = evaluate(["SPF"], "tiny", progress=False).summary().set_index("agent")
    assert found.ratio_to_saf == round(plain.loc["SPF", "ratio"], 3)


@pytest.mark.parametrize("name", list(load_cards()))
def test_command_on_a_card_names_what_it_was_run_on(name: str) -> None:
    for result in load_cards()[name].results:
        before, weeks, after = result.command.partition("--weeks ")
        if weeks:  # those that its training leaves open
            numbers, _, after = after.partition(" ")
            assert len(parse_numbers(numbers, range(1, 20_301))) == result.n_weeks
            assert load_cards()[name].training is not None
        assert f"{before}{after}" == (
            f"hpcgym evaluate --agents {name} --scenario {result.scenario} "
            f"--jitter {600 if result.replicas else 0} --replicas {result.replicas}"
        )


def test_finished_weeks_are_kept_and_give_the_same_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = {name: card for name, card in load_cards().items() if name in ("FCFS", "SPF")}
    kept = tmp_path / "kept.sqlite"
    first = shelf_results(cards, BUNDLED, replicas=0, resume=kept, progress=False)
    monkeypatch.setattr("hpcgym.evaluation.runner.Runner.run", None)
    assert shelf_results(cards, BUNDLED, replicas=0, resume=kept, progress=False) == first
