"""The environment `HPCBatch-v0`: wiring of scenario, simulator, observation, action and reward."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hpcgym.core import state as s
from hpcgym.core.episode import state_for
from hpcgym.core.kernels import entry_points
from hpcgym.core.kernels.env.metrics import N_FIGURES
from hpcgym.core.kernels.env.observation import N_CLUSTER, N_FIELDS
from hpcgym.core.rows import sim_of
from hpcgym.core.struct import Struct
from hpcgym.core.workload import Workload
from hpcgym.env.action import ActionKind, Scale, masks_of
from hpcgym.env.config import Wiring
from hpcgym.env.episode import Expectations, Prepared
from hpcgym.env.info import metrics_of
from hpcgym.env.observation import N_SLOTS
from hpcgym.env.reward import Reward
from hpcgym.errors import ActionError, ScenarioError, unknown_name
from hpcgym.scenario.episodes import Episodes
from hpcgym.schedule import Schedule

if TYPE_CHECKING:
    from hpcgym.core.backfill import Backfill
    from hpcgym.env.rendering.viewer import Viewer
    from hpcgym.scenario.spec import Scenario

RENDER_MODES = ("ansi", "rgb_array", "human")

Observation = dict[str, NDArray[np.float32]]


class SchedulingEnv(gymnasium.Env[Observation, Any]):
    """Order the waiting jobs of a cluster, pass by pass, for a backfilling scheduler.

    Description:
        Jobs of a recorded or generated log arrive at a cluster of M identical processors. At each
        decision the agent sets the order of the waiting jobs for one scheduling pass; the scheduler
        starts jobs in that order while they fit, reserves for the first that does not (other modes:
        for more of them), and backfills behind it. Jobs that have waited beyond the scenario's
        threshold go first, first come first served, whatever the action. Lowest score first
        everywhere; ties by (submit time, position in the log). Source: the specification's section
        10 and the papers it names.

    Action Space:
        By `action`:

        | `action` | space | meaning |
        |---|---|---|
        | `"weights"` | Box(-1, 1, (6,)) | weights of (q, e, wait, e/q, (wait+e)/e, e q), \
L1-normalised; zero means FCFS. With `scale="unit"` the features are divided by \
(M, E, T, E, 1 + T/3600, M E) first; T is the threshold, or 3 E |
        | `"policy"` | Discrete(len(policies)) | the policy that orders this pass |
        | `"order"` | Box(-1, 1, (n_slots,)) | a score for each visible job; hidden jobs follow in \
the base order; scores of empty slots are ignored |
        | `"job"` | Discrete(n_slots) | the job that goes first; if it starts, the next decision \
is at the same instant while that is contested; if not, it holds the reservation for this pass. An \
empty slot stands for the first job of the base order and counts in `info["invalid_actions"]` |

        q is the processors, e the request (s), E the scenario's largest request. The base order is
        that of the scenario's policy (SAF unless it says otherwise).

    Observation Space:
        A Dict of one-dimensional float32 boxes, in [-1, 1]; nothing in it depends on the run time
        of a job that has not ended. log is natural.

        `jobs`: n_slots rows of 18 fields, row-major; empty slots are 0. Three quarters of the slots
        show the first jobs in SAF order (thresholded ones before them), the last quarter the oldest
        of the rest.

        | field | meaning | formula | min | max |
        |---|---|---|---|---|
        | 0 `log_estimate` | estimate e, s | log e / log E | 0 | 1 |
        | 1 `log_predicted_time` | predicted time, s (the estimate) | as 0 | 0 | 1 |
        | 2 `processors` | q | q / M | 0 | 1 |
        | 3 `log_area` | area, processor-s | log(e q) / log(E M) | 0 | 1 |
        | 4 `log_wait_time` | wait w, s | log(1 + w/60) / log(1 + 43200), at most 1 | 0 | 1 |
        | 5 `log_wait_by_estimate` | w / e | log(w/e) / log 10^4, clipped; -1 at w = 0 | -1 | 1 |
        | 6 `fits_now` | q <= free processors, and not held by a delay | 0 or 1 | 0 | 1 |
        | 7 `ends_before_shadow` | now + e <= shadow time of the first job in SAF order that does \
not fit, by the jobs now running | 0 or 1; 1 where all fit | 0 | 1 |
        | 8 `is_thresholded` | beyond the threshold | 0 or 1 | 0 | 1 |
        | 9 `user_log_completed` | n, jobs the user has completed | log(1 + n) / log 1001, \
at most 1 | 0 | 1 |
        | 10 `user_log_last_run_time` | run time p of the last of them, s | log max(p, 1) / log E, \
at most 1; -1 = none | -1 | 1 |
        | 11 `user_log_last_but_one_run_time` | of the one before | as 10 | -1 | 1 |
        | 12 `user_mean_run_by_request` | mean of p / request over the last 20 | as it is, at most \
1; -1 = none | -1 | 1 |
        | 13 `user_log_expected_bound` | E[1/D], D = max(p, 10 s), 1/s | -log E[1/D] / log E, at \
most 1 | 0 | 1 |
        | 14 `user_log_recency` | time since the user's last end, s | as 4; -1 = none | -1 | 1 |
        | 15 `log_expected_run_time_ratio` | expected share of the estimate run | log share / \
log E, at least -1 | -1 | 0 |
        | 16 `log_expected_speed` | its expected speed | log speed / log E, at most 1 | 0 | 1 |
        | 17 `log_expected_index` | index i of Smith's rule | log i / log(E^2 M), at most \
1 | 0 | 1 |

        Fields 9 to 14 are read at the job's submission and do not change while it waits. Fields 15
        to 17 are 0 unless the keyword `expectations` asks for them, and change whenever a job of
        its user ends, or any job: share and speed are what the user's records, or a regression that
        learns from all jobs, let expect of D/b and b/D, b = max(e, 10 s), as
        `hpcgym.core.kernels.scoring.user_estimates` says, and the index is q b^2 share / speed,
        that of
        SMITH-HISTORY or SMITH-REGRESSION.

        `cluster`: 19 numbers. squash(x, h) = x / (x + h).

        | field | meaning | formula | min | max |
        |---|---|---|---|---|
        | 0 | free processors | / M | 0 | 1 |
        | 1-8 | free processors by estimate in 5, 15, 30 min, 1, 3, 6, 12, 24 h | / M | 0 | 1 |
        | 9 | processors of the waiting jobs | squash(x, M) | 0 | 1 |
        | 10 | area of the waiting jobs, processor-s | squash(x, 3600 M) | 0 | 1 |
        | 11, 12 | submissions in the last hour, day | squash(x, 10), squash(x, 100) | 0 | 1 |
        | 13, 14 | hour of the week (UTC; of the log where it gives no date) | sin, cos | -1 | 1 |
        | 15 | jobs without a slot | squash(x, n_slots) | 0 | 1 |
        | 16 | their area, processor-s | squash(x, 3600 M) | 0 | 1 |
        | 17, 18 | least and largest area among them | as field 3 of `jobs`; 0 = none | 0 | 1 |

        `action_mask`: n_slots numbers, 1 where a slot holds a job.

    Rewards:
        With N jobs in the episode and b_j(t) what job j's bounded slowdown would be if it started
        at t, summed over the jobs submitted by then:

        | `reward` | pays |
        |---|---|
        | `"bsld"` | -1/N of what the sum has grown by since the last decision |
        | `"bsld_start"` | -b_j / N for each job that has started |
        | `"bsld_end"` | all of it at the end |
        | `"wait"` | as `"bsld"`, for the wait in s |
        | `"pp_bsld"` | as `"bsld"`, for the bounded slowdown per processor |
        | `"ratio"` | as `"bsld"`, in units of the baseline's mean bsld, which it needs |
        | `"log_ratio"` | at the end, -ln(agent / baseline) of the mean bsld |
        | `"relative"` | at the end, (baseline - agent) / max(agent, baseline, 1) |

        The first three sum to minus the mean bsld. With a `baseline` the sum is baseline minus
        agent: the baseline's own reward over the same intervals is taken off, and what it has left
        when the agent is done is paid in the last step. `info["reward_terms"]` shows both sides.

    Starting State:
        An empty machine at the start of an episode drawn by `reset(seed=...)`, run on to its first
        decision; `options={"episode": 7}` names the episode.

    Episode End:
        Terminated when every job has started. Truncated only by Gymnasium's `max_episode_steps`:
        waiting jobs then count as if they started at that instant, and
        `info["metrics"]["complete"]` is False. An episode in which no order ever mattered ends in
        its first step. At the end `info["metrics"]` holds those metrics of the schedule that need
        no sorting (`mean_bsld` and others), `metrics()` all of them, and `schedule()` the schedule.

    Arguments:
        scenario: Name or path of a scenario, a `Scenario`, or its `Episodes`.
        action: See Action Space.
        decide: `"contested"`: at passes where the order can matter; `"event"`: at every pass with
            a waiting job; or every so many seconds (actions `weights` and `policy`), the order
            being made anew by the same rule at each pass in between.
        reward: See Rewards.
        baseline: Policy of the paired baseline; None = no pairing.
        policies: Names a `policy` action chooses among; None = all.
        scale: `"unit"` or `"raw"` features for `weights`.
        n_slots: Visible jobs.
        expectations: By what fields 15 to 17 of `jobs` are expected: "records", those of the user,
            or "regression", which learns from all jobs; a step takes up to twice as long. None =
            they are 0.
        backfill: Backfilling mode in place of the scenario's: `"none"`, `"easy"`,
            `"conservative"`, `"depth:k=3"` ... as `hpcgym.core.backfill` reads it. Where
            reservations are kept (`"conservative:compress=shift"`), every pass with an arrival or
            an early end is a decision, and action `job` is refused.
        backfill_order: Backfill order in place of the scenario's. Of the scenario's estimates those
            serve that are known when an episode begins, so "recent" does not.
        render_mode: `"ansi"`, `"rgb_array"` or `"human"`.

    Version History:
        v0: First version. Whatever could move results makes a new version.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 10}  # noqa: RUF012

    def __init__(
        self,
        scenario: str | Path | Scenario | Episodes = "synthetic-256-weeks",
        *,
        action: ActionKind = "weights",
        decide: str | int = "contested",
        reward: Reward = "bsld",
        baseline: str | None = None,
        policies: Sequence[str] | None = None,
        scale: Scale = "unit",
        n_slots: int = N_SLOTS,
        expectations: Expectations | None = None,
        backfill: str | Backfill | None = None,
        backfill_order: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Wire an environment; the class describes the arguments."""
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ScenarioError(unknown_name("render_mode", render_mode, RENDER_MODES))
        self._wiring = Wiring(
            scenario,
            action=action,
            decide=decide,
            reward=reward,
            baseline=baseline,
            policies=policies,
            scale=scale,
            n_slots=n_slots,
            expectations=expectations,
            backfill=backfill,
            backfill_order=backfill_order,
        )
        self.episodes = self._wiring.episodes
        self.settings = self._wiring.settings
        self.render_mode = render_mode
        self.n_slots = n_slots
        self.action_space = self._wiring.reader.space
        self.observation_space = self._wiring.observation_space
        self._slot = np.full(n_slots, -1, dtype=np.int64)
        self._action_spec = self._wiring.choice()
        self._state: s.State | None = None
        self._prepared: Prepared | None = None
        self._is_over = True
        self._viewer: Viewer | None = None

    # --- One episode ------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode and run to its first decision.

        Args:
            seed: Seed of the episodes drawn from now on.
            options: `{"episode": 7}` or `{"episode": "week 7"}` begins that episode of the
                scenario; `{"workload": jobs}` simulates these jobs on the scenario's machine.

        Returns:
            Observation, and info with `label` (of the episode) and `now` (the clock, s).

        Raises:
            ScenarioError: An unknown option or episode, or jobs for a machine of another size.

        Source:
            Specification, section 10, "Episodes".
        """
        super().reset(seed=seed)
        self._label, self._prepared = self._wiring.draw(options or {}, self.np_random)
        self._make_room(self._prepared)
        jobs, row = self._prepared.jobs.address, self._sim.address
        entry_points.begin(row, self._prepared.episode.start.address)
        entry_points.run(jobs, row)
        self._is_over = False
        shown = self._empty()
        entry_points.observe(
            jobs, row, self._slot, shown["jobs"], shown["cluster"], shown["action_mask"]
        )
        if self.render_mode == "human":
            self.render()
        return shown, {"label": self._label, "now": self.now}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Apply an action to the pass at hand and run to the next decision.

        Args:
            action: A member of the action space.

        Returns:
            Observation, reward, terminated (every job has started), truncated (always False here:
            a horizon is Gymnasium's `max_episode_steps`), and info.

        Raises:
            ActionError: Wrong shape or type, a value out of range or NaN, or the episode is over.

        Source:
            Specification, "Action semantics" and "Reward identity".
        """
        prepared = self._prepared
        if prepared is None or self._is_over:
            raise ActionError("no episode is under way; call reset()")
        index, values = self._wiring.reader.read(action)
        shown = self._empty()
        status = entry_points.step(
            prepared.jobs.address,
            self._sim.address,
            self._action_spec.address,
            prepared.reward_plan.address,
            self._slot,
            index,
            values,
            shown["jobs"],
            shown["cluster"],
            shown["action_mask"],
        )
        if status == s.BAD_ACTION:
            raise ActionError(self._wiring.reader.refuse(action))
        self._is_over = status == s.DONE
        reward, terms = self._payment()
        counter = self._stack.counter
        info = {
            "now": int(counter[0, s.NOW]),
            "reward_terms": terms,
            "invalid_actions": int(counter[0, s.N_INVALID]),
        }
        if self._is_over:
            info |= self._closing()
        if self.render_mode == "human":
            self.render()
        return shown, reward, self._is_over, False, info

    def truncate(self) -> tuple[float, dict[str, Any]]:
        """End the episode at this decision, as a horizon does.

        Returns:
            The reward of the last step with what is still owed, as if the waiting jobs started now;
            and the info that ends an episode, its metrics not `complete`.

        Raises:
            ActionError: No episode is under way.

        Source:
            Specification, section 10: at a truncation all forms of the reward have one sum.
        """
        if self._prepared is None or self._is_over:
            raise ActionError("no episode is under way; call reset()")
        self._is_over = True
        entry_points.pay_at_horizon(self._sim.address, self._prepared.reward_plan.address)
        reward, terms = self._payment()
        return reward, {"reward_terms": terms, **self._closing()}

    def _closing(self) -> dict[str, Any]:
        """Return what the info at the end of an episode says of it."""
        figure = np.empty(N_FIGURES)
        entry_points.measure(self._begun.jobs.address, self._sim.address, figure)
        return {"label": self._label, "metrics": metrics_of(figure)}

    def _payment(self) -> tuple[float, dict[str, float]]:
        """Return the latest reward and its terms."""
        gauge = self._stack.gauge[0]
        terms = gauge[s.AGENT_TERM :].tolist()
        return float(gauge[s.REWARD]), dict(zip(self._wiring.reward_terms, terms, strict=False))

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which slots hold a job, for `job` actions of sb3-contrib's MaskablePPO.

        Returns:
            Shape (n_slots,); the first slot alone where no job waits, since some action must be.

        Source:
            Specification, "Action semantics", `job`.
        """
        return masks_of(self._slot)

    # --- What has come of it ----------------------------------------------------------------------

    @property
    def now(self) -> int:
        """Return the clock, s from the episode's start."""
        return int(self._stack.counter[0, s.NOW])

    @property
    def workload(self) -> Workload:
        """Return the jobs of this episode."""
        return self._begun.episode.workload

    def schedule(self) -> Schedule:
        """Return the schedule made so far.

        Returns:
            The schedule; start -1 where a job has not started.

        Raises:
            ActionError: No episode has begun.

        Source:
            House rule: one record of a schedule behind every face.
        """
        return self._wiring.schedule(self._stack, 0, self._begun)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the schedule made so far.

        Returns:
            As `hpcgym.core.metrics.summary`; jobs that wait count as if they started now.

        Raises:
            ActionError: No episode has begun.

        Source:
            Specification, section 1, "Metrics".
        """
        return self._wiring.metrics(self._stack, 0, self._begun)

    def render(self) -> Any:
        """Show the machine over time, the queue and the head's reservation.

        Returns:
            Text for "ansi", an array (height, width, 3) for "rgb_array", None for "human".

        Raises:
            ActionError: No episode has begun.

        Source:
            House rule: people would rather look than read.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("nothing to render: no render_mode was given")
            return None
        from hpcgym.env.rendering.snapshot import frame_of
        from hpcgym.env.rendering.viewer import Viewer

        made, prepared = self.schedule(), self._begun
        title, table = f"{self.episodes.scenario.name}, {self._label}", prepared.episode.table
        frame = frame_of(title, made, table, self._stack, 0, prepared.jobs, self._sim)
        if self._viewer is None:
            self._viewer = Viewer(self.render_mode, self.metadata["render_fps"])  # type: ignore[arg-type]
        return self._viewer.render(frame)

    def close(self) -> None:
        """Close the window, if one is open."""
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None

    # --- Wiring -----------------------------------------------------------------------------------

    @property
    def _stack(self) -> s.State:
        """Return the state, which the first reset allocates."""
        if self._state is None:
            raise ActionError("no episode has begun; call reset()")
        return self._state

    @property
    def _begun(self) -> Prepared:
        """Return the episode, once one has begun."""
        if self._prepared is None:
            raise ActionError("no episode has begun; call reset()")
        return self._prepared

    def _make_room(self, prepared: Prepared) -> None:
        """Allocate a state that holds the episode, unless the one at hand does."""
        state, workload = self._state, prepared.episode.workload
        if (
            state is None
            or state.start_time.shape[1] < len(workload)
            or state.history_completed.shape[1] < len(workload.history.completed)
        ):
            self._state = state_for([prepared.episode], fields=True)
            self._sim = sim_of(self._state, 0)

    def _empty(self) -> Observation:
        """Make room for an observation."""
        return {
            "jobs": np.zeros(self.n_slots * N_FIELDS, dtype=np.float32),
            "cluster": np.zeros(N_CLUSTER, dtype=np.float32),
            "action_mask": np.zeros(self.n_slots, dtype=np.float32),
        }

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what only this process can hold: windows, and records of kernels."""
        kept = self.__dict__ | {"_viewer": None}
        return {key: value for key, value in kept.items() if not isinstance(value, Struct)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Take hold of state and jobs again the way kernels see them."""
        self.__dict__.update(kept)
        self._action_spec = self._wiring.choice()
        if self._state is not None:
            self._sim = sim_of(self._state, 0)
