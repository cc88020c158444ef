"""All that stands on numba's private API: structs, the decorator, kernels on disk, raw memory.

`docs/numba.md` lists what is used of numba, and says what to do when a new version changes it.
"""
