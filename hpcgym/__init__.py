"""hpcgym: simulate HPC batch schedulers, and learn to schedule, through Gymnasium.

Importing this package registers the environment `HPCBatch-v0`: at once, or as soon as Gymnasium is
imported. Each name below is loaded on first use, so that the import stays fast.
"""

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hpcgym.base import registry

if TYPE_CHECKING:
    from hpcgym.base.errors import HpcgymError as HpcgymError
    from hpcgym.base.registry import add_folder as add_folder
    from hpcgym.core.action import register_action as register_action
    from hpcgym.core.events import register_event as register_event
    from hpcgym.core.observation_fields import register_field as register_field
    from hpcgym.core.own_backfill import OwnBackfill as OwnBackfill
    from hpcgym.core.own_backfill import register_backfill as register_backfill
    from hpcgym.core.policy import Policy as Policy
    from hpcgym.core.policy import as_policy as as_policy
    from hpcgym.core.policy import policy_names as policy_names
    from hpcgym.core.policy import register_policy as register_policy
    from hpcgym.core.settings import SchedulerSettings as SchedulerSettings
    from hpcgym.core.simulator import Simulator as Simulator
    from hpcgym.core.workload import Workload as Workload
    from hpcgym.env.reward import register_reward as register_reward
    from hpcgym.env.scenario import Scenario as Scenario
    from hpcgym.env.scenario import load_scenario as load_scenario
    from hpcgym.env.scenario import scenario_names as scenario_names
    from hpcgym.evaluation import evaluate as evaluate
    from hpcgym.machine import Machine as Machine
    from hpcgym.schedule.batch import simulate_many as simulate_many
    from hpcgym.schedule.counterfactual import Branches as Branches
    from hpcgym.schedule.policies.stateful import StatefulPolicy as StatefulPolicy
    from hpcgym.schedule.schedule import Schedule as Schedule
    from hpcgym.schedule.simulate import simulate as simulate
    from hpcgym.trace import load_workload as load_workload


__version__ = "0.1.0"

_HOMES = {
    "Branches": "hpcgym.schedule.counterfactual",
    "HpcgymError": "hpcgym.base.errors",
    "Machine": "hpcgym.machine",
    "OwnBackfill": "hpcgym.core.own_backfill",
    "Policy": "hpcgym.core.policy",
    "Scenario": "hpcgym.env.scenario",
    "Schedule": "hpcgym.schedule.schedule",
    "SchedulerSettings": "hpcgym.core.settings",
    "Simulator": "hpcgym.core.simulator",
    "StatefulPolicy": "hpcgym.schedule.policies.stateful",
    "Workload": "hpcgym.core.workload",
    "add_folder": "hpcgym.base.registry",
    "as_policy": "hpcgym.core.policy",
    "evaluate": "hpcgym.evaluation",
    "load_scenario": "hpcgym.env.scenario",
    "load_workload": "hpcgym.trace",
    "policy_names": "hpcgym.core.policy",
    "register_action": "hpcgym.core.action",
    "register_backfill": "hpcgym.core.own_backfill",
    "register_event": "hpcgym.core.events",
    "register_field": "hpcgym.core.observation_fields",
    "register_policy": "hpcgym.core.policy",
    "register_reward": "hpcgym.env.reward",
    "scenario_names": "hpcgym.env.scenario",
    "simulate": "hpcgym.schedule.simulate",
    "simulate_many": "hpcgym.schedule.batch",
}

_MOVED = {
    "hpcgym.accounts": "hpcgym.machine.accounts",
    "hpcgym.agent.ppo": "hpcgym.agent.learn.ppo",
    "hpcgym.counterfactual": "hpcgym.schedule.counterfactual",
    "hpcgym.errors": "hpcgym.base.errors",
    "hpcgym.live": "hpcgym.site.live",
    "hpcgym.policies": "hpcgym.schedule.policies",
    "hpcgym.report": "hpcgym.evaluation.pictures",
    "hpcgym.scenario": "hpcgym.env.scenario",
    "hpcgym.suite": "hpcgym.evaluation.suite",
}
"""Modules by the names they had before the package had rooms: pages and scripts import them."""

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use (PEP 562)."""
    if f"hpcgym.{name}" in _MOVED:
        return importlib.import_module(f"hpcgym.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'hpcgym' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(["__version__", *__all__])


class _MovedModules(MetaPathFinder, Loader):
    """Imports a moved module, or one within it, as the very module of today."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Take the names of the table, and those below them."""
        is_ours = fullname.startswith("hpcgym.")
        return ModuleSpec(fullname, self) if is_ours and _today(fullname) else None

    def exec_module(self, module: ModuleType) -> None:
        """Put today's module in the place of an empty one, as importing allows."""
        sys.modules[module.__name__] = importlib.import_module(_today(module.__name__))


def _today(name: str) -> str:
    """Return where a moved module stands today, "" = it did not move."""
    olds = [old for old in _MOVED if f"{name}.".startswith(f"{old}.")]
    return _MOVED[olds[0]] + name.removeprefix(olds[0]) if olds else ""


class _WhenGymnasiumIsImported(MetaPathFinder):
    """Registers the environment where Gymnasium's registry is imported later than this package.

    Gymnasium takes longer to import than all that a simulation or a list of agents needs.
    """

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """Have the registry's own loader register the environment, too, when it has run."""
        if fullname != "gymnasium.envs.registration" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def execute_and_register(module: Any) -> None:
                execute(module)
                importlib.import_module("hpcgym.env.registration")

            loader.exec_module = execute_and_register
        return spec


sys.meta_path.insert(0, _MovedModules())
importlib.import_module("hpcgym.schedule.registration")  # registers the mode "gang", DYNP, others
if "gymnasium.envs.registration" in sys.modules:
    importlib.import_module("hpcgym.env.registration")  # registers HPCBatch-v0
else:
    sys.meta_path.insert(0, _WhenGymnasiumIsImported())
registry.PICTURES["schedule"] = lambda: (
    importlib.import_module("hpcgym.evaluation.pictures").plot_schedules
)
