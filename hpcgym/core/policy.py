"""Policies: rules that order the waiting jobs, by name, weights, formula, keys or choice.

Policies that the rooms above add are known by name through `hpcgym.core.loaders`.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcgym.base import plugins
from hpcgym.base.errors import PolicyError, unknown_name
from hpcgym.core import constants as s
from hpcgym.core import loaders
from hpcgym.core.features import FEATURES, Features, normalised, weights_of
from hpcgym.core.part_text import read_part

if TYPE_CHECKING:
    from hpcgym.core.events import Event
    from hpcgym.core.kernels.types import Jobs
    from hpcgym.core.workload import Workload


COMPILED_IN = WEIGHTS, SUBMIT, KEYS = "weights", "submit", "keys"
"""Orders that every simulation has: mixed weights, the submit time, one key per job."""

Formula = Callable[[Features], ArrayLike]
KeyMaker = Callable[["Workload"], ArrayLike]
Score = Callable[["Jobs", Any, int, int], None]


class ChooserRun(ABC):
    """A chooser in one simulation, with what it remembers; it is copied with the simulation."""

    @abstractmethod
    def choose(self, simulator: Any) -> Policy | NDArray[np.float64]:
        """Choose the order of the queue at a decision of a `hpcgym.core.simulator.Simulator`.

        Returns:
            A policy with a compiled rule, which holds from now on. Where decisions are for one
            pass, it may be a key for each job in `simulator.waiting` instead, lowest first.
        """


class Chooser(ABC):
    """A policy that chooses a rule now and again.

    Attributes:
        decide: When it chooses. "event": at every pass with a waiting job, for that pass.
            "contested": at every pass where the order can matter, for that pass. A number: at
            intervals of so many s, until the next.
        plans: Whether it rolls the simulation out.
        expects: The expectations that it reads, bits of `EXPECT_*`.
    """

    decide: str | int = "event"
    plans: ClassVar[bool] = False
    expects: ClassVar[int] = s.EXPECT_NOTHING

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the name that tables show."""

    @abstractmethod
    def begin(self) -> ChooserRun:
        """Return a run that remembers nothing."""


@dataclass(frozen=True, eq=False)
class Policy:
    """A rule that orders the waiting jobs: lowest score first, ties by (submit, position).

    Order `KEYS` has one of keys, formula and chooser; an index may have a network.

    Attributes:
        name: Name, as tables show it.
        order: One of `COMPILED_IN`, or the function that scores, itself or as "module:name".
        parameters: Its parameters, shape (N_WEIGHTS,).
        source: Where the rule comes from.
        keys: Makes one key per job of a workload.
        formula: Scores the waiting jobs at each contested pass, in Python.
        chooser: Chooses a rule now and again, in Python.
        network: Parameters of a network that expects run times, shape (N_NETWORK,).
        is_static: Whether a job's score is the same at every instant.
        expects: The expectations that it reads, bits of `EXPECT_*`.
        needs_history: Whether users' completed jobs must be recorded, as expectations need.
        constant: Makes what an order that is called adds to each job's score; it finds this in
            `Jobs.keys`, column 0, as the backfill order column 1.
        keeps: An event that keeps what the order goes by, of all that happens in a simulation.
    """

    name: str
    order: str | Score
    parameters: NDArray[np.float64]
    source: str = ""
    keys: KeyMaker | None = None
    formula: Formula | None = None
    chooser: Chooser | None = None
    network: NDArray[np.float64] | None = None
    is_static: bool = True
    expects: int = s.EXPECT_NOTHING
    needs_history: bool = False
    constant: KeyMaker | None = None
    keeps: Event | None = None

    def __post_init__(self) -> None:
        if self.expects:
            object.__setattr__(self, "needs_history", True)

    @property
    def is_python(self) -> bool:
        """Tell whether it orders the queue in Python, at decisions of the simulator."""
        return self.formula is not None or self.chooser is not None

    @property
    def is_own_order(self) -> bool:
        """Tell whether it can only be the order that a simulation has from its beginning."""
        return self.constant is not None or self.keeps is not None

    @property
    def demands(self) -> dict[str, str]:
        """Return `hpcgym.core.pairs.Part.demands`."""
        made: dict[str, str] = {}
        if self.keeps is not None:
            made |= {"backfilling": "", "instants": ""}
        if self.chooser is not None:
            made["a compiled order"] = ""
        if self.chooser is not None and self.chooser.plans:
            about = {"counts": "plans with counts of processors"}
            made |= dict.fromkeys(("no events", "no memory", "instants"), "") | about
            made["no records" if self.expects else "no expectations"] = ""
        return made

    @property
    def lacks(self) -> dict[str, str]:
        """Return `hpcgym.core.pairs.Part.lacks`."""
        made: dict[str, str] = {}
        if self.keeps is not None:
            made["trials"] = "which knows no trials"
        if self.is_python or not self.is_static:
            made["restart"] = "which changes with time; choose one like 'FCFS' or 'SAF'"
        if self.chooser is not None:
            made["waits"] = "which chooses as it goes"
        return made

    @property
    def rule(self) -> int:
        """Return what kernels call its order, whose own kernel is compiled, or loaded, first."""
        if self.order in COMPILED_IN:
            return COMPILED_IN.index(str(self.order))
        from hpcgym.core.compiler.by_address import rule_of

        return rule_of(self.order)

    def __repr__(self) -> str:
        return f"Policy({self.name!r})"


AnyPolicy: TypeAlias = (
    str | Policy | Chooser | type[Chooser] | Formula | Sequence[float] | NDArray[np.float64]
)
"""Whatever `as_policy` takes."""


def _parameters(*values: float) -> NDArray[np.float64]:
    """Pad the parameters of a rule to the length the kernels expect."""
    row = np.zeros(s.N_WEIGHTS)
    row[: len(values)] = values
    row.flags.writeable = False
    return row


def _vertex(name: str, feature: str, sign: float) -> Policy:
    """Return a pure policy: a vertex of the weights' unit ball."""
    if feature == "wait":  # longest first
        return Policy(name, SUBMIT, _parameters(sign), "RR-9212, section 4.2")
    weights = [sign if other == feature else 0.0 for other in FEATURES]
    return replace(_weighted(name, weights), source="RR-9212, section 4.2")


def _weighted(name: str, weights: Sequence[float]) -> Policy:
    """Return a policy by six weights, static if none is of the wait or the expansion factor."""
    is_static = weights[2] == weights[4] == 0.0
    source = "RR-9212, equation 3"
    return Policy(name, WEIGHTS, _parameters(*weights), source, is_static=is_static)


_POLICIES: loaders.ByName[Policy] = loaders.ByName(
    "policy",
    PolicyError,
    {
        name: _vertex(name, feature, sign)
        for feature, names in {
            "wait": ("FCFS", "LCFS"),
            "e": ("SPF", "LPF"),
            "q": ("SQF", "LQF"),
            "area": ("SAF", "LAF"),
            "rho": ("SRF", "LRF"),
            "exp": ("SEXP", "LEXP"),
        }.items()
        for name, sign in zip(names, (1.0, -1.0), strict=True)
    },
)
_PURE = _POLICIES.shipped


def policy_names() -> tuple[str, ...]:
    """Return the name of every policy, in the specification's order, then those registered."""
    return tuple(dict.fromkeys((*_PURE, *loaders.POLICIES, *_POLICIES)))


def register_policy(
    name: str,
    *,
    keys: KeyMaker | None = None,
    formula: Formula | None = None,
    chooser: Chooser | None = None,
    score: Score | None = None,
    source: str = "",
    **declared: Any,
) -> Policy:
    """Add a policy of your own, to be used by name like any other.

    Args:
        name: A new name: a letter, then letters, digits, `_` or `-`.
        keys: Called once per workload; returns one key per job, shape (n_jobs,), lowest first. The
            cheapest form, for orders that do not change with time.
        formula: Called at every pass at which the order can matter, with the `Features` of all
            waiting jobs; returns their scores, lowest first.
        chooser: Chooses a rule now and again.
        score: Scores the waiting jobs, compiled; exactly one of the four is given.
        source: Where the rule comes from.
        declared: What `compiled_policy` takes beside a score.

    Raises:
        PolicyError: The name is taken or malformed, not exactly one rule is given, or the function
            or its parameters cannot be compiled.

    Example:
        >>> policy = register_policy("WIDEST", keys=lambda workload: -workload.processors)
        >>> as_policy("widest").name
        'WIDEST'
        >>> unregister_policy("WIDEST")
    """
    if sum(given is not None for given in (keys, formula, chooser, score)) != 1:
        raise PolicyError(f"policy {name!r}: give exactly one of keys, formula, chooser and score")
    if declared and score is None:
        raise PolicyError(f"policy {name!r}: {', '.join(declared)} belong to a score")
    if score is not None:
        policy = compiled_policy(name, score, source=source, **declared)
    elif chooser is not None:
        policy = chooser_policy(chooser, name, source)
    else:
        policy = Policy(name, KEYS, _parameters(), source, keys=keys, formula=formula)
    return _POLICIES.register(name, policy, policy_names())


def compiled_policy(
    name: str,
    score: Score,
    parameters: Sequence[float] = (),
    source: str = "",
    *,
    is_static: bool = False,
    expects: int = s.EXPECT_NOTHING,
    needs_history: bool = False,
    constant: KeyMaker | None = None,
    keeps: Event | None = None,
) -> Policy:
    """Return the policy that scores by a function of its own, which is compiled on first use.

    Args:
        name: What tables call it.
        score: A plain function of `jobs`, `sim`, `which` and `n`, at the top of its file. It writes
            `sim.key[which, entry_of(sim, job)]` of the first n jobs in `sim.scratch`.
        parameters: At most N_WEIGHTS numbers, which it finds in `sim.weight[which]`.
        source: Where the rule comes from.
        is_static: Whether time does not change a job's score, which saves most of the work.
        expects: The expectations that it reads by `expect_now`, bits of `EXPECT_*`.
        needs_history: Whether it reads `sim.inverse`, what users' completed jobs tell of a job.
        constant: Makes a number of each job, shape (n_jobs,), which it finds in `jobs.keys`.
        keeps: An event that keeps what it goes by.

    Raises:
        PolicyError: The function cannot be found by its name, or takes others than these four; too
            many parameters, or one that is no finite number.
    """
    module = sys.modules.get(str(getattr(score, "__module__", "")))
    called = str(getattr(score, "__name__", ""))
    is_plain = isinstance(score, FunctionType) and getattr(module, called, None) is score
    if not (is_plain and plugins.takes(score, 4)):
        raise PolicyError(
            f"policy {name!r}: score must be a plain function of jobs, sim, which and n, at the "
            f"top of its file, got {score!r:.80}"
        )
    if len(parameters) > s.N_WEIGHTS or not all(map(math.isfinite, parameters)):
        raise PolicyError(
            f"policy {name!r}: parameters must be at most {s.N_WEIGHTS} finite numbers, got "
            f"{parameters!r:.200}"
        )
    return Policy(
        name,
        score,
        _parameters(*parameters),
        source,
        is_static=is_static,
        expects=expects,
        needs_history=needs_history,
        constant=constant,
        keeps=keeps,
    )


def unregister_policy(name: str) -> None:
    """Remove a policy that `register_policy` added.

    Raises:
        PolicyError: No such policy was registered.
    """
    built_in = (*_PURE, *loaders.POLICIES)
    if name in built_in or name not in _POLICIES:
        registered = [known for known in _POLICIES if known not in built_in]
        raise PolicyError(unknown_name("registered policy", name, registered))
    del _POLICIES[name]


def mixed_policy(weights: ArrayLike, *, divisors: ArrayLike | None = None) -> Policy:
    """Return the policy that scores by a weighted sum of (q, e, wait, rho, exp, area).

    The six weights are L1-normalised; all zero means FCFS. Features may be divided by divisors > 0,
    shape (6,); the weights are divided instead, which gives the same sum.

    Raises:
        PolicyError: Not six finite numbers.

    Source: RR-9212, equation 3; specification, section 10, "Action semantics".

    Example:
        >>> mixed_policy([0, 0, 0, 0, 0, 2])
        Policy('area=1')
    """
    w = normalised(weights)
    if not w.any():
        return _POLICIES["FCFS"]
    if np.count_nonzero(w) == 1 and w[2] != 0.0:
        return _POLICIES["FCFS" if w[2] < 0.0 else "LCFS"]
    d = np.ones(6) if divisors is None else np.asarray(divisors, dtype=np.float64)
    if d.shape != (6,) or not (np.isfinite(d).all() and (d > 0).all()):
        raise PolicyError(f"divisors must be 6 numbers above 0; got {np.asarray(divisors)}")
    name = ",".join(
        f"{feature}={weight:g}" for feature, weight in zip(FEATURES, w, strict=True) if weight
    )
    return _weighted(name, (w / d).tolist())


def as_policy(policy: AnyPolicy) -> Policy:
    """Return the policy that a name, six weights, text with weights, or an object of yours means.

    Yours may be a function, which is a formula as `register_policy` takes it, or a `Chooser` such
    as a `hpcgym.StatefulPolicy`, as an object or as a class that needs no arguments.

    Raises:
        PolicyError: Unknown name or feature, or a weight that is not a number.

    Example:
        >>> as_policy("saf"), as_policy("wait=-1,area=1")
        (Policy('SAF'), Policy('wait=-0.5,area=0.5'))
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, type):
        if not issubclass(policy, Chooser):
            raise PolicyError(f"class {policy.__name__} is no policy; a StatefulPolicy is one")
        policy = policy()
    if isinstance(policy, Chooser):
        return chooser_policy(policy)
    if callable(policy):
        name = getattr(policy, "__name__", type(policy).__name__)
        return Policy(name, KEYS, _parameters(), formula=policy)
    if not isinstance(policy, str):
        return mixed_policy(policy)
    if "=" in policy and ":" not in policy:
        return mixed_policy(weights_of(policy))
    family = policy.partition(":")[0].strip().casefold()
    by_folded = {name.casefold(): name for name in policy_names()}
    if family in loaders.FAMILIES and (":" in policy or family not in by_folded):
        return read_family(policy.strip())
    name = by_folded.get(policy.strip().casefold())
    if name is None:
        return _offered(policy)
    return _POLICIES[name] if name in _POLICIES else loaders.POLICIES[name]


def read_family(text: str) -> Policy:
    """Return the policy that a name of `loaders.FAMILIES` and parameters behind a colon mean.

    Raises:
        PolicyError: An unknown key, or a value that is not allowed.
    """
    family, colon, rest = text.partition(":")
    made = read_part("policy", f"{family.strip().casefold()}{colon}{rest}", [loaders.FAMILIES])
    policy: Policy = made.policy
    return policy


@cache
def _offered(name: str) -> Policy:
    """Return the policy that an installed package offers under a name."""
    entry = plugins.find_offered("policies", name)
    if entry is None:
        known = (*policy_names(), *loaders.FAMILIES, *plugins.offered_names("policies"))
        raise PolicyError(unknown_name("policy", name, known, "hpcgym agents list"))
    source = f"package {plugins.package_of(entry)}"
    return own_policy(plugins.load_offered(entry), entry.name, source)


def is_policy(candidate: object) -> bool:
    """Tell whether an object is a policy, a chooser or a class of choosers."""
    return isinstance(candidate, Policy | Chooser) or (
        isinstance(candidate, type) and issubclass(candidate, Chooser)
    )


def own_policy(candidate: object, name: str, source: str = "") -> Policy:
    """Return the policy that a part of somebody's own makes, under a name in tables.

    It is a policy, a chooser, a formula as of `register_policy`, or a class or function without
    arguments that returns one of these.

    Raises:
        PolicyError: It is none of these.
        HpcgymError: It cannot be made.

    Example:
        >>> own_policy(lambda jobs: -jobs.q, "WIDEST")
        Policy('WIDEST')
    """
    made = plugins.make(candidate, name)
    if isinstance(made, Policy | Chooser) or (callable(made) and plugins.takes(made, 1)):
        policy = as_policy(made)
        return replace(policy, name=name, source=policy.source or source)
    raise PolicyError(
        f"{name} is no policy: allowed are a function of the waiting jobs' features that returns "
        f"their scores, a Chooser and a Policy, got {made!r:.80}"
    )


def chooser_policy(chooser: Chooser, name: str | None = None, source: str = "") -> Policy:
    """Return the policy that a chooser makes; its name is the chooser's unless another is given."""
    made = name or chooser.name
    return Policy(made, KEYS, _parameters(), source, chooser=chooser, expects=chooser.expects)


def refuse_as_choice(policies: Iterable[Policy]) -> None:
    """Refuse policies that a simulation must have from its beginning, where others may be chosen.

    Raises:
        PolicyError: One goes by what is kept for it alone.
    """
    for policy in policies:
        if policy.is_own_order:
            raise PolicyError(
                f"{policy.name} goes by what a simulation keeps for it from its beginning; it can "
                "be the policy of hpcgym.simulate and of rules, and no choice among several"
            )


def checked_candidates(candidates: Sequence[str | Policy]) -> tuple[Policy, ...]:
    """Return policies whose orders a rollout can keep from pass to pass.

    Raises:
        PolicyError: One is unknown, changes its order with time, needs users' records, or is not
            compiled.

    Example:
        >>> checked_candidates(["WFP3"])
        Traceback (most recent call last):
        hpcgym.base.errors.PolicyError: WFP3 cannot be planned with: a candidate must keep its ...
    """
    chosen = tuple(as_policy(candidate) for candidate in candidates)
    for policy in chosen:
        if policy.is_python or policy.keys or policy.needs_history or not policy.is_static:
            raise PolicyError(
                f"{policy.name} cannot be planned with: a candidate must keep its order from pass "
                "to pass and be compiled, as FCFS, SPF or SAF"
            )
    return chosen
