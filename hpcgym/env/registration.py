"""Registers `HPCBatch-v0`, by strings, with `gymnasium.make` and `gymnasium.make_vec` alike."""

from gymnasium.envs.registration import WrapperSpec, register


class ScalarWrappers(tuple[WrapperSpec, ...]):
    """Wrappers that `gymnasium.make` applies and `gymnasium.make_vec` does not count.

    `PayAtTimeLimit` must be outside Gymnasium's TimeLimit, so it is an additional wrapper. The
    vector environment has its own time limit, and `make_vec` refuses an id with both additional
    wrappers and a vector entry point. A spec from JSON, or of a made scalar environment, has the
    wrapper in a plain list and makes no vector: give `make_vec` the id.
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
        [WrapperSpec("PayAtTimeLimit", "hpcgym.env.time_limit:PayAtTimeLimit", {})]
    ),
)
