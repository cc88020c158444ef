"""Parts of the scheduler, one noun a file: its class, its state, its kernels.

The file of a backfilling mode has

| what | meaning |
|---|---|
| its class | a subclass of `hpcgym.core.backfill.Backfill`: text, parameters, refusals, source |
| `HEARS` | the moments that its kernels hear of, and what they answer besides: bits of the tasks |
| `BROKEN` | what each negative answer to `CHECK` means, if it hears that |
| a subclass of `Sim` | names of its parameters, and the numbers and arrays that it adds, if any |
| `work(jobs, sim, task, argument)` | does a task, and returns what it finds |

| task | when | argument | returns |
|---|---|---|---|
| `MAKE_PASS` | a pass is due | 1 = the orders of this instant decide | 0 = a pick ended it |
| `ON_SUBMIT` | `moments.at_submit` | the job | |
| `ON_START` | `moments.at_leave` | the job | flags of the job |
| `ON_RELEASE` | `moments.at_release` | the job | |
| `ON_END` | `moments.at_end` | the job | |
| `MUST_PLAN` | before a pass | | 1 = reservations must be made or move, even if no job fits |
| `HAS_CHOSEN` | before a pass | | 1 = what goes first is settled, so that no decision is due |
| `ALL_FIT` | before a pass, where all fit the free processors | | 1 = all may start together |
| `SHOW` | an observation shows controls | the shadow time, s, -1 = all fit | |
| `SHOW_TRIALS` | an observation shows trials | visible jobs, the first in `scratch` | |
| `NEXT_INSTANT` | the clock moves | | the next instant at which it has something to do, s |
| `ON_INSTANT` | at that instant, after ends; a pass follows | | |
| `ON_TRIAL_END` | `moments.at_trial_end` | the job | |
| `AFTER_PASS` | a pass has run to its end | | |
| `CHECK` | after a pass of a debug run | 1 = the pass ran to its end | 0, or what is broken, < 0 |

On a machine of nodes the kernels of nodes make the passes, unless a mode hears `PASS_ON_NODES`:
then it does `MAKE_PASS` there, too.
The module of a mode that takes jobs off the machine says so by `REQUEUES`, so that a simulation
keeps what is known of attempts.
At a reset all numbers of a part are 0; arrays are as they were. The modules are listed in
`hpcgym.core.loaders.PARTS`, the classes in `hpcgym.core.backfill.MODES`. Some modules are no
modes: `hpcgym.core.engine.moments` calls `waiting_cost`, and `trials` calls `trial_fields`,
`young_jobs` and `restart`.
"""
