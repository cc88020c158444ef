"""The numbers of a simulation: settings, what moves, and parameters of the mode."""

from typing import Annotated

from hpcgym.core.compiler.struct import Column

Setting = Annotated[int, Column("setting")]
Counter = Annotated[int, Column("counter")]
Gauge = Annotated[float, Column("gauge")]


class Numbers:
    """Numbers of `Sim`, each a column of the array that its type names; parts add more."""

    # Fixed for an episode.
    n_jobs: Setting
    machine_processors: Setting
    threshold: Setting  # of waits, s, -1 = none
    backfill: Setting  # BACKFILL_*
    hears: Setting  # moments that the mode's part hears of, bits of ON_* and what follows these
    events_hear: Setting  # moments that any event hears of, likewise; 0 = there are no events
    semantics: Setting  # SEMANTICS_*
    base_rule: Setting
    order_rule: Setting  # rule of the primary order, BY_BASE while the base order is the primary
    backfill_rule: Setting  # BY_BASE while the backfill order is the primary order
    decide: Setting  # DECIDE_*
    decide_seconds: Setting
    keep_history: Setting  # HISTORY_*
    keep_reward: Setting
    full_passes: Setting  # 1 = every pass looks at the whole queue, for tests
    check: Setting  # 1 = invariants are checked after every pass
    week_start: Setting  # seconds into the week at time 0
    backfill_order_is_static: Setting  # 1 if time does not change the backfill order
    predict: Setting  # PREDICT_*: what predicts run times while the simulation runs
    correct: Setting  # CORRECT_*: the estimate of a job that outlives its own
    expect: Setting  # bits of EXPECT_*: how run times of jobs are expected
    show_expected: Setting  # EXPECT_*: the expectation that observations show
    placement: Setting  # PLACE_*: in what order nodes are taken
    show_controls: Setting  # 1 = observations show what an action of controls needs
    show_event: Setting  # 1 = observations show what an event shows, and nothing else
    show_trials: Setting  # 1 = observations show what an action about trials needs
    show_small: Setting  # 1 = observations show `SmallField` only
    keep_users: Setting  # 1 = what waiting costs is added up by user, too

    # What moves, in whole numbers.
    now: Counter  # s
    free: Counter  # processors that no job occupies now
    next_job: Counter  # the first job not yet submitted
    n_running: Counter
    n_waiting: Counter
    n_started: Counter
    n_ended: Counter
    n_overdue: Counter  # waiting jobs beyond the threshold
    next_overdue: Counter  # first job not yet looked at for the threshold
    waiting_processors: Counter
    waiting_area: Counter  # processors times estimates of the waiting jobs, s
    phase: Counter  # PHASE_*
    settled_head: Counter  # head under which every waiting job was refused, -1 = full pass due
    shadow: Counter  # the shadow time of the latest reservation, s; EASY sets -1 where none is
    extra: Counter  # processors left over at the shadow time
    ordered: Counter  # 1 while the keys of `PASS_ORDER` are the decided order of this pass
    n_ahead: Counter  # jobs in `scratch` that go by keys of `PASS_ORDER` before all others
    pick: Counter  # job that goes first in this pass and ends it by starting, -1 = none
    pass_due: Counter  # 0 at an instant without events, or whose pass has been made
    n_onsets: Counter
    n_passes: Counter
    n_events: Counter
    n_releases: Counter
    hour_ago: Counter  # first job submitted within the last hour
    day_ago: Counter  # first job submitted within the last day
    sum_waiting: Counter  # waiting jobs summed over passes
    most_waiting: Counter
    checked_head: Counter
    n_steps: Counter  # steps of the environment in this episode
    n_invalid: Counter  # actions that named an empty slot
    n_entries: Counter  # entries ever taken; those not in use are listed in `spare_entry`
    keeps_summary: Counter  # 1 while `age` and `node_*` say what waits, for observations
    replan: Counter  # 1 if a kept reservation may have to move
    n_held: Counter  # jobs that wait for their delay to end, out of sight
    stopped: Counter  # 1 = `run` returns before the next instant; written by another thread
    # Of modes that few use. They come last: then the others fill few lines of the cache.
    next_decision: Counter  # s, next instant of decisions at fixed intervals
    checked_shadow: Counter
    oldest: Counter  # first and last job in `age`, -1 = no job waits
    youngest: Counter
    n_profile: Counter  # steps of the profile, within a pass
    n_predicted: Counter  # jobs that Python has predicted
    nodes_ready: Counter  # 1 once the nodes are empty; 0 after a reset
    next_unseen: Counter  # first job whose submission has not marked its component as due
    n_vacated: Counter  # jobs that gave their nodes back
    n_changes: Counter  # how often a node's free resources changed
    turn: Counter  # row of rooms from which on one is looked for to give away
    n_reservations: Counter  # of the plan, within a pass
    n_planned_nodes: Counter  # entries of `planned_node` in use, within a pass
    refused_state: Counter  # number of the state that `refused_*` is about
    shows_anew: Counter  # 1 = a job was taken off the machine since the latest observation
    event: Counter  # the event that is asked, by its place in `Jobs.event_pass`
    n_trials: Counter  # jobs on trial, which wait, too
    on_trial: Counter  # processors of `free` that trials hold which are not guaranteed
    guaranteed: Counter  # processors of guaranteed trials
    busy: Counter
    """Processors that killed trials hold until their nodes are cleared, or that are down."""
    n_busy: Counter  # killed trials whose processors are not cleared yet
    n_away: Counter  # killed jobs that cannot start again yet
    n_attempts: Counter  # attempts that have ended in vain
    n_begun: Counter  # jobs that the pass at hand has started anew, beside trials
    looks_ahead: Counter
    """Place of the event that makes the passes, plus 1; 0 = none: no known outage is to come."""
    last_outage: Counter  # when the last outage begins, s
    limit_class: Counter  # class of the limit of trials, within an observation
    n_timed: Counter  # completed jobs that `ended_up_to` counts
    n_cancelled: Counter  # jobs that are done without having come, the last ones
    n_foreseen: Counter  # entries of `foreseen` in use
    idle_until: Counter  # when trials that begin now are over, s; 0 but while jobs go on trial
    n_walked: Counter  # jobs in `component_walk` when the pass of a component begins
    delayed: Counter  # job whose reservation a start would delay, within a pass
    delayed_until: Counter  # its shadow time, s
    lacking: Counter  # chunks of it that would lack room then
    n_withheld: Counter  # waiting jobs that limits hold, as they were listed last
    withheld_processors: Counter  # their processors
    withheld_area: Counter  # processors times estimates, s
    spared: Counter  # processors that jobs with long requests must leave free when they start
    spared_by: Counter  # request that these exceed, s

    # What moves, in real numbers.
    rate: Gauge  # reward rate of the waiting jobs, 1/s
    accrued: Gauge  # what the waiting jobs have cost so far
    log_largest: Gauge  # natural logarithm of the scenario's largest request in s
    started_cost: Gauge  # what the started jobs cost in all
    paid: Gauge  # what the rewards so far have paid of the agent's cost
    paid_baseline: Gauge  # and of the baseline's
    reward: Gauge  # the latest reward
    agent_term: Gauge  # its term for the agent, or for the comparison with the baseline
    baseline_term: Gauge  # its term for the baseline

    # Parameters of the mode, of which its part names more. Reservations at most; inf = all jobs'.
    depth: Annotated[float, Column("backfill_parameter", 0)]
    # Without a limit, on nodes: jobs of a component planned in a pass; inf = all.
    planned: Annotated[float, Column("backfill_parameter", 1)]
    # Of trials, or 0 with a cap alone: before a trial or a restart is useful, s.
    overhead: Annotated[float, Column("backfill_parameter", 8)]
    # Where jobs on trial are not promoted: from a kill until a job waits again, s; 0 = they are.
    restart: Annotated[float, Column("backfill_parameter", 17)]
