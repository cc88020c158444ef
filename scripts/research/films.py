"""Animations: an episode, and the same hours of one cluster under two schedulers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium
import numpy as np
from numpy.typing import NDArray

import hpcgym
from hpcgym.agent import RuleAgent, load_agent
from hpcgym.env.scenario.episodes import Episodes
from hpcgym.schedule.schedule import Schedule

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

Run: TypeAlias = tuple[int, int, int, NDArray[np.int64]]
"""Start and end, s; row of the job; its processors."""

SCENARIO, WEEK = "synthetic-busy-weeks", 1
FROM_H, N_FRAMES, FRAME_S, FRAME_MS = 98, 72, 1_200, 150
EPISODE_SEED, EPISODE_FRAMES, EPISODE_FRAME_S, EPISODE_FRAME_MS = 1, 45, 7_200, 250
EPISODE_COLOURS = 64
SIDES = {"FCFS": "first come, first served", "URGENT-YOUNG": "best rules known, with trials"}
WIDTH, HEIGHT, COLUMNS, CELL = 380, 420, 16, 22
BACK, IDLE, INK, WAITING = "#10131a", "#262c38", "#ffffff", "#ff4f5e"
COLOURS = ("#38b6ff", "#ffd23f", "#3ddc97", "#b388ff", "#ff9f45", "#5ce1e6", "#f78fb3", "#a3e635")


def film_two_clusters(path: Path) -> None:
    """Film a day under two schedulers side by side, as a `.gif`."""
    from PIL import Image
    from PIL.ImageDraw import Draw

    weeks = Episodes(SCENARIO)
    jobs = weeks.workload(WEEK - 1)
    processors = jobs.machine_processors
    sides = []
    for name, what in SIDES.items():
        agent = load_agent(name)
        assert isinstance(agent, RuleAgent)
        made = hpcgym.simulate(jobs, **vars(agent.settings(weeks.settings)))
        sides.append((name, what, made, places(made, processors)))
    frames = []
    for frame in range(N_FRAMES):
        now = FROM_H * 3600 + frame * FRAME_S
        image = Image.new("RGB", (2 * WIDTH + 20, HEIGHT), BACK)
        draw = Draw(image)
        for side, (name, what, made, on) in enumerate(sides):
            left = side * (WIDTH + 20) + 14
            draw.text((left, 8), name, INK, font=font(26))
            draw.text((left, 40), what, "#aab4c5", font=font(15))
            _machine(draw, left, 70, on, now)
            waiting = (made.workload.submit_time <= now) & (made.start_time > now)
            _queue(draw, left, 70 + 9 * CELL, int(waiting.sum()))
        clock = f"day {now // 86400 + 1}, {now // 3600 % 24:02}:{now // 60 % 60:02}"
        draw.text((WIDTH + 10, HEIGHT - 14), clock, "#aab4c5", font=font(15), anchor="ms")
        frames.append(image.quantize(32, dither=Image.Dither.NONE))
    first, *others = frames
    first.save(path, save_all=True, append_images=others, duration=FRAME_MS, loop=0, optimize=True)


def film_environment(path: Path) -> None:
    """Film an episode in which SAF decides, a frame whenever some hours have passed."""
    from PIL import Image

    week: dict[str, Any] = {"scenario": "synthetic-256-weeks", "action": "weights"}
    env: Any = gymnasium.make("HPCBatch-v0", **week, render_mode="rgb_array")
    env.reset(seed=EPISODE_SEED)
    frames: list[Image.Image] = []
    while len(frames) < EPISODE_FRAMES:
        _, _, terminated, truncated, _ = env.step(np.array([0, 0, 0, 0, 0, 1], dtype=np.float32))
        if terminated or truncated:
            break
        if env.unwrapped.schedule().start_time.max() >= len(frames) * EPISODE_FRAME_S:
            frames.append(Image.fromarray(np.asarray(env.render())))
    sample = np.vstack([np.asarray(frame) for frame in frames[::6]])
    palette = Image.fromarray(sample).quantize(EPISODE_COLOURS)
    first, *others = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    first.save(
        path, save_all=True, append_images=others, duration=EPISODE_FRAME_MS, loop=0, optimize=True
    )


def font(size: int) -> FreeTypeFont:
    """Return the font of matplotlib, in bold."""
    from matplotlib import font_manager
    from PIL import ImageFont

    return ImageFont.truetype(font_manager.findfont("DejaVu Sans:bold"), size)


def places(made: Schedule, processors: int) -> list[Run]:
    """Give each run, and each attempt in vain, the lowest free processors."""
    rows = np.arange(len(made.start_time))
    taken, end = made.start_time, made.end_time
    if made.attempts is not None:
        frame = made.attempts_frame()
        row_of = {job: row for row, job in enumerate(made.workload.job_id.tolist())}
        rows = frame["job_id"].map(row_of).to_numpy()
        instants = frame[["taken_time", "end_time"]].to_numpy() - made.workload.time_offset
        taken, end = instants.T
    free_from = np.zeros(processors, dtype=np.int64)
    placed = []
    for run in np.lexsort((rows, taken)).tolist():
        lowest = np.flatnonzero(free_from <= taken[run])
        lowest = lowest[: int(made.workload.processors[rows[run]])]
        free_from[lowest] = end[run]
        placed.append((int(taken[run]), int(end[run]), int(rows[run]), lowest))
    return placed


def _machine(draw: ImageDraw, left: int, top: int, runs: Sequence[Run], now: int) -> None:
    """Draw every processor as a cell in the colour of the job on it."""
    colour: dict[int, str] = {}
    for taken, end, job, lowest in runs:
        if taken <= now < end:
            colour |= dict.fromkeys(lowest.tolist(), COLOURS[job % len(COLOURS)])
    for cell in range(128):
        x, y = left + cell % COLUMNS * CELL, top + cell // COLUMNS * CELL
        draw.rectangle((x, y, x + CELL - 3, y + CELL - 3), fill=colour.get(cell, IDLE))


def _queue(draw: ImageDraw, left: int, top: int, waiting: int) -> None:
    """Draw the waiting jobs as squares, and their number."""
    draw.text((left, top), f"{waiting}", WAITING, font=font(54))
    draw.text((left + 120, top + 24), "jobs wait", INK, font=font(20))
    for job in range(min(waiting, 3 * 32)):
        x, y = left + job % 32 * 11, top + 72 + job // 32 * 11
        draw.rectangle((x, y, x + 8, y + 8), fill=WAITING)
