"""Compile most kernels of the package in one process, ahead of tests.

    python scripts/compile_kernels.py

A process translates what kernels share once, and each worker of the tests would anew. `hpcgym warm`
compiles what users need on most days; here are all modes, events, orders and kinds of action.
"""

from argparse import ArgumentParser

import hpcgym
from hpcgym.cli.warm import USES
from hpcgym.core import loaders
from hpcgym.core.compiler.by_address import rule_of
from hpcgym.core.compiler.struct import ADDRESS_OF
from hpcgym.core.constants import BACKFILL_PART
from hpcgym.schedule.counterfactual import Branches, first


def main():
    """Use all that needs kernels, what is needed by most first."""
    ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    for use in reversed(USES):
        use()
    for place in range(len(loaders.PARTS)):
        ADDRESS_OF["mode_pass"](BACKFILL_PART + place)
    for order in [*loaders.ORDERS]:
        rule_of(order)
    for kind in loaders.ACTIONS.values():
        ADDRESS_OF["act"](kind.__module__)
    simulator = hpcgym.Simulator(hpcgym.load_workload("tiny"), decide="contested")
    branches = Branches(simulator)
    simulator.run()
    branches.branch([first(job) for job in branches.decisions().jobs])


if __name__ == "__main__":
    main()
