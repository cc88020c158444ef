"""The settings of the scheduler, said once: name, type, default, meaning, and how others state it.

A field of `SettingList` makes a setting. `SchedulerSettings` has it as an attribute. `simulate` and
`simulate_many`, scenarios, agents, commands, and lines about a scheduler read it from here.
Commands that only list things read it too, so nothing is imported that takes long.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from hpcgym.base.keywords import texts_of

if TYPE_CHECKING:
    from hpcgym.core.backfill import Mode
    from hpcgym.core.events import Event
    from hpcgym.core.policy import AnyPolicy
    from hpcgym.core.predictor import Correction, Estimates

EventSemantics = Literal["batch", "pyss", "one-by-one"]
Dependence = Literal["ignore", "start", "feedback"]


class Setting(NamedTuple):
    """What holds of a setting; the last three are the `metadata` of its field."""

    name: str
    default: Any
    text: str  # its lines in the docstring of `SettingList`
    unit: str = ""  # unit of its number, which is at least 0; keys of scenarios end with it
    in_scenarios: Any = None  # its default there, where that is another
    # Where the card of a rule may state it in place of the scenario: "environment", as a keyword of
    # `HPCBatch-v0`; "parameters", which only evaluations honour; "" = nowhere.
    of_rules: Literal["", "environment", "parameters"] = ""

    @property
    def key(self) -> str:
        """Return its key in a scenario's file."""
        return f"{self.name}_{self.unit}" if self.unit else self.name

    @property
    def brief(self) -> str:
        """Return its first sentence without the full stop, then the texts that it may be."""
        first = " ".join(self.text.split()).partition(": ")[2].partition(". ")[0].rstrip(".")
        return ": ".join([first, ", ".join(re.findall(r'\| "(\S+)"', self.text))]).rstrip(": ")


@dataclass(frozen=True)
class SettingList:
    """How the scheduler works.

    Attributes:
        policy: Order of the waiting jobs, lowest score first. A name such as "SAF", weights as text
            ("q=1,e=0.5") or as six numbers, or a `Policy`; of your own, a function of
            `hpcgym.core.features.Features`, or a `hpcgym.StatefulPolicy`.
        backfill: Which jobs may start ahead of others. Text, or an object of
            `hpcgym.core.backfill`; of your own, an `hpcgym.OwnBackfill`.

            | text | jobs that may start ahead |
            |---|---|
            | "none" | none |
            | "easy" | those that do not delay the first that waits |
            | "easy:cap=0.97" | those of "easy"; long jobs hold 97 % of the machine at most |
            | "depth:k=3" | those that do not delay the first three that wait |
            | "conservative" | those that delay nobody who came before |
            | "multi-queue" | those that do not delay the first that waits of each class |
            | "look-ahead" | of those of "easy" the ones that fill the machine most |
            | "relaxed" | also those that delay the first a little |
            | "slack:c=1" | those that break no promise |
            | "slurm" | those that delay no other that a cycle tests, as in Slurm |
            | "committed" | none; the first that waits is chosen once, and waited for |
            | "cost-benefit" | those whose gain outweighs what their start costs wider jobs |
            | "easy+trial" | those of "easy"; others are tried where processors idle |
            | "gang" | any: jobs take turns on the machine |
            | "recorded" | none: jobs start when the log says that they did |
        backfill_order: Order in which jobs are tried as backfill. For "easy", "depth" and
            "relaxed"; default the primary order.
        threshold: Wait beyond which a job goes first. In s; None = no threshold.
        kill_at_limit: Whether a job ends at its request at the latest, whatever its estimate is.
        estimates: What the scheduler takes run times to be. Text; of your own, a function that
            returns seconds for a job's `hpcgym.core.predictor.Submission`, or an array of seconds
            >= 1, shape (n_jobs,).

            | text | estimates |
            |---|---|
            | "requested" | the users' requests |
            | "doubled" | twice the requests |
            | "exact" | the executed run times p |
            | "f-model:f=3,seed=1" | noise from p to (f + 1) p |
            | "recent" | means of the user's last two completed jobs |
        correction: The estimate of a job that outlives its own.

            | text | new estimate |
            |---|---|
            | "none" | the job ends now |
            | "reqtime" | the request |
            | "tsafrir" | the prediction and 1, 5, 15 ... minutes more |
            | "doubling" | twice the estimate |
        event_semantics: What happens at one instant.

            | text | events |
            |---|---|
            | "batch" | all ends, all submissions, one pass |
            | "pyss" | event by event, as simulators of the pyss family do |
            | "one-by-one" | the same, but processors are free at true ends only |
        dependencies: Whether a job waits for the job before it.

            | text | jobs that are after another |
            |---|---|
            | "ignore" | come when they were submitted |
            | "start" | come then too, and wait out of sight for its end and a think time |
            | "feedback" | come a think time after its end |
        placement: On a machine of nodes, in what order a job takes them.

            | text | nodes |
            |---|---|
            | "lowest" | by id |
            | "tightest" | those with least room first |
            | "fewest-groups" | the smallest group that suffices, else the largest first |
            | "contiguous" | with consecutive ids, else none |
            | "local" | of one group, else none |
            | "best-effort-contiguous" | with consecutive ids, else by id |
            | "best-effort-local" | of one group, else by id |
        events: What happens beside the jobs. Text, several parted by ";", or a sequence of texts
            and of objects of `hpcgym.core.events`, also of your own; "" = nothing.

            | text | event |
            |---|---|
            | "outage" | processors or nodes are down, as in "outage:from=36,to=72,processors=64" |
            | "limit" | each user runs so much at once, as in "limit:per=user,jobs=4" |
            | "limits" | those of a Slurm, as in "limits:assoc.txt,qos.txt" |
    """

    policy: AnyPolicy = field(default="FCFS", metadata={"in_scenarios": "SAF"})
    backfill: str | Mode = field(default="easy", metadata={"of_rules": "environment"})
    backfill_order: AnyPolicy | None = field(default=None, metadata={"of_rules": "environment"})
    threshold: int | None = field(default=None, metadata={"unit": "s"})
    kill_at_limit: bool = True
    estimates: Estimates = field(default="requested", metadata={"of_rules": "parameters"})
    correction: Correction = field(default="none", metadata={"of_rules": "parameters"})
    event_semantics: EventSemantics = "batch"
    dependencies: Dependence = "ignore"
    placement: str = "lowest"
    events: str | Sequence[str | Event] = ""


class SettingKeywords(TypedDict, total=False):
    """The settings besides the policy, as type checkers want them for `**settings`."""

    backfill: str | Mode
    backfill_order: AnyPolicy | None
    threshold: int | None
    kill_at_limit: bool
    estimates: Estimates
    correction: Correction
    event_semantics: EventSemantics
    dependencies: Dependence
    placement: str
    events: str | Sequence[str | Event]


_TEXTS = texts_of(SettingList)
SETTINGS: dict[str, Setting] = {
    listed.name: Setting(listed.name, listed.default, _TEXTS[listed.name], **listed.metadata)
    for listed in fields(SettingList)
}


def settings_of_rules(*tables: str) -> tuple[str, ...]:
    """Return the settings that a rule may state in these tables of its card."""
    return tuple(name for name, setting in SETTINGS.items() if setting.of_rules in tables)
