"""Registers policies of this room, and modes with simulators of their own, by name."""

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
loaders.SIMULATORS.ship(
    {"gang": "hpcgym.schedule.gang:Gang", "recorded": "hpcgym.schedule.recorded:Recorded"}
)
loaders.FAMILIES.ship({"slurm": "hpcgym.schedule.policies.slurm:SlurmFiles"})
