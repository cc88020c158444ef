"""Numbers that kernels and Python agree on: codes of settings, rules, places of terms, sizes."""

NEVER = 2**62  # an instant that does not come, s

FIRST_ENTRY = -2
"""What `Sim.start_time` holds of the waiting job with entry 0; for entry k it is that less k."""

NODE_CHILDREN = 32  # jobs in one block of a queue, and blocks in one group

SIZE_CLASSES = 69
"""Classes of jobs by processors: one each up to 7, then 8-9, 10-11, 12-13, 14-15, 16-19 and so on,
four an octave; the last has no bound."""

# Settings of an episode. The order of two families matters. The first two backfilling modes make
# one reservation at most; decisions beyond `DECIDE_CONTESTED` come at uncontested passes, too.
BACKFILL_NONE, BACKFILL_EASY = 0, 1
BACKFILL_OWN = 2  # Python makes the passes
BACKFILL_PART = 3  # the first mode of `hpcgym.core.loaders.PARTS`, whose kernels are called
SEMANTICS_BATCH, SEMANTICS_PYSS = 0, 1  # as `EventSemantics` lists them; 2 is "one-by-one"
DECIDE_NEVER, DECIDE_CONTESTED, DECIDE_EVENT, DECIDE_INTERVAL = 0, 1, 2, 3
HISTORY_NOT, HISTORY_FOR_KEYS = 0, 1  # users' records: not kept; read at every submission
HISTORY_FOR_OBSERVATIONS, HISTORY_FOR_PREDICTIONS = 2, 3  # read of queued jobs; recorded only
PREDICT_NOT, PREDICT_RECENT, PREDICT_ASKED = 0, 1, 2
CORRECT_NOT, CORRECT_TO_REQUEST, CORRECT_BY_STEPS, CORRECT_BY_DOUBLING = 0, 1, 2, 3
# `PAY_LOG_RATIO` and `PAY_RELATIVE` compare costs with a baseline's, `PAY_BY_USER` those of users.
PAY_AS_ACCRUED, PAY_AT_START, PAY_AT_END, PAY_LOG_RATIO, PAY_RELATIVE, PAY_BY_USER = range(6)

# Where a run of the clock stops, and where it goes on.
STATUS_DONE, STATUS_DECISION, STATUS_PREDICTION, STATUS_OWN_PASS, STATUS_FULL = 0, 1, 2, 3, 4
STATUS_BAD_ACTION, STATUS_STUCK = -100, -101
PHASE_BETWEEN, PHASE_PASS, PHASE_SUBMISSIONS, PHASE_OWN_PASS = 0, 1, 2, 3

# What a pass returns instead of a head: no job waits or fits, or the picked job has started.
NO_HEAD, PICK_STARTED = -1, -2

# Bits of `Sim.flag`; `FLAG_HELD` until the job's delay is over, the others from its start on.
FLAG_BACKFILLED, FLAG_THRESHOLDED, FLAG_HELD, FLAG_CAPPED = 1, 2, 4, 8
# And of jobs that wait: on trial; guaranteed to stay; taken off the machine at this instant.
FLAG_TRIAL, FLAG_GUARANTEED, FLAG_EVICTED = 16, 32, 64
FLAG_NO_RUN = 128  # the job is done, without a useful run
# When a job may come after the one before it, in the order of `hpcgym.core.columns.CONDITIONS`.
AFTER_END, AFTER_SUCCESS, AFTER_FAILURE = 0, 1, 2

# How an attempt ended that was not the job's last, in the order of `schedule.attempts.REASONS`.
TRIAL_OVER, TRIAL_EVICTED, GAVE_WAY = 0, 1, 2
NODE_DOWN = 3
# Columns of `Sim.attempt`.
ATTEMPT_JOB, ATTEMPT_TAKEN, ATTEMPT_SINCE, ATTEMPT_END, ATTEMPT_REASON = 0, 1, 2, 3, 4
N_ATTEMPT_COLUMNS = 5
# What `Jobs.requeue` says of a job: it must not be started again, it may be killed, or events alone
# may take it off the machine. An empty column says the second of all jobs.
NOT_AGAIN, MAY_BE_KILLED, NOT_BY_TRIALS = 0, 1, 2
MOST_KILLS = 9  # most trials of a job that may be killed, and times that it may give way

# Orders. A static one is kept in a queue: the base order always, the backfill order where it is
# another one.
BASE_ORDER, BACKFILL_ORDER, PASS_ORDER = 0, 1, 2
N_ORDERS, N_QUEUES = 3, 2

# Rules that score a job; their parameters are rows of `Sim.weight`.
BY_BASE = -1  # no rule: the base order serves
RULE_WEIGHTS, RULE_SUBMIT, RULE_KEYS = 0, 1, 2
RULE_CALLED = 3  # the first order of `hpcgym.core.loaders.ORDERS`, whose kernels are called
N_WEIGHTS = 9
"""Parameters of a rule: for `RULE_WEIGHTS` the six weights of features, for an index those of all
terms."""
# Parameters of SMITH-URGENT: see `hpcgym.core.index_policy.urgent_policy`.
URGENCY, URGENT_AFTER, URGENT_WITHIN, NARROWEST, WIDEST, CROWDING, MOST_CROWDING = range(7)
USUAL_URGENCY = (4.0, 50_000.0, 150_000.0, 0.1, 0.6, 0.1, 3.0)  # those of SMITH-URGENT

# Columns of `Jobs.feature`: q, e (s) and the submit time (s).
FEATURE_PROCESSORS, FEATURE_ESTIMATE, FEATURE_SUBMIT = 0, 1, 2
N_FEATURES = 3

# How run times are expected, as bits; every kind reads users' records too.
EXPECT_NOTHING, EXPECT_BY_RECORDS, EXPECT_BY_NETWORK, EXPECT_BY_REGRESSION = 0, 0b001, 0b011, 0b101
EXPECT_URGENCY = 0b1101  # by the regression; observations show SMITH-URGENT's score
N_NETWORK_INPUTS = 27  # numbers that the network reads of a job
N_HIDDEN, N_LAST = 32, 16  # units of its two hidden layers
N_NETWORK = N_HIDDEN * (N_NETWORK_INPUTS + 1) + N_LAST * (N_HIDDEN + 1) + 2 * (N_LAST + 1)
"""Its parameters, layer by layer, weights before biases."""

# Terms that an index policy weighs, all natural logarithms: of the processors and the bounded
# estimate; of the expected run-time ratio and speed by users' records, by the network and by the
# regression; and of the ratio by the user's last two jobs.
(
    TERM_PROCESSORS,
    TERM_REQUEST,
    TERM_RUN_TIME_RATIO,
    TERM_SPEED,
    TERM_NETWORK_RUN_TIME_RATIO,
    TERM_NETWORK_SPEED,
    TERM_REGRESSED_RUN_TIME_RATIO,
    TERM_REGRESSED_SPEED,
    TERM_RECENT_RUN_TIME_RATIO,
) = range(N_WEIGHTS)
N_TERMS = N_WEIGHTS
LOG_COMPLETED = N_TERMS  # behind the terms that are kept with a user: log(1 + completed jobs)
N_KEPT_TERMS = N_TERMS + 1
N_REGRESSORS = 8  # numbers that the regression reads of a job

# Columns of `Sim.history_alike`.
ALIKE_COMPLETED, ALIKE_ESTIMATE, ALIKE_REQUEST, ALIKE_PROCESSORS = 0, 1, 2, 3
N_ALIKE = 4

MOST_CLASSES = 8  # classes that multiple-queue backfilling may have
FIRST_BOUND = 5
"""Place of the largest estimate of the first class, s, among the parameters of multiple-queue
backfilling; those of the other classes follow."""
N_BACKFILL_PARAMETERS = 18  # parameters that a backfilling mode may have

# Machines of nodes. Resources of a node, in the columns of `Jobs.capacity` and `Sim.free_on`.
CPUS, GPUS, MEMORY = 0, 1, 2
N_RESOURCES = 3
# Columns of `Jobs.need`: what a chunk needs of each resource, then how the job may be placed.
NEED_SPREAD, NEED_EXCLUSIVE, NEED_PARTITION = 3, 4, 5
# Columns of `Jobs.limit`: most nodes of a job, 0 = no limit; component; rank of the tier among
# those of the component, from 0; cpus of the component; rank of the tier among all.
LIMIT_NODES, LIMIT_COMPONENT, LIMIT_TIER, LIMIT_CPUS, LIMIT_RANK = 0, 1, 2, 3, 4
(
    PLACE_LOWEST,
    PLACE_TIGHTEST,
    PLACE_FEWEST_GROUPS,
    PLACE_CONTIGUOUS,
    PLACE_LOCAL,
    PLACE_BEST_EFFORT_CONTIGUOUS,
    PLACE_BEST_EFFORT_LOCAL,
) = range(7)
N_REACHES = 4  # refusals kept of a request, by how many reservations begin before the job's end
# Columns of `Sim.cursor`: places in the lists of releases, reservations by start and by end; nodes
# touched; chunks that `Sim.row` takes in all; place in `Sim.foreseen`.
CURSOR_RELEASE, CURSOR_START, CURSOR_END, CURSOR_TOUCHED, CURSOR_TOTAL = 0, 1, 2, 3, 4
CURSOR_OUTAGE = 5
N_CURSOR_FIELDS = 6
# What the kernels of a backfilling mode are asked to do, at `Jobs.mode_pass`; but for `MAKE_PASS`
# only where `Sim.hears` has the bit. `hpcgym.core.parts` says what each means. Events, at
# `Jobs.event_pass`, are asked for the last two always.
MAKE_PASS = 0
ON_SUBMIT, ON_START, ON_RELEASE, ON_END, MUST_PLAN, ALL_FIT, SHOW, CHECK = (2**k for k in range(8))
NEXT_INSTANT, ON_INSTANT = 2**8, 2**9
ON_TRIAL_END, AFTER_PASS, SHOW_TRIALS = 2**10, 2**11, 2**12
ON_LOSE, ON_EVICT = 2**13, 2**19  # events only
# What the pass of a component of nodes asks of a mode with a cap or costs, if it hears the first.
IS_BLOCKED, ON_COMPONENT, ADD_COST, PAYS = 2**14, 2**15, 2**17, 2**18
POSTPONE = 2**19  # and of trials, where a start ends some and that takes time
EASY_ON_NODES = ON_TRIAL_END | IS_BLOCKED
"""A mode that hears one of these makes one reservation in each partition, as EASY does."""
PASS_ON_NODES = 2**28  # of a mode: MAKE_PASS on a machine of nodes, too
HAS_CHOSEN = 2**29  # of a mode: whether what goes first is settled
COUNT_COMING = 2**16  # jobs that come now, of an event only
# What the event at `Sim.looks_ahead` is asked besides, as is `MAKE_PASS`.
FITS_AHEAD, RESERVE_AHEAD, FREE_AHEAD = 2**20, 2**21, 2**22
# And what it is asked by modes that make the passes themselves: with a cap or trials.
LOOK_AHEAD, FREE_UNTIL_END, TAKE_AHEAD, HOLD_AHEAD, MORE_AHEAD = (2**k for k in range(23, 28))
# Columns of `Jobs.outage`; the node is -1 where processors are counted.
OUTAGE_FROM, OUTAGE_TO, OUTAGE_PROCESSORS, OUTAGE_ANNOUNCED, OUTAGE_NODE = 0, 1, 2, 3, 4
N_OUTAGE_COLUMNS = 5
# Columns of `Jobs.node_change`; the sign is -1 where an outage begins, 1 where it ends.
CHANGE_TIME, CHANGE_SIGN, CHANGE_NODE, CHANGE_ANNOUNCED = 0, 1, 2, 3
N_CHANGE_COLUMNS = 4
# What the kernel behind `Jobs.nodes_pass` is asked to do.
NODES_PASS, NODES_CONTESTED, NODES_VACATE, NODES_SHOW, NODES_SHOW_JOB, NODES_CHECK = range(6)
# About trials.
NODES_IDLE, NODES_TRY, NODES_TAKE_BACK, NODES_KEEP, NODES_SHARE = range(6, 11)
NODES_CLEAR, NODES_CLEARED = 11, 12
# Bits of what `NODES_SHOW_JOB` returns.
NODES_FITS, NODES_ENDS_BEFORE_SHADOW = 1, 2
N_NODES_FIELDS = 4  # numbers that observations show of a job's request of nodes
MOST_PARTITIONS_SHOWN = 8  # partitions that observations show
