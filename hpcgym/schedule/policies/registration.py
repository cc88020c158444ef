"""Registers the policies of this room by name; each is loaded when its name is first used."""

from hpcgym.core import loaders

loaders.POLICIES.ship(
    {
        "DYNP": "hpcgym.schedule.policies.dynp:DYNP",
        "PLANNER": "hpcgym.schedule.policies.planner:PLANNER",
        "BANDIT-EPSILON": "hpcgym.schedule.policies.bandit:EPSILON_GREEDY",
        "BANDIT-UCB": "hpcgym.schedule.policies.bandit:UCB",
        "BANDIT-EXP3": "hpcgym.schedule.policies.bandit:EXP3",
    }
)
loaders.FAMILIES.ship({"slurm": "hpcgym.schedule.policies.slurm:SlurmFiles"})
