"""The README of the scenarios on the shelf."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any

from hpcgym.core.setting_list import SETTINGS
from hpcgym.scenario import spec
from hpcgym.scenario.load import load_scenario, scenario_names


def scenarios_readme() -> str:
    """Return the README of the shelf `scenarios/`: what a scenario is, and one row for each."""
    lines = [
        "# Scenarios",
        "",
        "Named settings: a log, a machine, how episodes are cut and how the scheduler works, one",
        "`.toml` each. The code that reads them is in `hpcgym/scenario/`.",
        "`python scripts/update_scenarios.py` writes this page.",
        "",
        '`gymnasium.make("HPCBatch-v0", scenario="NAME")` and `hpcgym evaluate --scenario NAME`',
        "take a name of this list, or the path of a file of your own; `hpcgym scenarios info NAME`",
        "shows all that a scenario states.",
        "",
        "| scenario | what it is | episodes | processors | largest request (s) | scheduler |",
        "|---|---|---|---:|---:|---|",
    ]
    for name in scenario_names():
        scenario = load_scenario(name)
        machine = scenario.machine
        lines.append(
            f"| [`{name}`]({name}.toml) | {scenario.description} | "
            f"{describe_episodes(scenario.episode)} | {machine.processors:,} | "
            f"{machine.largest_request_s:,} | {describe_scheduler(scenario)} |"
        )
    lines += [
        "",
        "## Write your own",
        "",
        "Copy the nearest of these files, change it, and name it by its path. A file is read",
        "strictly: a key that is not known, or one that contradicts another, is an error. The",
        "table lists the keys with their defaults. A key without a default is required, except",
        "that a trace has either a name or a file. `hpcgym/scenario/spec.py` explains the keys.",
        "",
        "| table | keys |",
        "|---|---|",
    ]
    for table, cls in _tables().items():
        keys = [_key(one) for one in fields(cls) if one.name not in ("kind", "nodes")]
        lines.append(f"| {table} | {', '.join(keys)} |")
    lines += [
        "",
        "A machine of nodes has `file`, or `nodes` and `partitions`, in place of `processors`;",
        "`docs/machines.md` describes them.",
    ]
    return "\n".join(lines) + "\n"


def _tables() -> dict[str, Any]:
    """Return every table a file may hold, by the heading of its row."""
    kinds = {f'`[episode]`, kind = "{kind}"': cls for kind, cls in spec.EPISODE_KINDS.items()}
    return {
        "`[trace]`": spec.TraceSpec,
        "`[machine]`": spec.MachineSpec,
        **kinds,
        "`[scheduler]`": spec.SchedulerSpec,
    }


def _key(one: Field[Any]) -> str:
    """Return a key with its default, in TOML's spelling."""
    if one.default is MISSING:
        return f"`{one.name}`"
    plain = one.default is not None and not isinstance(one.default, bool)
    text = one.default if plain else str(one.default).lower()
    return f"`{one.name}` ({text})"


def describe_episodes(episode: spec.EpisodeSpec) -> str:
    """Return a few words on how a log is cut into episodes.

    Example:
        >>> describe_episodes(spec.WeekEpisodes(rule="rr9212", weeks="1-45"))
        'weeks 1-45, rule rr9212'
    """
    match episode:
        case spec.WholeEpisode():
            return "the whole log"
        case spec.WeekEpisodes():
            text = "every week" if episode.weeks is None else f"weeks {episode.weeks}"
            if episode.rule != "whole":
                text += f", rule {episode.rule}"
            return text + (f", from {episode.offset_s} s on" if episode.offset_s else "")
        case spec.WindowEpisodes():
            return f"windows of {episode.n_jobs} jobs"
        case spec.RandomWindowEpisodes():
            return f"{episode.episodes} random windows of {episode.n_jobs} jobs"
        case spec.ResampledEpisodes():
            part = "" if episode.part == "whole" else "weeks of "
            return f"{episode.episodes} {part}resampled logs ({episode.mode})"


_SAID = {
    "threshold": "threshold {:,} s",
    "kill_at_limit": "no kill at the limit",
    "estimates": "{} estimates",
    "event_semantics": "{} semantics",
    "placement": "{} placement",
}
"""How a line says a value of a setting; by default the setting's name, then the value."""


def describe_scheduler(scenario: spec.Scenario) -> str:
    """Return a few words on the scheduler of a scenario.

    Example:
        >>> describe_scheduler(load_scenario("tiny"))
        'SAF, EASY'
    """
    chosen = scenario.scheduler
    words = {"easy": "EASY", "none": "no backfilling"}
    parts = [chosen.policy, words.get(chosen.backfill, chosen.backfill)]
    if chosen.backfill_order is not None:
        parts[-1] += f" in {chosen.backfill_order} order"
    for name, setting in SETTINGS.items():
        value = getattr(chosen, setting.key)
        if name not in ("policy", "backfill", "backfill_order") and value != setting.default:
            parts.append(_SAID.get(name, f"{name} {{}}").format(value))
    return ", ".join(parts)
