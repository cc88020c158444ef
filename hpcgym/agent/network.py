"""Networks as agents, computed in numpy; their weights are a `.npz` file.

A network treats the visible jobs alike in every slot. A job's fields x and the
cluster's fields c become h = relu(x A + c B + b), and after further layers a number f.

- `order`, `job`: each job scores ln(1 / start) + bound tanh(f), where start is the job's area (SAF)
  or its index of SMITH-HISTORY, SMITH-REG or SMITH-URGENT. An untrained network is its start.
  Training never moves a job by more than a factor exp(bound) of area or index.
- `index`, `weights`, `policy`, `controls`, `trials`, `price`: f is computed from the mean of h over
  the jobs, and the action is the start's plus bound tanh(f). Weights and policy start at a rule,
  the others at zeros. Of a price no jobs are shown: h is that of the cluster alone.

As `order`, an untrained network reproduces SAF job by job, since slots are in SAF's order. It
reproduces an index except where two jobs' indexes differ by less than 2e-6 of their value, the
resolution of float32: such jobs go in the order of slots. Jobs without a slot follow by area. As
`job`, the jobs behind the one that is picked are backfilled in the scenario's order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hpcgym.agent.base import Observation
from hpcgym.agent.npz import NpzFile, write_npz
from hpcgym.base.errors import CardError, unknown_name
from hpcgym.core.action import kind_of
from hpcgym.env.observation import FIELDS, Expectations, fields_of

Chosen = Literal["index", "weights", "policy", "order", "job", "controls", "trials", "price"]
"""Kinds of action that networks choose."""

Start = Literal["saf", "smith-history", "smith-reg", "smith-urgent"]

FORMAT = {"index": 3}  # of files, else 2; it grows whenever the same weights would act differently
FORMER = {"spec.network", "spec.heads"}  # what files also stated; there is one network now

STARTS: dict[str, tuple[int, float]] = {
    "saf": (FIELDS.index("log_area"), 16.0),
    "smith-history": (FIELDS.index("log_expected_index"), 28.0),
    "smith-reg": (FIELDS.index("log_expected_index"), 28.0),
    "smith-urgent": (FIELDS.index("log_expected_index"), 28.0),
}
"""The initial score of a network that scores jobs: a field in [0, 1] and its factor.

The factors are about ln(E M) and ln(E^2 M) of most machines, so that scores are natural logarithms
of areas or of the index."""

FROM_ZERO = ("index", "controls", "trials", "price")  # actions whose zeros are the start
EMPTY = np.float32(-1e9)  # score of a slot without a job

Floats = NDArray[np.float32]
Weights = dict[str, Floats]


@dataclass(frozen=True)
class NetworkSpec:
    """The architecture of a network.

    Raises:
        CardError: A number out of range, or a name that is not known.

    Source: Zhang et al. 2020 (RLScheduler, SC20), the kernel network; specification, section 10,
    design G.
    """

    action: str
    n_slots: int  # visible jobs
    # Numbers of an action that is a vector, or policies of a `policy` action; 0 for scores of jobs.
    n_outputs: int = 0
    # What an untrained network does: "saf", or Smith's rule by users' records, "smith-history", or
    # by the regression, "smith-reg", or with urgency, "smith-urgent"; `weights` takes "saf" only.
    # For `index`, `controls` and `trials` it only decides what observations expect run times by.
    start: str = "saf"
    start_output: int = 0  # which of those outputs is the start's; 0 for scores of jobs
    hidden: int = 32  # width of a layer
    layers: int = 2  # layers, >= 1
    # How far tanh(f) may move a score, in natural logarithms, or an action, in its units.
    bound: float = 4.0
    # Whether f corrects the start; else f alone is the output, without a bound.
    residual: bool = True
    temperature: float = 0.5  # what scores are divided by before actions are sampled by them

    def __post_init__(self) -> None:
        for key, allowed in (("action", Chosen), ("start", Start)):
            if getattr(self, key) not in get_args(allowed):
                raise CardError(unknown_name(key, getattr(self, key), get_args(allowed)))
        least = {"n_slots": 2, "hidden": 1, "layers": 1}
        least["n_outputs"] = 0 if self.scores_jobs else 1
        most = {"n_slots": 2**20, "n_outputs": 2**12, "hidden": 2**10, "layers": 2**5}
        for key, lowest in least.items():
            if getattr(self, key) < lowest:
                raise CardError(f"{key} must be at least {lowest}, got {getattr(self, key)}")
            if getattr(self, key) > most.get(key, math.inf):
                raise CardError(f"{key} must be at most {most[key]}, got {getattr(self, key)}")
        if self.action == "weights" and self.start != "saf":
            raise CardError(f"weights of features start at 'saf', got {self.start!r}")
        if not (0 < self.bound < math.inf and 0 < self.temperature < math.inf):
            raise CardError(
                "bound and temperature must be finite and above 0, got "
                f"{self.bound} and {self.temperature}"
            )

    @property
    def expectations(self) -> Expectations | None:
        """Return the keyword of the environment that the start needs."""
        needed: dict[str, Expectations] = {
            "smith-history": "records",
            "smith-reg": "regression",
            "smith-urgent": "urgency",
        }
        return needed.get(self.start)

    @property
    def scores_jobs(self) -> bool:
        """Return whether each job has a score, rather than all of them one action."""
        return self.action in ("order", "job")

    @property
    def draws_numbers(self) -> bool:
        """Return whether an action is a vector of numbers, drawn around the network's output."""
        return self.action in ("weights", *FROM_ZERO)

    @property
    def n_fields(self) -> tuple[int, int]:
        """Return how many fields it reads of each job, and of the cluster."""
        kind = kind_of(self.action)
        if kind.FIELDS is not None:
            return 0, len(kind.FIELDS)
        of_job, of_cluster = fields_of(controls=kind.SHOWS_CONTROLS, trials=kind.SHOWS_TRIALS)
        return len(of_job), len(of_cluster)

    @property
    def head_start(self) -> NDArray[np.float32]:
        """Return the outputs of an untrained network that corrects its start, one for each."""
        lead = np.zeros(self.n_outputs, np.float32)
        if self.action not in FROM_ZERO:
            lead[self.start_output] = 1.0  # over other policies, or as the weight of the area
        return lead

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each array of weights, by its name."""
        (n_of_job, n_of_cluster), width = self.n_fields, self.hidden
        shapes: dict[str, tuple[int, ...]] = {
            "jobs.weight": (n_of_job, width),
            "cluster.weight": (n_of_cluster, width),
            "jobs.bias": (width,),
        }
        for name in (f"layer{layer}" for layer in range(1, self.layers)):
            shapes |= {f"{name}.weight": (width, width), f"{name}.bias": (width,)}
        n_outputs = 1 if self.scores_jobs else self.n_outputs
        shapes |= {"output.weight": (width, n_outputs), "output.bias": (n_outputs,)}
        if self.draws_numbers:
            shapes["log_std"] = (n_outputs,)
        return shapes


@dataclass(eq=False)
class NetworkAgent:
    """A network that chooses actions, without torch.

    Raises:
        CardError: Weights that are not those of the network, or not finite.
    """

    spec: NetworkSpec
    weights: Weights  # its weights, by the names of `NetworkSpec.shapes`
    seed: int = 0  # seed of the actions that are sampled; the best ones need none
    _generator: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shapes = self.spec.shapes
        for name in self.weights:
            if name not in shapes:
                raise CardError(unknown_name("array of weights", name, shapes))
        for name, shape in shapes.items():
            if name not in self.weights:
                raise CardError(f"array of weights {name!r} is missing")
            array = self.weights[name]
            if array.dtype != np.float32 or array.shape != shape:
                raise CardError(
                    f"weights {name!r} must be float32 of shape {shape}, got {array.dtype} of "
                    f"{array.shape}"
                )
            if not np.isfinite(array).all():
                raise CardError(f"weights {name!r} hold numbers that are not finite")
        self._generator = np.random.default_rng(self.seed)

    def predict(
        self,
        observation: Observation,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[Any], tuple[NDArray[Any], ...] | None]:
        """Choose an action, or one for each of a batch; arguments and results as `Agent.predict`.

        All ranks of an `order` are sampled; a training by PPO draws only the first `n_ranked`.

        Raises:
            CardError: An observation of another number of slots.
        """
        if not isinstance(observation, Mapping):
            raise CardError("a network sees an observation of HPCBatch-v0, a dict of arrays")
        shown = {key: np.asarray(array, np.float32) for key, array in observation.items()}
        is_batch = shown["cluster"].ndim == 2
        n_slots = shown["action_mask"].shape[-1] if self.spec.n_fields[0] else self.spec.n_slots
        if n_slots != self.spec.n_slots:
            raise CardError(
                f"the agent sees {self.spec.n_slots} slots, the environment shows {n_slots}; make "
                f"it with n_slots={self.spec.n_slots}"
            )
        output = self.output(shown if is_batch else {key: a[None] for key, a in shown.items()})
        action = self._action(output, deterministic)
        return (action if is_batch else action[0, ...]), state

    def output(self, shown: Mapping[str, Floats]) -> Floats:
        """Compute the network's output for a batch of observations.

        Returns:
            Scores of jobs, highest first, shape (n_envs, n_slots), `EMPTY` where there is none; or
            the best action (of `policy`, the scores of all), shape (n_envs, n_outputs).

        Source: Specification, section 10, design G.
        """
        spec, weights = self.spec, self.weights
        n_of_job, n_of_cluster = spec.n_fields
        if n_of_job:
            is_job = shown["action_mask"] > 0.5
            jobs = shown["jobs"].reshape(len(is_job), spec.n_slots, -1)
        else:  # each observation is one job without fields
            is_job = np.ones((len(shown["cluster"]), 1), dtype=np.bool_)
            jobs = np.zeros((len(is_job), 1, 0), dtype=np.float32)
        n = max(int(is_job.sum(axis=1).max(initial=0)), 1)  # jobs are in the first slots
        # Networks do not read the further fields of machines of nodes, nor those of a user's own.
        jobs = jobs[:, :n, :n_of_job]
        h = self._encoded(jobs, shown["cluster"][:, :n_of_cluster])
        if not spec.scores_jobs:
            count = np.maximum(is_job.sum(axis=1, keepdims=True), 1).astype(np.float32)
            h = np.where(is_job[:, :n, None], h, np.float32(0.0)).sum(axis=1) / count
        f: Floats = h @ weights["output.weight"] + weights["output.bias"]
        if spec.residual:
            f = np.float32(spec.bound) * np.tanh(f)
        if not spec.scores_jobs:
            if spec.residual:
                f += spec.head_start
            return f
        f = f[:, :, 0]
        if spec.residual:
            column, scale = STARTS[spec.start]
            f -= np.float32(scale) * jobs[:, :, column]
        scores = np.full(is_job.shape, EMPTY)
        scores[:, :n] = np.where(is_job[:, :n], f, EMPTY)
        return scores

    def _encoded(self, jobs: Floats, cluster: Floats) -> Floats:
        """Return the hidden values of each job, shape (n_envs, n, hidden)."""
        weights = self.weights
        of_cluster = cluster @ weights["cluster.weight"] + weights["jobs.bias"]
        h = np.maximum(jobs @ weights["jobs.weight"] + of_cluster[:, None], np.float32(0.0))
        for layer in range(1, self.spec.layers):
            h = h @ weights[f"layer{layer}.weight"] + weights[f"layer{layer}.bias"]
            h = np.maximum(h, np.float32(0.0))
        return np.asarray(h)

    def _action(self, output: Floats, deterministic: bool) -> NDArray[Any]:
        """Turn the network's output into actions."""
        if self.spec.draws_numbers:
            if not deterministic:
                noise = self._generator.standard_normal(output.shape).astype(np.float32)
                output = output + noise * np.exp(self.weights["log_std"])
            return np.clip(output, np.float32(-1.0), np.float32(1.0))
        if not deterministic:
            scale = self.spec.temperature if self.spec.scores_jobs else 1.0
            noise = self._generator.gumbel(size=output.shape).astype(np.float32)
            output = output / np.float32(scale) + noise
        if self.spec.action == "order":
            return ranks_as_action(output)
        return np.asarray(output.argmax(axis=1))


def ranks_as_action(scores: NDArray[Any]) -> Floats:
    """Return scores as an `order` action: -1 for the highest to 1 for the lowest, in even steps.

    Both have shape (n_envs, n_slots); ties go to the earlier slot.

    Example:
        >>> ranks_as_action(np.array([[0.1, 0.9, 0.1]])).tolist()
        [[0.0, -1.0, 1.0]]
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(scores.shape[1])[None], axis=1)
    return np.asarray(2.0 * rank / (scores.shape[1] - 1) - 1.0, dtype=np.float32)


def write_network(agent: NetworkAgent, path: str | Path, *, force: bool = False) -> None:
    """Write an agent's network as named arrays, without pickles, to a `.npz` file.

    Raises:
        OutputError: The file cannot be written, or is there and `force` is False.
    """
    stated = {
        f"spec.{declared.name}": getattr(agent.spec, declared.name)
        for declared in fields(NetworkSpec)
    }
    arrays: dict[str, Any] = {"format": np.array(FORMAT.get(agent.spec.action, 2))}
    arrays |= {key: np.array(value) for key, value in stated.items()} | agent.weights
    write_npz(path, arrays, force=force)


def read_network(path: str | Path) -> NetworkAgent:
    """Read the agent of a network that `write_network` has written.

    The architecture is read first, so that no array is unpacked that is larger than it says.

    Raises:
        CardError: No such file, another format, an array that is missing, unknown, pickled, or of
            another type or shape; the message names the file and the array.
    """
    file = NpzFile(path)
    stated = {"format", *(f"spec.{declared.name}" for declared in fields(NetworkSpec))}
    arrays = {name: file.array(name) for name in file.names if name in stated}
    try:
        spec = _spec_of(arrays)
        shapes = spec.shapes
        allowed = stated | FORMER | shapes.keys()
        if unknown := [name for name in file.names if name not in allowed]:
            raise CardError(unknown_name("array of weights", unknown[0], shapes))
    except CardError as error:
        raise CardError(f"{path}: {error}") from None
    there = [name for name in shapes if name in file.names]
    weights = {name: file.array(name, 4 * math.prod(shapes[name])) for name in there}
    try:
        return NetworkAgent(spec, weights)
    except CardError as error:
        raise CardError(f"{path}: {error}") from None


def _spec_of(arrays: dict[str, NDArray[Any]]) -> NetworkSpec:
    """Return the architecture that a file states."""
    version, action = _stated(arrays, "format", "int"), _stated(arrays, "spec.action", "str")
    if version != (known := FORMAT.get(action, 2)):
        raise CardError(f"format is {version}; this hpcgym reads {known} of action {action!r}")
    types = {declared.name: str(declared.type) for declared in fields(NetworkSpec)}
    return NetworkSpec(**{key: _stated(arrays, f"spec.{key}", kind) for key, kind in types.items()})


def _stated(arrays: dict[str, NDArray[Any]], name: str, kind: str) -> Any:
    """Return one stated value of a file."""
    if name not in arrays:
        raise CardError(f"{name} is missing")
    array = arrays[name]
    letters = {"int": "i", "float": "f", "str": "U", "bool": "b"}[kind]
    if array.shape != () or array.dtype.kind not in letters:
        raise CardError(f"{name} must be one {kind}, got {array.dtype} of shape {array.shape}")
    return array.item()
