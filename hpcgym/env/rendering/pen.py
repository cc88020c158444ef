"""Shapes, words and colours of a picture, and its chart of the machine over time."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from gymnasium.error import DependencyNotInstalled

from hpcgym.base.errors import ScenarioError
from hpcgym.base.packages import needing
from hpcgym.base.text_table import printable
from hpcgym.env.rendering.frame import TimeAxis
from hpcgym.schedule.allocation import Interval

if TYPE_CHECKING:
    import pygame

IMAGE_SIZE = (1120, 640)  # width and height of the picture as it is drawn, pixels
LARGEST_SIDE = 8_192  # largest width or height that it is scaled to, pixels
CHART = (70, 96, 700, 460)  # left, top, width and height of the machine over time
QUEUE = (804, 96, 286, 460)  # left, top, width and height of the queue
ROW_HEIGHT = 20
FONT_SMALL, FONT, FONT_LARGE = 17, 19, 28

Color = tuple[int, int, int]
Point = tuple[int, int]
Box = tuple[int, int, int, int]  # left, top, width and height, pixels

PAPER: Color = (250, 250, 247)
MACHINE: Color = (255, 255, 255)
LINE: Color = (226, 226, 220)
FAINT: Color = (128, 130, 134)
INK: Color = (38, 42, 50)
NOW: Color = (196, 40, 40)
HEAD: Color = (120, 84, 8)
HEAD_TINT: Color = (252, 240, 205)
JOBS: tuple[Color, ...] = (
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


def import_pygame() -> ModuleType:
    """Import pygame when it is needed, without its greeting."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with needing("rendering", "pygame", error=DependencyNotInstalled):
        import pygame
    return pygame


def checked_frame_size(frame_size: Sequence[int]) -> tuple[int, int]:
    """Return width and height of frames, pixels.

    Raises:
        ScenarioError: They are not two whole numbers from 1 to LARGEST_SIDE.

    Example:
        >>> checked_frame_size([560, 320])
        (560, 320)
    """
    try:
        width, height = map(operator.index, frame_size)
    except (TypeError, ValueError):
        width = height = 0
    if not (1 <= width <= LARGEST_SIDE and 1 <= height <= LARGEST_SIDE):
        raise ScenarioError(
            "frame_size must be (width, height) in pixels, whole numbers from 1 to "
            f"{LARGEST_SIDE}, got {frame_size!r}"
        )
    return width, height


def fitted(picture: pygame.Surface, frame_size: tuple[int, int]) -> pygame.Surface:
    """Return a picture scaled into a frame as large as fits, its proportions kept."""
    if frame_size == picture.get_size():
        return picture
    scale = min(side / length for side, length in zip(frame_size, picture.get_size(), strict=True))
    size = [max(round(length * scale), 1) for length in picture.get_size()]
    frame: pygame.Surface = import_pygame().Surface(frame_size, 0, 32)
    frame.fill(PAPER)
    corner = [(side - length) // 2 for side, length in zip(frame_size, size, strict=True)]
    frame.blit(import_pygame().transform.smoothscale(picture, size), corner)
    return frame


class Pen:
    """Draws shapes and words on a surface."""

    def __init__(self, surface: pygame.Surface) -> None:
        self.pygame = import_pygame()
        self.surface = surface
        self.pygame.font.init()
        sizes = (FONT, FONT_SMALL, FONT_LARGE)
        self._fonts = {size: self.pygame.font.Font(None, size) for size in sizes}

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

    @contextmanager
    def inside(self, box: Box) -> Iterator[None]:
        """Draw nothing outside a box."""
        self.surface.set_clip(self.pygame.Rect(box))
        yield
        self.surface.set_clip(None)

    def words(
        self, text: str, at: Point, color: Color = INK, size: int = 0, align: str = "left"
    ) -> int:
        """Write a line whose top left, centre or right is at a point; return its width."""
        image = self._fonts[size or FONT].render(printable(text), True, color)
        width = image.get_width()
        shift = {"left": 0, "centre": width // 2, "right": width}[align]
        self.surface.blit(image, (at[0] - shift, at[1]))
        return int(width)

    def cut(self, text: str, width: int) -> str:
        """Return the start of a small text that is no wider than so many pixels."""
        text, font = printable(text), self._fonts[FONT_SMALL]
        while text and font.size(text)[0] > width:
            text = text.removesuffix("..")[:-1] + ".."
            if text == "..":
                return ""
        return text


class Chart(NamedTuple):
    """The machine over time: where it is drawn, and what its axes show."""

    box: Box  # its place in the picture
    axis: TimeAxis  # time, to the right
    processors: int  # processors, upwards

    def x(self, instant: int) -> int:
        """Return the column of an instant, clipped near the chart."""
        left, _, width, _ = self.box
        share = (instant - self.axis.first) / (self.axis.last - self.axis.first)
        return left + round(width * min(max(share, -0.1), 1.1))

    def y(self, interval: Interval) -> tuple[int, int]:
        """Return top and height of some processors."""
        _, top, _, height = self.box
        low, high = (round(height * end / self.processors) for end in interval)
        return top + height - max(high, low + 1), max(high - low, 1)


@lru_cache(maxsize=256)
def mixed(color: Color, other: Color, share: float) -> Color:
    """Mix a share of one colour with another."""
    pairs = zip(color, other, strict=True)
    red, green, blue = (round(share * first + (1 - share) * second) for first, second in pairs)
    return red, green, blue
