"""Policies, agents, trainers and more of your own: by file, by module, or offered by a package.

What an object may be: a policy is a formula (a function of the waiting jobs' `Features`), a
`Chooser` or a `Policy`; an agent is a policy or has `predict`; a trainer has `train`. A class, or
a function without arguments, is called first. `hpcgym.base.plugins` finds the object.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from hpcgym.agent.base import NamedAgent
from hpcgym.agent.rule import RuleAgent
from hpcgym.base import plugins
from hpcgym.base.errors import CardError, PolicyError, unknown_name
from hpcgym.core import backfill, loaders
from hpcgym.core.own_backfill import OwnBackfill
from hpcgym.core.policy import Policy, as_policy, is_policy, own_policy
from hpcgym.core.predictor import Ask, Predictor
from hpcgym.env.scenario.episodes import Episodes

MODEL = ".zip"  # suffix of the models of Stable-Baselines3


class Trainer(Protocol):
    """Makes agents of the weeks it is given, and of nothing else.

    A finished training is kept under what the trainer holds and what its file says.
    """

    @property
    def name(self) -> str:
        """What tables call its agents."""
        ...

    def train(self, episodes: Sequence[Episodes], seed: int) -> RuleAgent | NamedAgent:
        """Make an agent, which can be pickled.

        Args:
            episodes: Training weeks of one log or of several, which carry their jobs. An
                environment takes them as `scenario=`. Weeks for validation are selected from them.
            seed: Seed of all chance.

        Source: Specification, section 10, "Evaluation protocol", step 1.
        """
        ...


Fit = Callable[[object], bool]

POLICY = "policy, which is a function of the waiting jobs' features, a Chooser or a Policy"
AGENT = "agent, which has predict(), or is a policy"
MODE = "backfilling mode, which is a subclass of OwnBackfill"
PREDICTOR = "predictor, which is a function of a submission, or a Predictor"
TRAINER = "trainer, which has train(episodes, seed)"
TRAINER_OR_AGENT = (
    "trainer or agent, of which one has train(episodes, seed) and the other predict()"
)
"""What may be named, for messages."""


def load_policy(text: str) -> str | Policy:
    """Return the policy of a file or module; any other text as it is, for `as_policy`.

    Args:
        text: `path/to/file.py:Name`, `path/to/file.py`, `module:Name`, or what `as_policy` takes.

    Raises:
        PolicyError: What is there is no policy.
        HpcgymError: The file or module cannot be imported.
    """
    if text.endswith(MODEL):
        said = f"`hpcgym evaluate --agents {shlex.quote(text)}` runs it"
        raise PolicyError(f"{text} is a model, hence an agent: {said}")
    is_family = text.partition(":")[0].strip().casefold() in loaders.FAMILIES
    if is_family or not plugins.is_reference(text):
        return text
    name, part = plugins.load_reference(text, POLICY, *_in_turn(is_policy), _is_formula)
    return own_policy(part, name, text)


def load_backfill(text: str) -> str | OwnBackfill:
    """Return the backfilling mode of a file or module; any other text as it is, for `as_mode`.

    Raises:
        HpcgymError: What is there is no mode, or cannot be imported or made.
    """
    is_mode = text.partition(":")[0] in (*backfill.MODES, *loaders.SIMULATORS)
    if is_mode or not plugins.is_reference(text):
        return text
    part = plugins.load_reference(text, MODE, *_in_turn(_is_mode))[1]
    made: OwnBackfill = plugins.make(part, text)
    return made


def load_predictor(text: str) -> str | Predictor | Ask:
    """Return the predictor of a file or module; any other text as it is, for `as_predictor`.

    Raises:
        HpcgymError: What is there is no predictor, or cannot be imported or made.
    """
    if not plugins.is_reference(text):
        return text
    fits = (lambda part: isinstance(part, Predictor), _is_formula)
    part = plugins.load_reference(text, PREDICTOR, *fits)[1]
    made: Predictor | Ask = plugins.make(part, text)
    return made


def is_own(text: str) -> bool:
    """Tell whether a text names a file or a module, rather than an entry of a shelf."""
    return text.endswith(MODEL) or plugins.is_reference(text)


def own_agent(text: str) -> RuleAgent | NamedAgent:
    """Return the agent of a file or module, or of a model of Stable-Baselines3.

    Raises:
        CardError: What is there is no agent.
        HpcgymError: It cannot be imported or made.
    """
    if text.endswith(MODEL):
        from hpcgym.agent.sb3_model import load_model

        return load_model(text)
    name, part = plugins.load_reference(text, AGENT, *AGENTS)
    return agent_of(part, name, text)


def own_agent_or_trainer(text: str) -> RuleAgent | NamedAgent | Trainer:
    """Return the trainer of a file or module, or else its agent.

    Raises:
        CardError: What is there is neither.
        HpcgymError: It cannot be imported or made.
    """
    if text.endswith(MODEL):
        return own_agent(text)
    fits = (*_in_turn(is_trainer), *AGENTS)
    name, part = plugins.load_reference(text, TRAINER_OR_AGENT, *fits)
    made = plugins.make(part, text)
    return _named(made, text) if is_trainer(made) else agent_of(made, name, text)


def own_trainer(text: str) -> Trainer:
    """Return the trainer of a file or module.

    Raises:
        CardError: What is there is no trainer.
        HpcgymError: It cannot be imported or made.
    """
    _, part = plugins.load_reference(text, TRAINER, *_in_turn(is_trainer))
    made = plugins.make(part, text)
    if not is_trainer(made):
        raise CardError(f"{text} is no {TRAINER}")
    return _named(made, text)


def offered_agent(name: str) -> RuleAgent | NamedAgent | None:
    """Return the agent or policy that a package offers under a name, in any case; None = none.

    Raises:
        HpcgymError: The package is broken, or offers something else.
    """
    entry = plugins.find_offered("agents", name)
    if entry is not None:
        agent = agent_of(plugins.load_offered(entry), entry.name, plugins.package_of(entry))
        return replace(agent, name=entry.name)
    return RuleAgent(as_policy(name)) if plugins.find_offered("policies", name) else None


def agent_of(part: object, name: str, source: str) -> RuleAgent | NamedAgent:
    """Make an agent of an object; one with a `name` of its own keeps it.

    An object with `predict` states the keywords of `HPCBatch-v0` that it needs as `env_keywords`.
    The spaces of a model of Stable-Baselines3 state them.

    Raises:
        CardError: It is no agent, or needs a keyword that there is not.
    """
    made = plugins.make(part, source)
    if isinstance(made, RuleAgent | NamedAgent):
        return made
    if not is_agent(made):
        return RuleAgent(own_policy(made, name, source))
    keywords = getattr(made, "env_keywords", None)
    if keywords is None and hasattr(made, "action_space"):
        from hpcgym.agent.sb3_model import keywords_of

        keywords = keywords_of(made, source)
    return NamedAgent(str(getattr(made, "name", name)), made, _checked(keywords or {}, source))


def is_agent(part: object) -> bool:
    """Tell whether an object, or a class of objects, predicts."""
    return callable(getattr(part, "predict", None))


def is_trainer(part: object) -> bool:
    """Tell whether an object, or a class of objects, trains and does not predict."""
    return callable(getattr(part, "train", None)) and not is_agent(part)


def _in_turn(fit: Fit) -> tuple[Fit, Fit]:
    """Return tests for objects and for classes that fit, since a file may define both."""
    return (
        lambda part: not inspect.isclass(part) and fit(part),
        lambda part: inspect.isclass(part) and fit(part),
    )


def _is_formula(part: object) -> bool:
    """Tell whether an object is a function of one argument."""
    return inspect.isfunction(part) and plugins.takes(part, 1) and not plugins.takes(part, 0)


def _is_mode(part: object) -> bool:
    """Tell whether an object is a backfilling mode in Python, or a class of them."""
    return isinstance(part, OwnBackfill) or (
        inspect.isclass(part) and issubclass(part, OwnBackfill)
    )


AGENTS = (*_in_turn(is_agent), *_in_turn(is_policy), _is_formula)


def _checked(keywords: Any, source: str) -> dict[str, Any]:
    from hpcgym.env.config import Keywords

    allowed = Keywords.__annotations__
    if not isinstance(keywords, Mapping):
        raise CardError(f"{source}: env_keywords must be a dict, got {keywords!r:.80}")
    for key in keywords:
        if key not in allowed:
            raise CardError(f"{source}: {unknown_name('keyword of HPCBatch-v0', key, allowed)}")
    return dict(keywords)


def _named(trainer: Any, source: str) -> Trainer:
    if not isinstance(getattr(trainer, "name", None), str):
        raise CardError(f"{source} has no name; a trainer's `name` is what tables call its agents")
    checked: Trainer = trainer
    return checked
