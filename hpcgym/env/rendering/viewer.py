"""A frame as text, as an RGB array, or in a window.

Time runs to the right, with the present in the middle. On the left is what happened, on the right
what the scheduler plans with: the running jobs until their estimated ends, and the reservation.
"""

from __future__ import annotations

import os
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Literal

import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

from hpcgym.env.rendering.frame import (
    Frame,
    Interval,
    Placement,
    TimeAxis,
    fit,
    jobs_in_view,
    placed,
    time_axis,
)
from hpcgym.env.rendering.text import ansi, clock, duration, tick_label

if TYPE_CHECKING:
    import pygame

RenderMode = Literal["ansi", "rgb_array", "human"]

IMAGE_SIZE = (1120, 640)
"""Width and height of the image, pixels."""
CHART = (70, 96, 700, 460)
"""Left, top, width and height of the machine over time."""
QUEUE = (804, 96, 286, 460)
"""Left, top, width and height of the queue."""
ROW_HEIGHT = 20
FONT_SMALL, FONT, FONT_LARGE = 17, 19, 28

Color = tuple[int, int, int]
Point = tuple[int, int]
Box = tuple[int, int, int, int]
"""Left, top, width and height, pixels."""

_PAPER: Color = (250, 250, 247)
_MACHINE: Color = (255, 255, 255)
_LINE: Color = (226, 226, 220)
_FAINT: Color = (128, 130, 134)
_INK: Color = (38, 42, 50)
_NOW: Color = (196, 40, 40)
_HEAD: Color = (120, 84, 8)
_HEAD_TINT: Color = (252, 240, 205)
_JOBS: tuple[Color, ...] = (
    (66, 114, 172),
    (222, 138, 62),
    (88, 156, 92),
    (166, 98, 158),
    (70, 160, 168),
    (176, 126, 88),
    (118, 118, 196),
    (196, 108, 128),
    (140, 156, 62),
    (96, 128, 142),
)


class Viewer:
    """Shows the frames of an environment in one mode, each job where it was first drawn.

    Raises:
        DependencyNotInstalled: The mode needs pygame and it is not installed.

    Example:
        >>> Viewer("ansi").close()
    """

    def __init__(self, mode: RenderMode, fps: int = 10) -> None:
        self.mode = mode
        self._fps = fps
        self._placement = Placement(1)
        self._last: Frame | None = None
        self._window: pygame.Surface | None = None
        self._clock: pygame.time.Clock | None = None
        if mode != "ansi":
            _pygame()

    def render(self, frame: Frame) -> str | NDArray[np.uint8] | None:
        """Return text in mode "ansi" and an array in "rgb_array"; show a window in "human"."""
        if self._last is None or not _follows(self._last, frame):
            self._placement = Placement(frame.machine_processors)
        self._last = frame
        if self.mode == "ansi":
            return ansi(frame, self._placement)
        if self.mode == "rgb_array":
            return rgb_array(frame, self._placement)
        self._show(frame)
        return None

    def _show(self, frame: Frame) -> None:
        """Draw a frame in the window, which the first frame opens."""
        pygame = _pygame()
        if self._window is None:
            pygame.display.init()
            pygame.display.set_caption("hpcgym")
            self._window = pygame.display.set_mode(IMAGE_SIZE)
            self._clock = pygame.time.Clock()
        assert self._window is not None and self._clock is not None
        self._window.blit(_draw(frame, placed(frame, self._placement)), (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(self._fps)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            _pygame().display.quit()
            self._window = None


def rgb_array(frame: Frame, placement: Placement | None = None) -> NDArray[np.uint8]:
    """Draw a frame without a display: a Gantt chart of the processors, and the queue beside it.

    Returns:
        Image, shape (height, width, 3), uint8.

    Raises:
        DependencyNotInstalled: pygame is not installed.
    """
    pygame = _pygame()
    surface = _draw(frame, placed(frame, placement))
    width, height = IMAGE_SIZE
    pixels = np.frombuffer(pygame.image.tobytes(surface, "RGB"), dtype=np.uint8)
    return pixels.reshape(height, width, 3).copy()


def _pygame() -> ModuleType:
    """Import pygame when it is needed, without its greeting."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError:
        raise DependencyNotInstalled(
            'pygame is not installed; run `pip install "hpcgym[render]"`'
        ) from None
    return pygame


def _follows(earlier: Frame, later: Frame) -> bool:
    """Return whether two frames can be of one episode, the later one later."""
    return (
        (earlier.title, earlier.machine_processors) == (later.title, later.machine_processors)
        and earlier.now <= later.now
        and set(earlier.started.job.tolist()) <= set(later.started.job.tolist())
    )


class _Pen:
    """Draws shapes and words on a surface."""

    def __init__(self, surface: pygame.Surface) -> None:
        self.pygame = _pygame()
        self.surface = surface
        self.pygame.font.init()
        self._fonts = {
            size: self.pygame.font.Font(None, size) for size in (FONT, FONT_SMALL, FONT_LARGE)
        }

    def rectangle(self, box: Box, color: Color, edge: Color | None = None) -> None:
        """Fill a box, with a thin edge where it is large enough to show one."""
        self.pygame.draw.rect(self.surface, color, box)
        if edge is not None and box[2] > 3 and box[3] > 3:
            self.pygame.draw.rect(self.surface, edge, box, 1)

    def line(self, start: Point, end: Point, color: Color, width: int = 1) -> None:
        """Draw a straight line."""
        self.pygame.draw.line(self.surface, color, start, end, width)

    def hatch(self, box: Box, color: Color, ground: Color) -> None:
        """Fill a box with slanted lines."""
        clip = self.surface.get_clip()
        left, top, width, height = box
        self.rectangle(box, ground)
        self.surface.set_clip(clip.clip(self.pygame.Rect(box)))
        first = left - height - (left - height) % 7
        for x in range(first, left + width, 7):
            self.line((x, top + height), (x + height, top), color)
        self.surface.set_clip(clip)
        self.pygame.draw.rect(self.surface, color, box, 1)

    def words(
        self, text: str, at: Point, color: Color = _INK, size: int = 0, align: str = "left"
    ) -> int:
        """Write a line whose top left, centre or right is at a point; return its width."""
        image = self._fonts[size or FONT].render(text, True, color)
        width = image.get_width()
        shift = {"left": 0, "centre": width // 2, "right": width}[align]
        self.surface.blit(image, (at[0] - shift, at[1]))
        return int(width)


def _draw(frame: Frame, placement: Placement) -> pygame.Surface:
    """Draw a whole frame."""
    game = _pygame()
    surface: pygame.Surface = game.Surface(IMAGE_SIZE, 0, 32)
    surface.fill(_PAPER)
    pen = _Pen(surface)
    axis = time_axis(frame)
    _draw_header(pen, frame)
    _draw_axes(pen, frame, axis)
    surface.set_clip(game.Rect(CHART))
    _draw_jobs(pen, frame, axis, placement)
    _draw_reservation(pen, frame, axis, placement)
    surface.set_clip(None)
    _draw_now(pen, frame, axis)
    _draw_legend(pen)
    _draw_queue(pen, frame)
    return surface


def _draw_header(pen: _Pen, frame: Frame) -> None:
    """Write scenario, time and load."""
    busy, size = frame.busy_processors, frame.machine_processors
    left = CHART[0]
    pen.words(frame.title, (left, 16), size=FONT_LARGE)
    pen.words(
        f"{clock(frame.now)}     {busy:,} of {size:,} processors busy ({busy / size:.0%})     "
        f"running jobs: {int(frame.started.running.sum()):,}",
        (left, 46),
        _FAINT,
    )


def _draw_axes(pen: _Pen, frame: Frame, axis: TimeAxis) -> None:
    """Draw the background of the machine, its size and the marks of time."""
    left, top, width, height = CHART
    pen.rectangle(CHART, _MACHINE)
    begin = max(_x(axis, 0), left)
    if begin > left:
        pen.rectangle((left, top, min(begin, left + width) - left, height), _PAPER)
    for instant in axis.ticks():
        x = _x(axis, instant)
        pen.line((x, top), (x, top + height + 4), _LINE)
        pen.words(
            tick_label(instant, axis.tick), (x, top + height + 8), _FAINT, FONT_SMALL, "centre"
        )
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = top + height - round(share * height)
        count = round(share * frame.machine_processors)
        pen.line((left - 4, y), (left, y), _FAINT)
        pen.words(f"{count:,}", (left - 8, y - 6), _FAINT, FONT_SMALL, "right")
    pen.words("processors", (left - 50, top - 20), _FAINT, FONT_SMALL)


def _draw_jobs(pen: _Pen, frame: Frame, axis: TimeAxis, placement: Placement) -> None:
    """Draw each job: pale if it has ended, full while it runs, tinted to its estimated end."""
    now = _x(axis, frame.now)
    running = set(frame.started.job[frame.started.running].tolist())
    for job, start, end in jobs_in_view(frame, axis):
        color = _JOBS[job % len(_JOBS)]
        from_x, to_x = _x(axis, start), _x(axis, end)
        for interval in placement.intervals.get(job, []):
            top, height = _y(frame, interval)
            if job not in running:
                pale = _mixed(color, _MACHINE, 0.45)
                box = (from_x, top, max(to_x - from_x, 1), height)
                pen.rectangle(box, pale, _mixed(color, _MACHINE, 0.65))
                continue
            tint = _mixed(color, _MACHINE, 0.2)
            pen.rectangle(
                (now, top, max(to_x - now, 1), height), tint, _mixed(color, _MACHINE, 0.5)
            )
            pen.rectangle(
                (from_x, top, max(now - from_x, 1), height), color, _mixed(color, _INK, 0.8)
            )


def _draw_reservation(pen: _Pen, frame: Frame, axis: TimeAxis, placement: Placement) -> None:
    """Hatch the reservation of the head."""
    head = frame.reservation
    if head is None:
        return
    from_x = _x(axis, head.shadow_time)
    to_x = _x(axis, head.shadow_time + head.estimate)
    free = placement.free_at(frame.started, head.shadow_time)
    for interval in fit(free, head.processors):
        top, height = _y(frame, interval)
        pen.hatch((from_x, top, max(to_x - from_x, 6), height), _HEAD, _HEAD_TINT)


def _draw_now(pen: _Pen, frame: Frame, axis: TimeAxis) -> None:
    """Draw the machine's edge, and the line between what happened and what is planned."""
    pen.pygame.draw.rect(pen.surface, _FAINT, CHART, 1)
    _, top, _, height = CHART
    x = _x(axis, frame.now)
    pen.line((x, top - 6), (x, top + height), _NOW, 2)
    pen.words("now", (x, top - 20), _NOW, FONT_SMALL, "centre")


def _draw_legend(pen: _Pen) -> None:
    """Write what the shades mean."""
    left, top, _, height = CHART
    x, y = left, top + height + 36
    color = _JOBS[0]
    for shade, text in (
        (_mixed(color, _MACHINE, 0.45), "ended"),
        (color, "runs"),
        (_mixed(color, _MACHINE, 0.2), "until its estimated end"),
        (None, "reserved for the head"),
    ):
        if shade is None:
            pen.hatch((x, y, 22, 12), _HEAD, _HEAD_TINT)
        else:
            pen.rectangle((x, y, 22, 12), shade, _mixed(color, _INK, 0.8))
        x += 30 + pen.words(text, (x + 30, y), _FAINT, FONT_SMALL) + 26


def _draw_queue(pen: _Pen, frame: Frame) -> None:
    """List the waiting jobs, each with a bar for its share of the machine."""
    left, top, width, height = QUEUE
    waiting = frame.waiting
    head = frame.reservation
    total = int(waiting.processors.sum())
    pen.words(f"waiting jobs: {len(waiting.job_id):,}", (left, 16), size=FONT_LARGE)
    pen.words(f"for {total:,} processors in all", (left, 46), _FAINT)
    columns = (left + 62, left + 140, left + 210, left + width - 6)
    for x, title in zip(columns, ("job", "processors", "estimate", "waited"), strict=True):
        pen.words(title, (x, top - 20), _FAINT, FONT_SMALL, "right")
    n_rows = height // ROW_HEIGHT
    n_shown = len(waiting.job_id) if len(waiting.job_id) <= n_rows else n_rows - 1
    shown = zip(*(column[:n_shown].tolist() for column in waiting), strict=True)
    for row, (job, job_id, wait, estimate, processors, thresholded) in enumerate(shown):
        y = top + row * ROW_HEIGHT
        bar = max(round(width * processors / frame.machine_processors), 2)
        box = (left, y, bar, ROW_HEIGHT - 3)
        if head is not None and job == head.job:
            pen.hatch(box, _mixed(_HEAD, _HEAD_TINT, 0.35), _HEAD_TINT)
        else:
            pen.rectangle(box, _mixed(_JOBS[job % len(_JOBS)], _PAPER, 0.25))
        texts = (f"{job_id}", f"{processors:,}", duration(estimate), duration(wait))
        for x, text in zip(columns, texts, strict=True):
            color = _NOW if thresholded and x == columns[-1] else _INK
            pen.words(text, (x, y + 4), color, FONT_SMALL, "right")
    if n_shown < len(waiting.job_id):
        y = top + n_shown * ROW_HEIGHT + 4
        pen.words(f"and {len(waiting.job_id) - n_shown:,} more", (left, y), _FAINT, FONT_SMALL)
    y = top + height + 36
    if waiting.thresholded.any():
        pen.words("red: over the threshold", (left, y - 18), _NOW, FONT_SMALL)
    if head is not None:
        pen.words(
            f"head: job {head.job_id}, reserved in {duration(head.shadow_time - frame.now)}, "
            f"{head.extra_processors:,} extra",
            (left, y),
            _HEAD,
            FONT_SMALL,
        )


def _x(axis: TimeAxis, instant: int) -> int:
    """Return the column of an instant, clipped near the chart."""
    left, _, width, _ = CHART
    share = (instant - axis.first) / (axis.last - axis.first)
    return left + round(width * min(max(share, -0.1), 1.1))


def _y(frame: Frame, interval: Interval) -> tuple[int, int]:
    """Return top and height of some processors."""
    _, top, _, height = CHART
    low, high = (round(height * end / frame.machine_processors) for end in interval)
    return top + height - max(high, low + 1), max(high - low, 1)


@lru_cache(maxsize=256)
def _mixed(color: Color, other: Color, share: float) -> Color:
    """Mix a share of one colour with another."""
    red, green, blue = (
        round(share * one + (1 - share) * two) for one, two in zip(color, other, strict=True)
    )
    return red, green, blue
