"""Rewrite the index of the scenarios, `scenarios/README.md`."""

import sys
from dataclasses import MISSING, Field, fields
from typing import Any

from hpcgym.base.errors import HpcgymError
from hpcgym.base.output import writing
from hpcgym.base.registry import shelf_folders
from hpcgym.env.scenario import spec
from hpcgym.env.scenario.load import load_scenario, scenario_names
from hpcgym.env.scenario.splits import SPLITS

PAGE = """\
# Scenarios

Named settings: a log, a machine, how episodes are cut and how the scheduler works, one `.toml`
each, read by `hpcgym/env/scenario/`. `python scripts/update_scenarios.py` writes this page.

`gymnasium.make("HPCBatch-v0", scenario="NAME")` and `hpcgym evaluate --scenario NAME` take a name
of this list, or the path of a file; `hpcgym scenarios info NAME` shows all that a scenario states.

| scenario | what it is | episodes | processors | largest request (s) | scheduler |
|---|---|---|---:|---:|---|
{scenarios}

## Write your own

Copy the nearest of these files, change it, and name it by its path. A file is read strictly: a key
that is not known, or one that contradicts another, is an error. The table lists the keys with their
defaults. A key without a default is required, except that a log has a name, a file or a generator.
`hpcgym/env/scenario/spec.py` explains the keys.

| table | keys |
|---|---|
{tables}

A machine of nodes has `file`, or `nodes` and `partitions`, not `processors`: `docs/machines.md`.
"""


def scenarios_readme() -> str:
    """Return the README of the shelf `scenarios/`: what a scenario is, and one row for each."""
    kinds: dict[str, Any] = {"`[trace]`": spec.TraceSpec, "`[machine]`": spec.MachineSpec}
    kinds |= {f'`[episode]`, kind = "{kind}"': cls for kind, cls in spec.EPISODE_KINDS.items()}
    kinds["`[scheduler]`"] = spec.SchedulerSpec
    tables = []
    for table, cls in kinds.items():
        keys = [_key(one) for one in fields(cls) if one.name not in ("kind", "nodes")]
        tables.append(f"| {table} | {', '.join(keys)} |")
    tables.append("| `[[outage]]`, any number | `from`, `to`, `processors`, `announced` (0) |")
    return PAGE.format(scenarios="\n".join(map(_row, scenario_names())), tables="\n".join(tables))


def _row(name: str) -> str:
    """Return the row of a scenario."""
    found = load_scenario(name)
    return (
        f"| [`{name}`]({name}.toml) | {found.description} | {describe_episodes(found.episode)} | "
        f"{found.machine.processors:,} | {found.machine.largest_request_s:,} | "
        f"{describe_scheduler(found)} |"
    )


def _key(one: Field[Any]) -> str:
    """Return a key with its default, in TOML's spelling."""
    if one.default is MISSING:
        return f"`{one.name}`"
    is_plain = one.default is not None and not isinstance(one.default, bool)
    return f"`{one.name}` ({one.default if is_plain else str(one.default).lower()})"


def describe_episodes(episode: spec.EpisodeSpec) -> str:
    """Return a few words on how a log is cut into episodes."""
    stated = {part: getattr(episode, part, None) for part in SPLITS}
    parts = ", ".join(f"{numbers} ({part})" for part, numbers in stated.items() if numbers)
    match episode:
        case spec.WholeEpisode():
            return "the whole log"
        case spec.WeekEpisodes() if parts:
            return f"weeks {parts}"
        case spec.WeekEpisodes():
            text = f"weeks {episode.weeks}" if episode.weeks else "every week"
            text += f", rule {episode.rule}" if episode.rule != "whole" else ""
            return text + (f", from {episode.offset_s} s on" if episode.offset_s else "")
        case spec.WindowEpisodes():
            return ", ".join(filter(None, [f"windows of {episode.n_jobs} jobs", parts]))
        case spec.RandomWindowEpisodes():
            return f"{episode.episodes} random windows of {episode.n_jobs} jobs"
        case spec.ResampledEpisodes():
            logs = "weeks of resampled logs" if episode.part == "week" else "resampled logs"
            return f"{episode.episodes} {logs} ({episode.mode})"


def describe_scheduler(scenario: spec.Scenario) -> str:
    """Return a few words on the scheduler of a scenario, with all that is unusual."""
    chosen, words = scenario.scheduler, {"easy": "EASY", "none": "no backfilling"}
    order = "" if chosen.backfill_order is None else f" in {chosen.backfill_order} order"
    parts = [chosen.policy, words.get(chosen.backfill, chosen.backfill) + order]
    parts += [] if chosen.threshold_s is None else [f"threshold {chosen.threshold_s:,} s"]
    parts += [] if chosen.kill_at_limit else ["no kill at the limit"]
    parts += [] if chosen.estimates == "requested" else [f"{chosen.estimates} estimates"]
    parts += [] if chosen.correction == "none" else [f"correction {chosen.correction}"]
    parts += [] if chosen.placement == "lowest" else [f"{chosen.placement} placement"]
    parts += [] if chosen.event_semantics == "batch" else [f"{chosen.event_semantics} semantics"]
    return ", ".join([*parts, *filter(None, [chosen.events])])


def main() -> int:
    """Write the page."""
    try:
        with writing(shelf_folders("scenarios")[0] / "README.md", force=True) as file:
            file.write_text(scenarios_readme(), encoding="utf-8")
    except HpcgymError as error:
        sys.exit(f"update_scenarios: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
