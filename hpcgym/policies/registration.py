"""Registers the policies of this room by name; each is loaded when its name is first used."""

from hpcgym.core import loaders

loaders.POLICIES.ship(
    {
        "DYNP": "hpcgym.policies.dynp:DYNP",
        "PLANNER": "hpcgym.policies.planner:PLANNER",
        "BANDIT-EPSILON": "hpcgym.policies.bandit:EPSILON_GREEDY",
        "BANDIT-UCB": "hpcgym.policies.bandit:UCB",
        "BANDIT-EXP3": "hpcgym.policies.bandit:EXP3",
    }
)
loaders.FAMILIES.ship({"slurm": "hpcgym.policies.slurm:SlurmFiles"})
