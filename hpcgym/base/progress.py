"""Progress of long work: a bar on a terminal, elsewhere a line a minute by the logger `hpcgym`.

Work says by `steps` how far it is; what goes on inside a step counts as a part of it. Nothing is
drawn unless a caller asks for it by `shown`. A thread looks at the counts, so that one long call
of a kernel moves the bar, too. Without a display `steps` costs a microsecond.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from hpcgym.base.log import LOG
from hpcgym.base.text_table import printable

if TYPE_CHECKING:
    from rich.table import Table

TICK_S = 0.2  # how often the counts are looked at, s
FIRST_S = 1.0  # work that is done sooner draws no bar, s
LINE_S = 60.0  # how often a line is printed where there is no terminal, s
NOTICE_S = 2.0  # after how long a notice is printed there, s
NOTED_S = 10.0  # how often a line follows a notice there, s


@dataclass(eq=False)
class Steps:
    """Work in equal steps."""

    total: float  # how many steps there are
    name: str = ""  # what is done; "" counts for the work around it only
    unit: str = ""  # what a step is, in the plural; "" = steps are not counted aloud
    notice: str = ""  # printed soon where there is no terminal; "" = nothing
    # Returns how many are done, parts of steps included; None = those advanced.
    count: Callable[[], float] | None = None
    # What each of other processes has done of the step that it is at, as of `sent`.
    shares: Sequence[float] = ()
    # Returns how far the work is, in place of a share and a clock.
    told: Callable[[], str] | None = None
    n_done: float = 0.0  # how many were advanced
    begun: float = field(default_factory=time.monotonic)
    samples: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=600))

    def __post_init__(self) -> None:
        """Keep from a terminal what would steer it."""
        self.name = printable(self.name)

    def advance(self, n_steps: int = 1) -> None:
        """Note that steps are done."""
        self.n_done += n_steps

    def share(self, within: float) -> float:
        """Return the share that is done; `within` is that of the step that is under way."""
        done = self.n_done + within if self.count is None else self.count()
        done += sum(max(share, 0.0) for share in self.shares)
        return min(done / self.total, 1.0) if self.total > 0 else 0.0

    def text(self, share: float) -> str:
        """Return how far the work is, since when, and how long it may still take.

        Example:
            >>> Steps(23, unit="trainings", begun=time.monotonic() - 61).text(0.5)
            '50 % of 23 trainings, 1:01'
        """
        if self.told is not None:
            return self.told()
        now = time.monotonic()
        if not self.samples or now - self.samples[-1][0] >= 1:
            self.samples.append((now, share))
        (first, before), (last, after) = self.samples[0], self.samples[-1]
        of_all = f" of {self.total:,.0f} {self.unit}" if self.unit else ""
        done = f"{100 * share:.0f} %{of_all}, " if self.unit or share else ""
        told = done + clock(now - self.begun)
        if last - first > 2 and after > before + 0.002 and share < 0.99:
            told += f", {clock((1 - share) * (last - first) / (after - before))} left"
        if min(self.shares, default=0.0) < 0:
            told += f", compiling kernels: {-min(self.shares):.0%}"
        return told


_under_way: list[Steps] = []  # what is being done, the outermost first
_display: _Watcher | None = None  # what looks at it


@contextmanager
def steps(total: float, name: str = "", unit: str = "", **further: Any) -> Iterator[Steps]:
    """Say what is being done, and yield what is told of each step that is done.

    Args:
        total: As the other arguments, an attribute of `Steps`.
    """
    work = Steps(total, name, unit, **further)
    if _display is None:
        yield work
        return
    _under_way.append(work)
    try:
        yield work
    finally:
        _under_way.remove(work)
        if _display is not None and not _under_way:
            _display.clear()  # what is printed next begins on a line of its own


@contextmanager
def shown(asked: bool = True) -> Iterator[None]:
    """Show progress inside the block, unless that is done already or not asked for."""
    if _display is not None or not asked:
        yield
        return
    with _Terminal() if sys.stderr.isatty() else _Lines():
        yield


@contextmanager
def sent(shares: MutableSequence[float], index: int) -> Iterator[None]:
    """Write the share that is done to a place of an array, which another process may read.

    While kernels are compiled it is the share of them that is ready, below 0. It is 0 at the end.
    """
    with _Sender(shares, index):
        yield
    shares[index] = 0.0


def clock(seconds: float) -> str:
    """Format a duration as minutes or hours with two digits each."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _share(under_way: list[Steps]) -> float:
    """Return the share of the outermost work; what has a notice is no part of what is around it."""
    within = 0.0
    for work in reversed(under_way):
        within = within if work.notice else work.share(within)
    return within


def _measured() -> list[tuple[Steps, float]]:
    """Return what is shown, with its share: the outermost work, and what has a notice."""
    under_way = _under_way.copy()
    outermost = [work for work in under_way if not work.notice][:1]
    noted = [work for work in under_way if work.notice]
    for work in outermost if noted else ():
        work.samples.clear()  # its speed is unknown meanwhile
    return [(work, _share(under_way)) for work in outermost] + [
        (work, work.share(0)) for work in noted
    ]


class _Watcher:
    """A thread that looks at what is being done."""

    def __init__(self) -> None:
        self._over = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        global _display
        self._thread.start()
        _display = self

    def __exit__(self, *_: object) -> None:
        global _display
        try:
            self._over.set()
            self._thread.join()
            self.clear()
        finally:
            _display = None

    def _watch(self) -> None:
        """Look from time to time."""
        while not self._over.wait(TICK_S):
            self.look()

    def look(self) -> None:
        """Show what is being done."""

    def clear(self) -> None:
        """Remove what is shown."""


class _Terminal(_Watcher):
    """Draws bars that vanish when all is done."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        self._live: Any = None

    def look(self) -> None:
        """Draw a bar for what has gone on for a while."""
        with self._lock:
            now = time.monotonic()
            measured = [pair for pair in _measured() if now - pair[0].begun > FIRST_S]
            if self._live is None and measured:
                from rich.console import Console
                from rich.live import Live

                self._live = Live(
                    console=Console(stderr=True),
                    auto_refresh=False,
                    transient=True,
                    redirect_stdout=False,
                    redirect_stderr=False,
                )
                self._live.start()
            if self._live is not None:
                self._live.update(_bars(measured), refresh=True)

    def clear(self) -> None:
        """Wipe the bars."""
        with self._lock:
            if self._live is not None:
                self._live.stop()
            self._live = None


def _bars(measured: list[tuple[Steps, float]]) -> Table:
    """Return a line for each work: its name, a bar, and how far it is."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, overflow="ellipsis")
    grid.add_column()
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for work, share in measured:
        bar = ProgressBar(1.0, share, width=12)
        grid.add_row(Text(work.name), bar, Text(work.text(share)))
    return grid


class _Lines(_Watcher):
    """Prints a line a minute, and a notice soon where there is one."""

    def __init__(self) -> None:
        super().__init__()
        self._printed = time.monotonic()
        self._noticed: list[Steps] = []

    def look(self) -> None:
        """Print what is due."""
        now = time.monotonic()
        is_due = now - self._printed >= LINE_S
        for work, share in _measured():
            text = work.text(share)  # measured each time, so that the time left is known
            if work.notice and work not in self._noticed and now - work.begun >= NOTICE_S:
                self._noticed.append(work)
                self._printed = now
                LOG.info("%s: %s %s (%s)", work.name, f"{work.total:,.0f}", work.unit, work.notice)
            elif is_due or (work.notice and now - self._printed >= NOTED_S):
                self._printed = now
                LOG.info("%s: %s", work.name, text)


class _Sender(_Watcher):
    """Writes the share of the outermost work to an array."""

    def __init__(self, shares: MutableSequence[float], index: int) -> None:
        super().__init__()
        self._shares, self._place = shares, index

    def look(self) -> None:
        """Write the share."""
        under_way = _under_way.copy()
        ready = [work.share(0) for work in under_way if work.notice]
        self._shares[self._place] = -ready[0] if ready else _share(under_way)
