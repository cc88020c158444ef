"""A frame as text, as an RGB array, or in a window.

Time runs to the right, with the present in the middle. On the left is what happened, on the right
what the scheduler plans with: the running jobs until their estimated ends, and the reservation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hpcgym.env.rendering import node_chart
from hpcgym.env.rendering.frame import Frame, Placement, jobs_in_view, placed, time_axis
from hpcgym.env.rendering.pen import (
    CHART,
    FAINT,
    FONT_LARGE,
    FONT_SMALL,
    HEAD,
    HEAD_TINT,
    IMAGE_SIZE,
    INK,
    JOBS,
    LINE,
    MACHINE,
    NOW,
    PAPER,
    QUEUE,
    ROW_HEIGHT,
    Box,
    Chart,
    Pen,
    checked_frame_size,
    fitted,
    import_pygame,
    mixed,
)
from hpcgym.env.rendering.rows import RowPlacement, placed_in_rows
from hpcgym.env.rendering.text import (
    ansi,
    chunks_of,
    clock,
    duration,
    is_used,
    partition_of,
    tick_label,
)
from hpcgym.schedule.allocation import fit

if TYPE_CHECKING:
    import pygame

RenderMode = Literal["ansi", "rgb_array", "human"]


class Viewer:
    """Shows the frames of an environment in one mode, each job where it was first drawn.

    Raises:
        DependencyNotInstalled: The mode needs pygame and it is not installed.
        ScenarioError: The size of frames is none.
    """

    def __init__(
        self, mode: RenderMode, fps: int = 10, frame_size: tuple[int, int] = IMAGE_SIZE
    ) -> None:
        self.mode = mode
        self._fps, self._frame_size = fps, checked_frame_size(frame_size)
        self._placement: Placement | RowPlacement = Placement(1)
        self._last: Frame | None = None
        self._window: pygame.Surface | None = None
        self._clock: pygame.time.Clock | None = None
        if mode != "ansi":
            import_pygame()

    def render(self, frame: Frame) -> str | NDArray[np.uint8] | None:
        """Return text in mode "ansi" and an array in "rgb_array"; show a window in "human"."""
        if self._last is None or not _follows(self._last, frame):
            nodes, size = frame.nodes, frame.machine_processors
            self._placement = RowPlacement(nodes.machine) if nodes else Placement(size)
        self._last = frame
        if self.mode == "ansi":
            return ansi(frame, self._placement)
        if self.mode == "rgb_array":
            return rgb_array(frame, self._placement, self._frame_size)
        self._show(frame)
        return None

    def _show(self, frame: Frame) -> None:
        """Draw a frame in the window, which the first frame opens."""
        pygame = import_pygame()
        if self._window is None:
            pygame.display.init()
            pygame.display.set_caption("hpcgym")
            self._window = pygame.display.set_mode(self._frame_size)
            self._clock = pygame.time.Clock()
        assert self._window is not None and self._clock is not None
        picture = fitted(_draw(frame, self._placement), self._frame_size)
        self._window.blit(picture, (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(self._fps)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            import_pygame().display.quit()
            self._window = None


def rgb_array(
    frame: Frame,
    placement: Placement | RowPlacement | None = None,
    frame_size: tuple[int, int] = IMAGE_SIZE,
) -> NDArray[np.uint8]:
    """Draw a frame without a display, as an image, shape (height, width, 3), uint8.

    A Gantt chart of the processors has the queue beside it. That of a machine of nodes has a row
    for each node, by groups, and a band for each partition.

    Raises:
        DependencyNotInstalled: pygame is not installed.
    """
    pygame = import_pygame()
    surface = fitted(_draw(frame, placement), frame_size)
    width, height = frame_size
    pixels = np.frombuffer(pygame.image.tobytes(surface, "RGB"), dtype=np.uint8)
    return pixels.reshape(height, width, 3).copy()


def _follows(earlier: Frame, later: Frame) -> bool:
    """Return whether two frames can be of one episode, the later one later."""
    return (
        (earlier.title, earlier.machine_processors) == (later.title, later.machine_processors)
        and earlier.now <= later.now
        and set(earlier.started.job.tolist()) <= set(later.started.job.tolist())
    )


def _draw(frame: Frame, placement: Placement | RowPlacement | None) -> pygame.Surface:
    surface: pygame.Surface = import_pygame().Surface(IMAGE_SIZE, 0, 32)
    surface.fill(PAPER)
    pen = Pen(surface)
    _draw_header(pen, frame)
    if frame.nodes is None:
        assert not isinstance(placement, RowPlacement)
        _draw_processors(pen, frame, placed(frame, placement))
    else:
        assert not isinstance(placement, Placement)
        _draw_nodes(pen, frame, placed_in_rows(frame, placement))
    return surface


def _draw_processors(pen: Pen, frame: Frame, placement: Placement) -> None:
    chart = Chart(CHART, time_axis(frame), frame.machine_processors)
    _draw_time_axis(pen, chart)
    _draw_processor_axis(pen, frame)
    with pen.inside(CHART):
        _draw_jobs(pen, frame, chart, placement)
        _draw_reservation(pen, frame, chart, placement)
    _draw_now(pen, frame, chart)
    _draw_legend(pen, "reserved for the head")
    _draw_queue(pen, frame, QUEUE)
    _write_head(pen, frame)


def _draw_nodes(pen: Pen, frame: Frame, placement: RowPlacement) -> None:
    assert frame.nodes is not None
    chart = Chart(node_chart.NODES_CHART, time_axis(frame), frame.machine_processors)
    _draw_time_axis(pen, chart)
    with pen.inside(node_chart.NODES_CHART):
        node_chart.draw_rows(pen, chart, placement.rows)
        _draw_jobs(pen, frame, chart, placement)
        node_chart.draw_heads(pen, frame.nodes, chart, placement.rows)
    unnamed = node_chart.draw_node_axis(pen, frame.nodes, chart, placement.rows)
    _draw_now(pen, frame, chart)
    _draw_legend(pen, "a head's earliest start")
    node_chart.note_on_rows(pen, frame.nodes, placement.rows, unnamed)
    _draw_queue(pen, frame, node_chart.queue_above(frame.nodes))
    node_chart.draw_partitions(pen, frame.nodes)
    node_chart.write_heads(pen, frame, frame.nodes)


def _draw_header(pen: Pen, frame: Frame) -> None:
    """Write scenario, time and load."""
    busy, size = frame.busy_processors, frame.machine_processors
    left = CHART[0]
    pen.words(frame.title, (left, 16), size=FONT_LARGE)
    load = (
        f"{clock(frame.now)}     {busy:,} of {size:,} processors busy ({busy / size:.0%})     "
        f"running jobs: {int(frame.started.running.sum()):,}"
    )
    if frame.nodes is not None:
        used = is_used(frame.nodes)
        load += f"     {int((~used).sum()):,} of {len(used):,} nodes idle"
    pen.words(load, (left, 46), FAINT)


def _draw_time_axis(pen: Pen, chart: Chart) -> None:
    """Draw the background of the machine, and the marks of time."""
    left, top, width, height = chart.box
    pen.rectangle(chart.box, MACHINE)
    begin = max(chart.x(0), left)
    if begin > left:
        pen.rectangle((left, top, min(begin, left + width) - left, height), PAPER)
    for instant in chart.axis.ticks():
        x = chart.x(instant)
        pen.line((x, top), (x, top + height + 4), LINE)
        label = tick_label(instant, chart.axis.tick)
        pen.words(label, (x, top + height + 8), FAINT, FONT_SMALL, "centre")


def _draw_processor_axis(pen: Pen, frame: Frame) -> None:
    """Draw the machine's size."""
    left, top, _, height = CHART
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = top + height - round(share * height)
        count = round(share * frame.machine_processors)
        pen.line((left - 4, y), (left, y), FAINT)
        pen.words(f"{count:,}", (left - 8, y - 6), FAINT, FONT_SMALL, "right")
    pen.words("processors", (left - 50, top - 20), FAINT, FONT_SMALL)


def _draw_jobs(pen: Pen, frame: Frame, chart: Chart, placement: Placement | RowPlacement) -> None:
    """Draw each job: pale if it has ended, full while it runs, tinted to its estimated end."""
    now = chart.x(frame.now)
    running = set(frame.started.job[frame.started.running].tolist())
    for job, start, end in jobs_in_view(frame, chart.axis):
        color = JOBS[job % len(JOBS)]
        from_x, to_x = chart.x(start), chart.x(end)
        for interval in placement.intervals.get(job, []):
            top, height = chart.y(interval)
            if job not in running:
                pale = mixed(color, MACHINE, 0.45)
                box = (from_x, top, max(to_x - from_x, 1), height)
                pen.rectangle(box, pale, mixed(color, MACHINE, 0.65))
                continue
            tint = mixed(color, MACHINE, 0.2)
            pen.rectangle((now, top, max(to_x - now, 1), height), tint, mixed(color, MACHINE, 0.5))
            past = (from_x, top, max(now - from_x, 1), height)
            pen.rectangle(past, color, mixed(color, INK, 0.8))


def _draw_reservation(pen: Pen, frame: Frame, chart: Chart, placement: Placement) -> None:
    head = frame.reservation
    if head is None:
        return
    from_x = chart.x(head.shadow_time)
    to_x = chart.x(head.shadow_time + head.estimate)
    free = placement.free_at(frame.started, head.shadow_time)
    for interval in fit(free, head.processors):
        top, height = chart.y(interval)
        pen.hatch((from_x, top, max(to_x - from_x, 6), height), HEAD, HEAD_TINT)


def _draw_now(pen: Pen, frame: Frame, chart: Chart) -> None:
    """Draw the machine's edge, and the line between what happened and what is planned."""
    pen.pygame.draw.rect(pen.surface, FAINT, chart.box, 1)
    _, top, _, height = chart.box
    x = chart.x(frame.now)
    pen.line((x, top - 6), (x, top + height), NOW, 2)
    pen.words("now", (x, top - 20), NOW, FONT_SMALL, "centre")


def _draw_legend(pen: Pen, hatched: str) -> None:
    left, top, _, height = CHART
    x, y = left, top + height + 36
    color = JOBS[0]
    for shade, text in (
        (mixed(color, MACHINE, 0.45), "ended"),
        (color, "runs"),
        (mixed(color, MACHINE, 0.2), "until its estimated end"),
        (None, hatched),
    ):
        if shade is None:
            pen.hatch((x, y, 22, 12), HEAD, HEAD_TINT)
        else:
            pen.rectangle((x, y, 22, 12), shade, mixed(color, INK, 0.8))
        x += 30 + pen.words(text, (x + 30, y), FAINT, FONT_SMALL) + 26


def _draw_queue(pen: Pen, frame: Frame, box: Box) -> None:
    """List the waiting jobs, each with a bar for its share of the machine."""
    left, top, width, height = box
    waiting = frame.waiting
    total = int(waiting.processors.sum())
    pen.words(f"waiting jobs: {len(waiting.job_id):,}", (left, 16), size=FONT_LARGE)
    pen.words(f"for {total:,} processors in all", (left, 46), FAINT)
    places, titles = zip(*(_COLUMNS if frame.nodes is None else _NODES_COLUMNS), strict=True)
    columns = [left + offset for offset in places]
    for x, title in zip(columns, titles, strict=True):
        pen.words(title, (x, top - 20), FAINT, FONT_SMALL, "right")
    n_rows = height // ROW_HEIGHT
    n_shown = len(waiting.job_id) if len(waiting.job_id) <= n_rows else n_rows - 1
    for row in range(n_shown):
        _draw_waiting(pen, frame, row, (left, top + row * ROW_HEIGHT, width, ROW_HEIGHT), columns)
    if n_shown < len(waiting.job_id):
        y = top + n_shown * ROW_HEIGHT + 4
        pen.words(f"and {len(waiting.job_id) - n_shown:,} more", (left, y), FAINT, FONT_SMALL)
    if waiting.thresholded.any():
        y = CHART[1] + CHART[3] + 18
        pen.words("red: over the threshold", (left, y), NOW, FONT_SMALL)


def _draw_waiting(pen: Pen, frame: Frame, row: int, box: Box, columns: Sequence[int]) -> None:
    """Draw one waiting job, with what is written of it right-aligned in columns."""
    left, y, width, height = box
    job, processors = int(frame.waiting.job[row]), int(frame.waiting.processors[row])
    bar = left, y, max(round(width * processors / frame.machine_processors), 2), height - 3
    if job in frame.shadow_times:
        pen.hatch(bar, mixed(HEAD, HEAD_TINT, 0.35), HEAD_TINT)
    else:
        pen.rectangle(bar, mixed(JOBS[job % len(JOBS)], PAPER, 0.25))
    is_red = bool(frame.waiting.thresholded[row])
    for x, text in zip(columns, _queue_texts(frame, row), strict=True):
        color = NOW if is_red and x == columns[-1] else INK
        pen.words(text, (x, y + 4), color, FONT_SMALL, "right")


_COLUMNS = ((62, "job"), (140, "processors"), (210, "estimate"), (QUEUE[2] - 6, "waited"))
"""Right edges and titles of the queue's columns."""
_NODES_COLUMNS = (
    (48, "job"),
    (114, "partition"),
    (170, "chunks"),
    (231, "estimate"),
    (QUEUE[2] - 6, "waited"),
)


def _queue_texts(frame: Frame, row: int) -> tuple[str, ...]:
    """Return what is written of a waiting job."""
    waiting = frame.waiting
    times = duration(int(waiting.estimate[row])), duration(int(waiting.wait_time[row]))
    if frame.nodes is None:
        return f"{waiting.job_id[row]}", f"{waiting.processors[row]:,}", *times
    return f"{waiting.job_id[row]}", partition_of(frame, row)[:9], chunks_of(frame, row), *times


def _write_head(pen: Pen, frame: Frame) -> None:
    """Write the reservation of the head below the queue."""
    head = frame.reservation
    if head is None:
        return
    pen.words(
        f"head: job {head.job_id}, reserved in {duration(head.shadow_time - frame.now)}, "
        f"{head.extra_processors:,} extra",
        (QUEUE[0], QUEUE[1] + QUEUE[3] + 36),
        HEAD,
        FONT_SMALL,
    )
