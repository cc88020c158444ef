"""Kinds of action, each in one file: its class and its kernel.

The file of a kind has

| what | meaning |
|---|---|
| its class | a subclass of `hpcgym.core.action.Action`: name, size, keywords, refusals |
| `act(jobs, sim, action_spec, slot, index, values)` | takes an action at a decision |

`slot` has the job in each slot, -1 = empty. An action that is a number is `index`, below the size
of the kind; one that is a vector is `values`, each from -1 to 1. The kernel sets the order of the
pass that is due, by the keys of `PASS_ORDER`, or what else lasts until the next decision;
`hpcgym.core.kernels.env.actions` has what kinds share. The files are listed in
`hpcgym.core.loaders.ACTIONS`.
"""
