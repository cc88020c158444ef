"""Agents of action `price`: rules of the hour's price, and networks.

Source: Specification, section 17, "Hourly decisions".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.base.errors import CardError, no_such_file
from hpcgym.base.registry import shelf_folders
from hpcgym.core.actions.price import CAP_SPAN, KAPPA_SPAN, USUAL, USUAL_CAP
from hpcgym.core.observation_fields import N_PRICE_FIELDS, PriceField

Single = NDArray[np.float32]


class PriceAgent(ABC):
    """What agents of the price share: they choose by the 38 numbers alone, and keep nothing."""

    @abstractmethod
    def choose(self, shown: Single) -> Single:
        """Return an action for each row of observations, (n, 38) to (n, 2)."""

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[Single, tuple[NDArray[Any], ...] | None]:
        """Choose; arguments and results as of `hpcgym.agent.base.Agent.predict`."""
        shown = observation["cluster"] if isinstance(observation, Mapping) else observation
        shown = np.asarray(shown, dtype=np.float32)
        chosen = self.choose(shown.reshape(-1, N_PRICE_FIELDS))
        return (chosen if shown.ndim > 1 else chosen[0]), state


@dataclass(frozen=True)
class PriceRule(PriceAgent):
    """Kappa by what waits, and a cap that is another one in hours that are not cheap.

    Raises:
        CardError: A number out of range.
    """

    kappa: float  # of the event `price`, as `power`
    power: float = 0  # the same
    # Share of the machine that may be busy once a long job has started, in cheap hours.
    cap: float = 1
    # An hour is cheap if at most this share of a day is cheaper, of the 23 h behind it.
    cheap: float = 1
    dear: float = 1  # the cap of other hours

    def __post_init__(self) -> None:
        if not (0 < self.kappa <= 1e9 and 0 <= self.power <= 10):
            raise CardError(
                f"kappa is above 0, at most 1e9, and power from 0 to 10; got {self.kappa:g} and "
                f"{self.power:g}"
            )
        for key in ("cap", "cheap", "dear"):
            if not 0 <= getattr(self, key) <= 1:
                raise CardError(f"{key} is a share from 0 to 1, got {getattr(self, key):g}")

    def choose(self, shown: Single) -> Single:
        """Return an action for each row of observations."""
        one_and_work = np.exp(2.0 * shown[:, PriceField.WORK].astype(np.float64))
        kappa = self.kappa / USUAL["kappa"] * one_and_work ** (self.power - USUAL["power"])
        cheaper = 12.0 * (shown[:, PriceField.RANK] + 1.0)
        cap = np.where(cheaper > 24.0 * self.cheap + 0.5, self.dear, self.cap)
        action = np.stack([np.log10(kappa) / KAPPA_SPAN, (cap - USUAL_CAP) / CAP_SPAN], axis=1)
        chosen: Single = np.clip(action, -1.0, 1.0).astype(np.float32)
        return chosen


@dataclass(frozen=True, eq=False)
class PriceNet(PriceAgent):
    """A network of two layers of tanh, on observations less their mean over their deviation.

    Raises:
        CardError: An array that is not there, or of another shape.
    """

    # "mean" and "deviation", shape (38,), "limit", a number; weights "w0", "w1", "w2", (inputs,
    # outputs), and biases "b0", "b1", "b2".
    arrays: Mapping[str, NDArray[Any]]

    @classmethod
    def read(cls, path: str | Path | None = None) -> PriceNet:
        """Read what `scripts/train_price.py` wrote; None = that of the card PRICE-NET.

        Raises:
            CardError: No such file, or no network.
        """
        file = shelf_folders("agents")[0] / "price-net.npz" if path is None else path
        if not Path(file).is_file():
            raise CardError(no_such_file(file))
        try:
            with np.load(file, allow_pickle=False) as arrays:
                return cls(dict(arrays))
        except (OSError, ValueError) as error:
            raise CardError(f"{file}: no network: {error}") from None

    def __post_init__(self) -> None:
        width = np.shape(self.arrays.get("w1", np.empty((0, 0))))[0]
        shapes = {
            "mean": (N_PRICE_FIELDS,),
            "deviation": (N_PRICE_FIELDS,),
            "limit": (),
            "w0": (N_PRICE_FIELDS, width),
            "w1": (width, width),
            "w2": (width, 2),
            "b0": (width,),
            "b1": (width,),
            "b2": (2,),
        }
        for name, shape in shapes.items():
            if name not in self.arrays or np.shape(self.arrays[name]) != shape:
                raise CardError(f"a network of action 'price' needs {name} of shape {shape}")

    def choose(self, shown: Single) -> Single:
        """Return an action for each row of observations."""
        limit, arrays = float(self.arrays["limit"]), self.arrays
        hidden = np.clip((shown - arrays["mean"]) / arrays["deviation"], -limit, limit)
        for layer in "01":
            hidden = np.tanh(hidden @ arrays[f"w{layer}"] + arrays[f"b{layer}"])
        last = hidden @ arrays["w2"] + arrays["b2"]
        chosen: Single = np.clip(last, -1.0, 1.0).astype(np.float32)
        return chosen
