"""All that stands on numba's private API: structs, the decorator, kernels on disk, raw memory.

`docs/performance.md` lists what is used of numba, and what to do when a new version changes it.
"""
