"""Registers `HPCBatch-v0`, by strings, with `gymnasium.make` and `gymnasium.make_vec` alike."""

from gymnasium.envs.registration import WrapperSpec, register


class ScalarWrappers(tuple[WrapperSpec, ...]):
    """Wrappers that `gymnasium.make` puts on, and that `gymnasium.make_vec` counts as none.

    `PayAtHorizon` must stand outside Gymnasium's TimeLimit, so it has to be an additional wrapper;
    the vector environment settles a horizon itself, and `make_vec` refuses an id that has both
    additional wrappers and a vector entry point. A spec that went through JSON, or that of a made
    scalar environment, names the wrapper plainly and makes no vector: give `make_vec` the id.
    """

    __slots__ = ()

    def __len__(self) -> int:
        """Return 0; slices and loops, which `make` uses, find the wrappers."""
        return 0


register(
    id="HPCBatch-v0",
    entry_point="hpcgym.env.scheduling:SchedulingEnv",
    vector_entry_point="hpcgym.env.vector:SchedulingVectorEnv",
    additional_wrappers=ScalarWrappers(
        [WrapperSpec("PayAtHorizon", "hpcgym.env.time_limit:PayAtHorizon", {})]
    ),
)
