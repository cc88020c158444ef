"""The start of a command: no garbage is collected while its imports make what stays."""

import gc

OBJECTS = 1_000_000  # how many more objects there must be before garbage is first collected


def collect_late() -> None:
    """Put off the first collection of garbage; after it, Python collects as ever.

    The imports of a command make some 500,000 objects that stay. Looking through them as they come
    took a fifth of the time until it began.
    """
    usual = gc.get_threshold()

    def as_ever(phase: str, about: dict[str, int]) -> None:
        if gc.get_threshold() == (OBJECTS, *usual[1:]):
            gc.set_threshold(*usual)
        gc.callbacks.remove(as_ever)

    gc.set_threshold(OBJECTS, *usual[1:])
    gc.callbacks.append(as_ever)
