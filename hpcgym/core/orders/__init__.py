"""Orders that are called by address, a family a file: functions that score jobs, and policies.

`hpcgym.core.policy.compiled_policy` says what such a function does. `hpcgym.core.loaders.ORDERS`
lists them, each with its policies, which are attributes of the module.
"""
