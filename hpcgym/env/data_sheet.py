"""The data sheet of `HPCBatch-v0`: the docstring of its class, with tables of what there is."""

from hpcgym.env.action import with_action_table
from hpcgym.env.observation import FIELD_TABLES, with_tables
from hpcgym.env.reward import table_of_rewards

_SHEET = """Order the waiting jobs of a cluster, pass by pass, for a backfilling scheduler.

    Description:
        Jobs of a recorded or generated log arrive at a cluster of M identical processors, or at a
        machine of nodes with M cpus. At each
        decision the agent sets the order of the waiting jobs for one scheduling pass. The scheduler
        starts jobs in that order while they fit. It makes a reservation for the first job that does
        not fit (other modes: for more jobs) and backfills behind it. Jobs that have waited beyond
        the scenario's threshold go first, first come first served, whatever the action. The lowest
        score goes first everywhere; ties go by (submit time, position in the log).

    Action Space:
        The keyword `action` chooses one of these; `hpcgym.register_action` adds your own.

        TABLE OF ACTIONS

        q is the processors of a job, e its estimate in s, E the largest request of the scenario in
        s. The base order is that of the scenario's policy (SAF unless it names another).

        Controls change the numbers of a mode: that of the keyword `backfill`, else of the scenario
        if it is a `cost-benefit`, else `"cost-benefit:cap=0.97"`. So zeros are the agent
        URGENT-BENEFIT, or URGENT-OPEN with `overdue=open` in the mode. Until the first decision
        zeros hold.

        | number x in order | formula | at -1 | at 0 | at 1 |
        |---|---|---|---|---|
        | `kappa`, what a gain counts for | kappa (1 + x)^2 | 0 | 0.25 | 1 |
        | `cap`, share of the machine that long jobs may hold | cap 2^x | 0.485 | 0.97 | 1.94 |
        | `long`, expected run time of long jobs, more than, s | long 8^x | 900 | 7200 | 57600 |
        | `urgency` of SMITH-URGENT | 4 (1 + x) | 0 | 4 | 8 |

        Actions about trials need a mode with trial runs: that of the keyword `backfill`, else of
        the scenario if it has them, else that of the agent URGENT-YOUNG. Zeros of `trials` are
        that agent; the first four numbers are as above.

        | number x in order | formula | at -1 | at 0 | at 1 |
        |---|---|---|---|---|
        | `limit` of trials, s, rounded down | limit (1 + x)^2 | 0, none | 300 | 1200 |
        | `kept`, share of the machine that trials leave idle | max(x, 0) | 0 | 0 | 1 |
        | `young`, age up to which jobs give way, s | young (1 + x)^2 | 0, none | 1800 | 7200 |
        | `victim`, share of the machine, their width | min(victim, 1) (1 + x)^2 | 0 | 0.25 | 1 |

    Observation Space:
        A Dict of float32 boxes. With `observation="flat"` one Box of all their
        numbers, in the order `jobs`, `cluster`, `machine` if there is one, `action_mask`, with the
        bounds of each field; `hpcgym.env.observation.flat_places` says where each part is. Every
        number lies in [-1, 1]. Nothing depends on the run time of a job that has not ended. log is
        natural.

        `jobs`: n_slots rows of 18 fields; empty slots are 0. On a machine of nodes a row has 22.
        Three quarters of the slots show the first jobs in SAF order, thresholded ones before them.
        The last quarter shows the oldest of the other jobs.

        TABLE OF JobField

        Fields 9 to 14 are read at the job's submission and do not change while it waits. Fields 15
        to 17 are 0 without the keyword `expectations`. With it they are computed from the records
        of the job's user, or from a regression on all completed jobs, and change whenever one of
        these jobs ends. Their ratio is the expected D / b and their speed the expected b / D, with
        D = max(run time, 10 s) and b = max(e, 10 s), as in
        `hpcgym.core.kernels.scoring.user_estimates`. The index is that of the policies
        SMITH-HISTORY and SMITH-REG. With "urgency" log i is SMITH-URGENT's score, or 0.

        On a machine of nodes four fields follow in each row. Fields 6 and 7 are then about nodes: a
        job fits if the scheduler can place it now, and the shadow time is that of its component,
        the partitions that share nodes with its own.

        TABLE OF NodesField

        `machine`: on a machine of nodes only, the free share of cpus, GPUs and memory in each
        partition, by tier, then as the machine lists them; of at most 8 partitions.

        `cluster`: 19 fields, 29 with actions `controls` and `trials`. squash(x, h) = x / (x + h).

        TABLE OF ClusterField

        With these ten fields follow. D = max(run time, 10 s), and what is expected is
        by the regression.

        TABLE OF ControlsField

        With action `trials` each row of `jobs` and `cluster` have further fields about trials,
        those of `cluster` behind what is above.

        TABLE OF JobTrialField

        TABLE OF TrialField

        Behind these `cluster` has 16 rows of running jobs, those first that have run least by
        processors times age: jobs that may be killed and are not on trial. Rows behind the last
        job are 0.

        TABLE OF RunningField

        With action `price` observations are these alone, `cluster` where they are a dict.

        TABLE OF PriceField

        `action_mask`: n_slots numbers, 1 where a slot holds a job.

        With `observation="small"`, for actions `index`, `weights` and `policy`, all of that is one
        Box of 24 numbers of queue and machine. The classes are of estimates.

        TABLE OF SmallField

        Fields that the keyword `fields` names come last in each row, or last in `cluster`. Beside
        your own there are three of the job's user, as of the begin of the period of the policy that
        goes by usage; without one, of 300 s with a half-life of usage of a week.

        TABLE OF shares

        Where the scenario states limits, a job beyond one is out of sight: it has no slot and
        counts nowhere as waiting.

    Rewards:
        N is the number of jobs in the episode. b_j(t) is the bounded slowdown of job j if it
        started at t. The sum is over the jobs submitted by then.

        TABLE OF rewards
        | a function, arrays | as `"bsld"`, for what waiting costs by rates of your own; \
see `hpcgym.env.reward.as_reward` |

        `"bsld"`, `"bsld_start"` and `"bsld_end"` sum to minus the mean bsld, `"ratio"` to minus
        the agent's mean over SAF's: -1 is SAF. With a `baseline` the rewards sum to baseline minus
        agent: each step subtracts the baseline's own reward over the same interval, and the last
        step subtracts the rest of it. Infos hold both terms. `"user_ratio"` takes no baseline; it
        sums to minus the metric `user_rms_bsld` over SAF's mean bsld, and jobs to come count 1.

    Info:
        Most keys are there when an episode ends, so that steps stay quick.

        | key | when | type | meaning |
        |---|---|---|---|
        | `episode_number` | reset, end | int | number of the episode, which \
`reset(options={"episode": ...})` takes; -1 for jobs that are no episode of the scenario |
        | `action_mask` | always, action `job` | int8, (n,) | `action_masks()`, which \
`action_space.sample(mask)` takes |
        | `agent_term`, `baseline_term` | always, with a `baseline` | float | the two sides of the \
reward, which is their sum |
        | `compared_term` | always, with rewards that compare at the end | float | the reward |
        | `ratio` | end | float | `mean_bsld` over that of SAF on the same jobs |
        | `priced` | end, with the event `price` | float | `ratio`, plus `weight` times the cost \
over that of SAF |
        | `gap_closed` | end, in test weeks of problems whose ends are known | float | this week's \
part of the gap closed, whose mean over these weeks that is: 0 is the best static scheduler, 1 a \
clairvoyant one |
        | `complete` | end | float | 1 where all jobs have started, 0 where a limit cut the \
episode short |
        | `n_jobs`, `mean_wait_time`, `max_wait_time`, `mean_bsld`, `max_bsld`, `mean_pp_bsld`, \
`max_pp_bsld`, `n_backfilled`, `n_thresholded`, `makespan`, `utilisation` | end | float | metrics \
of the schedule |
        | `invalid_actions` | end, action `job` | int | slots that served nothing |

        The attributes `now` and `label` are the clock, s, and the name of the episode. `metrics()`
        returns all metrics at any time, and `schedule()` the schedule.

    Starting State:
        An empty machine at the start of an episode, run to the first decision.
        `reset(seed=...)` draws the episode; `options={"episode": 7}` names it.

    Episode End:
        Terminated when every job has started, or is cancelled. Truncated only by Gymnasium's
        `TimeLimit` around it (`max_episode_steps`), under rewards that pay as waiting accrues.
        Nothing more is paid then, since learners add the value of the last state. In the metrics
        waiting jobs count as if they started at that instant, and `complete` is 0. An episode in
        which no order ever matters ends in its first step.

    Arguments:
        scenario: Name or path of a scenario, a `Scenario`, or its `Episodes`.
        KEYWORDS
        render_mode: `"ansi"`, `"rgb_array"` or `"human"`.

        The scenario's estimates must be known when an episode begins, so "recent" is refused.

    Source: Specification, section 10, and the papers it names.

    Version History:
        v0: First version. A change that could move results makes a new version.
    """

DATA_SHEET = with_tables(with_action_table(_SHEET), FIELD_TABLES | {"rewards": table_of_rewards()})
