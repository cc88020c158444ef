"""hpcgym: simulate HPC batch schedulers, and learn to schedule, through Gymnasium.

Importing this package registers the environment `HPCBatch-v0`: at once, or as soon as Gymnasium is
imported. Each name below is loaded on first use, so that the import stays fast.
"""

import importlib
import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hpcgym import registry

if TYPE_CHECKING:
    from hpcgym.batch import simulate_many
    from hpcgym.core.action import register_action
    from hpcgym.core.events import register_event
    from hpcgym.core.observation_fields import register_field
    from hpcgym.core.own_backfill import OwnBackfill, register_backfill
    from hpcgym.core.policy import Policy, as_policy, policy_names, register_policy
    from hpcgym.core.settings import SchedulerSettings
    from hpcgym.core.simulator import Simulator
    from hpcgym.core.workload import Workload
    from hpcgym.counterfactual import Branches
    from hpcgym.env.reward import register_reward
    from hpcgym.errors import HpcgymError
    from hpcgym.evaluation import evaluate
    from hpcgym.machine import Machine
    from hpcgym.policies.stateful import StatefulPolicy
    from hpcgym.registry import add_folder
    from hpcgym.scenario import Scenario, load_scenario, scenario_names
    from hpcgym.schedule import Schedule, simulate
    from hpcgym.trace import load_workload

__version__ = "0.1.0"

_HOMES = {
    "Branches": "hpcgym.counterfactual",
    "HpcgymError": "hpcgym.errors",
    "Machine": "hpcgym.machine",
    "OwnBackfill": "hpcgym.core.own_backfill",
    "Policy": "hpcgym.core.policy",
    "Scenario": "hpcgym.scenario",
    "Schedule": "hpcgym.schedule",
    "SchedulerSettings": "hpcgym.core.settings",
    "Simulator": "hpcgym.core.simulator",
    "StatefulPolicy": "hpcgym.policies.stateful",
    "Workload": "hpcgym.core.workload",
    "add_folder": "hpcgym.registry",
    "as_policy": "hpcgym.core.policy",
    "evaluate": "hpcgym.evaluation",
    "load_scenario": "hpcgym.scenario",
    "load_workload": "hpcgym.trace",
    "policy_names": "hpcgym.core.policy",
    "register_action": "hpcgym.core.action",
    "register_backfill": "hpcgym.core.own_backfill",
    "register_event": "hpcgym.core.events",
    "register_field": "hpcgym.core.observation_fields",
    "register_policy": "hpcgym.core.policy",
    "register_reward": "hpcgym.env.reward",
    "scenario_names": "hpcgym.scenario",
    "simulate": "hpcgym.schedule",
    "simulate_many": "hpcgym.batch",
}

__all__ = [
    "Branches",
    "HpcgymError",
    "Machine",
    "OwnBackfill",
    "Policy",
    "Scenario",
    "Schedule",
    "SchedulerSettings",
    "Simulator",
    "StatefulPolicy",
    "Workload",
    "add_folder",
    "as_policy",
    "evaluate",
    "load_scenario",
    "load_workload",
    "policy_names",
    "register_action",
    "register_backfill",
    "register_event",
    "register_field",
    "register_policy",
    "register_reward",
    "scenario_names",
    "simulate",
    "simulate_many",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'hpcgym' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the loaded names and those still to load."""
    return sorted({*globals(), *__all__})


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


importlib.import_module("hpcgym.simulators")  # registers the mode "gang"
importlib.import_module("hpcgym.policies.registration")  # registers DYNP, PLANNER, BANDIT-*
if "gymnasium.envs.registration" in sys.modules:
    importlib.import_module("hpcgym.env.registration")  # registers HPCBatch-v0
else:
    sys.meta_path.insert(0, _WhenGymnasiumIsImported())
registry.PICTURES["schedule"] = lambda: importlib.import_module("hpcgym.report").plot_schedules
