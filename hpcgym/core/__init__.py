"""The machine room: job tables, kernels, policies, the simulator; numpy and numba only."""
