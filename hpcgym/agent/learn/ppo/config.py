"""Every hyper-parameter of a training, with presets for each kind of action."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any, Literal, get_args

from hpcgym.agent.network import FROM_ZERO, Chosen, NetworkSpec, Start
from hpcgym.base.errors import LARGEST_WHOLE, HpcgymError, unknown_name
from hpcgym.core.action import kind_of
from hpcgym.core.actions.index import Index
from hpcgym.core.features import FEATURES
from hpcgym.core.price import PRICED
from hpcgym.core.threads import MOST_THREADS
from hpcgym.env.config import Keywords
from hpcgym.env.reward import as_reward
from hpcgym.env.scenario.augment import Augmentation

Given = Literal["best", "last"]  # which average of networks a training gives
MOST_SHOWN = 2**28  # jobs in the observations of a rollout; these have some 18 GB of memory
LARGEST_LOG_STD = 2  # beyond it nearly all sampled actions are -1 or 1
Device = Literal["auto", "cpu", "cuda"]  # what a training may compute on


@dataclass(frozen=True)
class PPOConfig:
    """The settings of a training, without its episodes and its seed.

    Raises:
        HpcgymError: A name that is not known or a number out of range.

    Source: Schulman et al. 2017 (PPO); specification, section 10, "Learnability kit".
    """

    # What the agent chooses: "index", "order", "job", "policy", "weights", "controls", "trials" or
    # "price".
    action: str = "order"
    hidden: int = 32  # width of a layer
    layers: int = 2  # layers before the output
    # "saf", "smith-history", "smith-reg" or "smith-urgent", which decides what observations expect
    # run times by; by records at "saf". Of several the best on the weeks of validation.
    start: str | tuple[str, ...] = "saf"
    # How far the network may move the scores of its start, in natural logarithms, or the start's 1
    # in `weights` and `policy`.
    bound: float = 1.0
    residual: bool = True  # whether the network corrects its start and begins there
    temperature: float = 0.2  # what scores of jobs are divided by before they are sampled
    # First ranks of an `order` that are drawn, and count in its likelihood; the jobs behind them
    # follow by their scores. 0 = all.
    n_ranked: int = 8
    # Logarithm of the standard deviation of a vector of numbers, at the start.
    log_std: float = -3.0
    policies: tuple[str, ...] = ()  # what `policy` chooses among, the start being one of them
    n_slots: int = 64  # visible jobs
    backfill: str = ""  # backfilling mode; "" = the scenario's, or the environment's for `controls`
    # When the agent decides: "contested", "event", or every so many seconds.
    decide: str | int = "contested"
    reward: str = "ratio"  # as of `hpcgym.env.scheduling.SchedulingEnv`
    # Policy that the reward is paired with; "start" = the one that the network begins at, so that a
    # difference is what training has changed; "" = none.
    baseline: str = "SAF"
    steps: int = 1_500_000  # decisions of all environments together after which the training ends
    # Time after which it ends at any number of steps; 0 = none. With a limit, a seed gives another
    # network on a slower machine.
    minutes: float = 9.0
    n_envs: int = 120  # environments that step together
    # Environments of a group, which play the same episodes and are each other's baseline; divides
    # `n_envs`. 1 = no groups.
    group_size: int = 8
    # Whether that baseline is of the decisions at the same place of the episode, for decisions that
    # come at fixed times, rather than of whole episodes.
    by_decision: bool = False
    n_steps: int = 128  # decisions per environment and rollout
    batch_size: int = 3072  # decisions per step of the optimiser
    n_epochs: int = 3  # how often each decision of a rollout is used
    learning_rate: float = 3e-4  # of Adam, at the start
    falls_to: float = 1.0  # share of it at the end of the training, towards which it falls evenly
    gamma: float = 1.0  # discount per decision; 1 leaves the sum of rewards as it is
    gae_lambda: float = 0.97  # how far an advantage trusts rewards rather than the value network
    # How far the likelihood ratio of an action may move from 1 in one update.
    clip_range: float = 0.2
    target_kl: float = 0.05  # divergence at which the updates of a rollout stop early; 0 = never
    ent_coef: float = 0.0  # weight of the entropy
    # Weight of the error of the value network; the lower, the less of `max_grad_norm` it takes from
    # the other network.
    vf_coef: float = 0.02
    max_grad_norm: float = 0.5  # largest norm of a gradient
    # Weight that the average network keeps when a rollout's network is added; that average is
    # validated and given. 0 = no averaging.
    averaging: float = 0.95
    gives: str = "best"  # which average a training gives: the "best" by validation, or the "last"
    # Constant actions that a search tries on the training weeks, for the network to begin at; it
    # takes a third of the minutes at most. 0 = none; nor are any tried where the network does not
    # begin at its start.
    constants: int = 0
    validate_every: int = 25  # rollouts between validations
    # Validations without a better ratio to SAF after which the training ends; 0 = never.
    patience: int = 2
    # Share of the training weeks, the last, that `PPOTrainer` keeps for validation.
    validation_share: float = 0.2
    validation_copies: int = 1  # jittered copies of each validation week, besides the original
    threads: int = 1  # threads of torch, and those that step environments
    device: str = "auto"  # of torch: "cpu", "cuda", or "auto" for a GPU if there is one

    def __post_init__(self) -> None:
        if not isinstance(self.start, str):
            if not self.start or self.action in FROM_ZERO:
                raise HpcgymError(
                    f"start of action {self.action!r} must name one policy"
                    + (", since zeros are its start" if self.start else " or more")
                    + f", got {', '.join(self.start) or 'none'}"
                )
            for start in self.start:
                replace(self, start=start)
            return
        choices: dict[str, Any] = {"action": Chosen}
        choices |= {"start": Start, "gives": Given, "device": Device}
        for key, allowed in choices.items():
            if getattr(self, key) not in get_args(allowed):
                raise HpcgymError(unknown_name(key, getattr(self, key), get_args(allowed)))
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, (int, float)):
                if not -inf < value < inf:
                    raise HpcgymError(f"{field.name} must be a finite number, got {value}")
                least = _LEAST.get(field.name, 1)
                if value < least:
                    raise HpcgymError(f"{field.name} must be at least {least}, got {value}")
                most = MOST_THREADS if field.name == "threads" else LARGEST_WHOLE
                if isinstance(value, int) and value > most:
                    raise HpcgymError(f"{field.name} must be at most {most}, got {value}")
        if self.n_envs * self.n_steps * self.n_slots > MOST_SHOWN:
            raise HpcgymError(
                f"a rollout shows n_envs x n_steps x n_slots jobs, at most {MOST_SHOWN}; got "
                f"{self.n_envs} x {self.n_steps} x {self.n_slots}"
            )
        if self.log_std > LARGEST_LOG_STD:
            raise HpcgymError(f"log_std must be at most {LARGEST_LOG_STD}, got {self.log_std}")
        if self.n_envs % self.group_size:
            raise HpcgymError(
                f"group_size must divide n_envs, got {self.group_size} and {self.n_envs}"
            )
        if not (self.gamma <= 1.0 and self.gae_lambda <= 1.0 and self.falls_to <= 1.0):
            raise HpcgymError(
                f"gamma, gae_lambda and falls_to lie in 0 to 1, got {self.gamma}, "
                f"{self.gae_lambda} and {self.falls_to}"
            )
        if not (self.validation_share < 1.0 and self.averaging < 1.0):
            raise HpcgymError(
                "validation_share and averaging lie in 0 to below 1, got "
                f"{self.validation_share} and {self.averaging}"
            )
        if self.action == "policy" and self.start.upper() not in self.policies:
            raise HpcgymError(
                f"policies must name {self.start.upper()}, got {', '.join(self.policies) or 'none'}"
            )
        if self.action in FROM_ZERO and self.baseline == "start":
            raise HpcgymError(
                f"baseline must name a policy, since action {self.action!r} starts at zeros, got "
                "'start'"
            )
        if self.action != "policy" and self.policies:
            raise HpcgymError(f"policies belong to action 'policy', not to {self.action!r}")
        if as_reward(self.reward).needs_baseline and not self.baseline:
            raise HpcgymError(f"reward {self.reward!r} compares with a baseline; name one, say SAF")
        draws_numbers = self.spec.draws_numbers  # refuses what no network is
        if self.constants and not draws_numbers:
            raise HpcgymError(
                "constants are for actions that are vectors of numbers, but not for 'order'; got "
                f"action {self.action!r}"
            )

    @property
    def searches(self) -> bool:
        """Return whether a search comes first: only a network that is its start can add to it."""
        return self.constants > 0 and self.residual

    @property
    def starts(self) -> tuple[str, ...]:
        """Return what it may begin at; it is the first of them until another is chosen."""
        return (self.start,) if isinstance(self.start, str) else self.start

    @property
    def paired_with(self) -> str | None:
        """Return the policy that the reward is paired with."""
        return self.starts[0].upper() if self.baseline == "start" else self.baseline or None

    @property
    def metric(self) -> str:
        """Return the key of infos that validations compare with SAF's."""
        return as_reward(self.reward).metric

    @property
    def spec(self) -> NetworkSpec:
        """Return the architecture of the network."""
        kind = kind_of(self.action)
        best = {"weights": FEATURES.index("area")}
        if self.action == "policy":
            best["policy"] = self.policies.index(self.starts[0].upper())
        shared = {field.name for field in fields(self)} & {
            field.name for field in fields(NetworkSpec)
        }
        return NetworkSpec(
            n_outputs=0 if kind.SIZE == "n_slots" else kind(self.n_slots, self.policies).size,
            start_output=best.get(self.action, 0),
            **{name: getattr(self, name) for name in shared} | {"start": self.starts[0]},
        )

    @property
    def env_keywords(self) -> Keywords:
        """Return the keywords of `HPCBatch-v0` that the agent needs, trained or in training."""
        keywords = Keywords(action=self.action, n_slots=self.n_slots)
        if kind_of(self.action).FIELDS is None:
            keywords["expectations"] = self.spec.expectations or "records"
        if self.action == "policy":
            keywords["policies"] = list(self.policies)
        usual = kind_of(self.action).USUAL_DECIDE
        if self.decide != "contested" or usual != "contested":
            keywords["decide"] = self.decide
        if self.backfill:
            keywords["backfill"] = self.backfill
        return keywords


_NOT_NEGATIVE = ["minutes", "n_ranked", "gamma", "gae_lambda", "target_kl", "ent_coef", "vf_coef"]
_NOT_NEGATIVE += ["by_decision", "averaging", "constants", "patience", "residual"]
_NOT_NEGATIVE += ["validation_share", "validation_copies"]
_LEAST: dict[str, float] = dict.fromkeys(_NOT_NEGATIVE, 0)
_LEAST |= dict.fromkeys(
    ("bound", "temperature", "learning_rate", "clip_range", "max_grad_norm"), 1e-9
)
_LEAST |= {"falls_to": 0, "log_std": -20}  # least value of each number that may be below 1

_FEW_NUMBERS: dict[str, Any] = {
    "start": "smith-reg",
    "baseline": "",
    "constants": 96,
    "log_std": -1.0,
    "n_envs": 64,
    "n_steps": 64,
    "batch_size": 512,
    "n_epochs": 6,
    "learning_rate": 1e-3,
    "validate_every": 5,
    "validation_copies": 10,
    "patience": 10,
}
"""Of actions that hold for hours."""

_OF_JOBS: dict[str, Any] = {
    "start": ("smith-reg", "saf", "smith-history", "smith-urgent"),
    "baseline": "start",
}
"""Of actions that score jobs."""

PRESETS: dict[str, dict[str, Any]] = {
    "index": _FEW_NUMBERS
    | {"decide": Index.USUAL_DECIDE, "n_slots": Index.USUAL_SLOTS, "constants": len(Index.KNOWN)},
    "order": _OF_JOBS,
    "job": _OF_JOBS | {"n_slots": 32},
    "policy": {"policies": ("SAF", "SMITH-HISTORY", "SPF", "SQF", "FCFS", "F1"), "bound": 3.0},
    "weights": {"bound": 0.5},
    "controls": {"start": "smith-reg", "baseline": "SMITH-URGENT", "log_std": -1.5},
    "trials": _FEW_NUMBERS | {"decide": Index.USUAL_DECIDE, "n_slots": Index.USUAL_SLOTS},
    "price": {
        "hidden": 64,
        "n_slots": 2,
        "decide": 3600,
        "reward": PRICED,
        "log_std": -2.3,
        "n_envs": 64,
        "n_steps": 168,
        "batch_size": 2688,
        "n_epochs": 6,
        "by_decision": True,
        "learning_rate": 1e-3,
        "falls_to": 0.05,
        "gamma": 0.999,
        "gae_lambda": 0.98,
        "target_kl": 0.0,
        "vf_coef": 3.4,
        "validate_every": 10,
        "patience": 0,
        "minutes": 5.0,
        "steps": 10**9,
    },
}
"""What each kind of action sets besides the defaults."""


def preset(action: str, **changes: Any) -> PPOConfig:
    """Return the preset of a kind of action, with changes.

    Raises:
        HpcgymError: An unknown action or key, or a value out of range.
    """
    if action not in PRESETS:
        raise HpcgymError(unknown_name("action", action, PRESETS))
    _check_keys(PPOConfig, changes)
    return PPOConfig(**{"action": action} | PRESETS[action] | changes)


def overridden(config: PPOConfig, assignments: Iterable[str]) -> PPOConfig:
    """Set hyper-parameters by texts "key=value"; values of tuples are separated by commas.

    Raises:
        HpcgymError: No such key, a value of another type, or one out of range; the message names
            the nearest key.
    """
    return replace(config, **_changes(PPOConfig, assignments))


def augmentation_of(assignments: Iterable[str]) -> Augmentation | None:
    """Read texts "key=value" as an augmentation; None where they change nothing.

    A comma separates the two values of `load` and of `window`.

    Raises:
        HpcgymError: As `overridden`.

    Source: Specification, section 10, "Learnability kit".
    """
    augmentation = Augmentation(**_changes(Augmentation, assignments))
    return None if augmentation == Augmentation() else augmentation


def texts_of(config: PPOConfig | Augmentation) -> dict[str, str]:
    """Return all values as texts by key, as `overridden` and `augmentation_of` read them."""
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    return {
        key: ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        for key, value in values.items()
    }


def _changes(kind: type[PPOConfig | Augmentation], assignments: Iterable[str]) -> dict[str, Any]:
    """Read texts "key=value" as values of a class by key."""
    types = {field.name: str(field.type) for field in fields(kind)}
    changes: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise HpcgymError(f"{assignment!r} sets nothing; write key=value")
        _check_keys(kind, [key])
        try:
            changes[key] = _value_of(types[key], text)
        except (KeyError, ValueError):
            raise HpcgymError(f"{key} must be {_WORDS[types[key]]}, got {text!r}") from None
    return changes


def _check_keys(kind: type[PPOConfig | Augmentation], keys: Iterable[str]) -> None:
    """Refuse keys that a class does not have."""
    known = [field.name for field in fields(kind)]
    what = "hyper-parameter" if kind is PPOConfig else "augmentation"
    for key in keys:
        if key not in known:
            raise HpcgymError(unknown_name(what, key, known))


def _value_of(kind: str, text: str) -> Any:
    if kind == "bool":
        return {"true": True, "false": False}[text.casefold()]
    if kind == "str | int":
        return int(text) if text.isdecimal() else text
    if kind == "tuple[str, ...]" or (kind == "str | tuple[str, ...]" and "," in text):
        return tuple(filter(None, (part.strip() for part in text.split(","))))
    if kind == "str | tuple[str, ...]":
        return text
    if kind.startswith("tuple"):
        first, second = map(int if "int" in kind else float, text.split(","))
        return first, second
    return {"int": int, "float": float, "str": str}[kind](text)


_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "tuple[float, float]": "two numbers with a comma between",
    "tuple[int, int] | None": "two whole numbers with a comma between",
}
"""How errors name a value of each type."""
