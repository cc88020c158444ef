"""Machines of nodes, and what stands beside one: outages, prices, accounts with shares."""

from hpcgym.machine.machine import (
    LARGEST_NUMBER,
    MOST_NODES,
    Machine,
    NodeType,
    Partition,
    SwfPartitions,
)

__all__ = ["LARGEST_NUMBER", "MOST_NODES", "Machine", "NodeType", "Partition", "SwfPartitions"]
