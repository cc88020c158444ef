"""J of weeks with a price, in evaluations: its values, tables, verdict, and the gap closed."""

from dataclasses import replace

import gymnasium
import pytest
from rich.console import Console

import hpcgym
from hpcgym.agent.price import PriceNet
from hpcgym.env.scale import Ends, Scale, scale_of, week_digest
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.evaluation import gap
from hpcgym.evaluation.short_tables import overview, verdict
from hpcgym.evaluation.statistics import mean_of

WEEKS = "20001-20006"
AGENTS = ["SAF", "PRICE-KAPPA", "PRICE-RANK", "PRICE-NET"]


@pytest.fixture(scope="module")
def found():
    """Evaluate rules and the network on six test weeks."""
    return hpcgym.evaluate(AGENTS, "price-weeks", weeks=WEEKS, progress=False)


def shown(table):
    """Return what a wide terminal shows of a table."""
    console = Console(width=160)
    with console.capture() as text:
        console.print(table)
    return text.get()


def test_j_is_slowdown_and_twenty_times_cost_over_those_of_saf(found):
    episodes = Episodes("price-weeks").select(WEEKS)
    frame = found.frame.set_index(["agent", "week"])
    for position, number in enumerate(episodes.numbers):
        saf = hpcgym.simulate(episodes.workload(position), "SAF", events="price:seed=1").metrics()
        for agent in AGENTS:
            row = frame.loc[agent, number]
            parts = (row[key] / saf[key] for key in ("mean_bsld", "energy_cost"))
            bsld, cost = parts
            assert row["priced"] == pytest.approx(bsld + 20 * cost, rel=1e-12)
    less = found.values("PRICE-NET", "priced") - found.values("SAF", "priced")
    assert found.priced["PRICE-NET"] == mean_of(less[:, 0])
    assert found.priced["SAF"].value == 0
    row = found.summary().set_index("agent").loc["PRICE-NET"]
    assert row["priced"] == less.mean()
    assert row["priced_low"] < row["priced"] < row["priced_high"]


def test_the_scale_of_the_shelf_says_what_part_of_the_gap_is_closed(found):
    scale = scale_of("price-weeks", "price")
    assert scale.rule == "PRICE-RANK"
    assert len(scale.weeks) >= 60
    assert scale.has_gap
    assert found.gaps["PRICE-RANK"].value == 0
    j = found.frame.set_index(["agent", "week"])["priced"]
    parts = [scale.weeks[week].static - j["PRICE-NET", week] for week in found.weeks]
    gaps = [ends.static - ends.clairvoyant for week in found.weeks for ends in [scale.weeks[week]]]
    assert found.gaps["PRICE-NET"].value == pytest.approx(sum(parts) / sum(gaps))
    env = gymnasium.make("hpcgym/Price-test-v0")
    net, (shown, _), over, info = PriceNet.read(), env.reset(options={"episode": 20_002}), False, {}
    while not over:
        shown, _, over, _, info = env.step(net.predict(shown)[0])
    assert info["gap_closed"] == pytest.approx(parts[1] / scale.gap[0])


def test_tables_rank_by_j(found):
    names = [row.agent for row in found.ranked()]
    assert names == sorted(AGENTS, key=lambda name: found.priced[name].value)
    text = shown(overview(found))
    assert "J less" in text
    assert f"{found.priced['PRICE-NET'].value:+.3f}" in text
    assert f"{names[0]} has the least J" in text


def test_the_verdict_is_sure_only_beyond_the_intervals(found):
    moved = found.frame.copy()
    is_net = moved["agent"] == "PRICE-NET"
    moved.loc[is_net, "priced"] = moved.loc[moved["agent"] == "SAF", "priced"].to_numpy() - 9
    sure = replace(found, frame=moved)
    told = verdict([sure], sure.ranked())
    assert told == "PRICE-NET has the least J, 9.000 below SAF's (9.000 to 9.000)."
    told = verdict([found], found.ranked())
    assert "but may be no better than" in told


def test_the_gap_closed_is_of_j_where_the_scale_is(found, monkeypatch):
    episodes = Episodes("price-weeks").select(WEEKS)
    frame = found.frame.set_index(["agent", "week"])["priced"]
    ends = {
        number: Ends(
            week_digest(episodes.workload(position)),
            1.0,
            frame["PRICE-RANK", number],
            frame["PRICE-RANK", number] - 2,
        )
        for position, number in enumerate(episodes.numbers)
    }
    texts = dict.fromkeys(("backfill", "settings", "rule", "clairvoyant", "command"), "")
    scale = Scale(
        scenario="price-weeks",
        action="price",
        contest="-",
        metric="priced",
        constant=(0.0, 0.0),
        static="rule",
        training=21.0,
        means={},
        gap=(2.0, 2.0, 2.0),
        weeks=ends,
        **texts,
    )
    monkeypatch.setattr(gap, "scales_of", lambda *_: (scale,))
    agents = {name: hpcgym.agent.load_agent(name) for name in AGENTS}
    gaps = gap.gaps_of(found.frame, agents, episodes)
    closed = (frame["PRICE-RANK"] - frame["PRICE-NET"]).mean() / 2
    assert gaps["PRICE-NET"].value == pytest.approx(closed)
    assert gaps["PRICE-RANK"].value == 0
    assert gaps["SAF"].value == pytest.approx((frame["PRICE-RANK"] - frame["SAF"]).mean() / 2)
