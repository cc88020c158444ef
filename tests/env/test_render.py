"""Images of the machine: what they show, and that they need no display."""

import sys
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled
from hypothesis import given
from hypothesis import strategies as st

from hpcgym.base.errors import ScenarioError
from hpcgym.env.rendering.frame import (
    Frame,
    Placement,
    Reservation,
    StartedJobs,
    WaitingJobs,
    time_axis,
)
from hpcgym.env.rendering.text import TEXT_JOBS, TEXT_WIDTH, ansi
from hpcgym.env.rendering.viewer import CHART, IMAGE_SIZE, Viewer, rgb_array
from hpcgym.schedule.allocation import fit


def started(*jobs: tuple[int, int, int, int, bool]) -> StartedJobs:
    """Rows of (job, start, end, processors, running)."""
    columns = zip(*jobs, strict=True) if jobs else ((), (), (), (), ())
    *numbers, running = (np.array(column) for column in columns)
    return StartedJobs(*(column.astype(np.int64) for column in numbers), running.astype(bool))


def waiting(*jobs: tuple[int, int, int, int, int, bool]) -> WaitingJobs:
    """Rows of (job, id, wait, estimate, processors, thresholded)."""
    columns = zip(*jobs, strict=True) if jobs else ((), (), (), (), (), ())
    *numbers, over = (np.array(column) for column in columns)
    return WaitingJobs(*(column.astype(np.int64) for column in numbers), over.astype(bool))


def small_frame() -> Frame:
    """Four processors at 50 s; job A ended, B runs until 80 s, the head wants 4.

    20      50 now  80    100
     BBBBBBBBbbbbbbbb//////
     BBBBBBBBbbbbbbbb//////
     AAAA....--------//////
     AAAA....--------//////
    """
    return Frame(
        title="made by hand, whole",
        machine_processors=4,
        now=50,
        started=started((0, 20, 35, 2, False), (1, 20, 80, 2, True)),
        waiting=waiting((2, 103, 30, 20, 4, False), (3, 104, 5, 100, 3, True)),
        reservation=Reservation(
            job=2, job_id=103, shadow_time=80, extra_processors=0, estimate=20, processors=4
        ),
    )


def empty_frame() -> Frame:
    return Frame("nothing yet", 1, 0, started(), waiting())


def test_text_shows_past_future_reservation_and_queue():
    lines = ansi(small_frame()).splitlines()
    assert lines[0] == "made by hand, whole"
    assert lines[1].split("   ") == [
        *("day 0 00:00:50", "busy 2 of 4 processors (50%)", "running 1", "waiting 2")
    ]
    rows = [line[7:] for line in lines[3:7]]
    assert all(row[46] == "|" for row in rows)
    assert rows[0] == rows[1]  # job B, on the upper two processors
    assert rows[2] == rows[3]  # job A, below
    assert set(rows[0][:46].strip()) == {"B", "."}
    assert rows[0][47:].rstrip(".").strip("/") == "b" * rows[0].count("b")
    assert set(rows[2][:46].strip()) == {"A", "."}
    assert rows[2][47 : 47 + rows[0].count("b")] == "." * rows[0].count("b")
    assert rows[0].count("/") == rows[2].count("/") > 5
    text = "\n".join(lines)
    assert "head: job 103 wants 4 processors for 20 s; reserved in 30 s, day 0 00:01:20" in text
    assert "D       104           3      2 min       5 s  over the threshold" in text


def test_text_of_an_empty_machine_says_so():
    text = ansi(empty_frame())
    assert "head: none, no job is held back" in text
    assert "queue: empty" in text


def test_a_long_queue_is_cut_and_counted():
    many = [(job, job, 10, 100, 1, False) for job in range(TEXT_JOBS + 7)]
    frame = Frame("long", 4, 10, started(), waiting(*many))
    assert "... and 7 more" in ansi(frame)


@st.composite
def frames(draw: st.DrawFn) -> list[Frame]:
    """Frames of one episode in order, of jobs that never hold more processors than there are."""
    size = draw(st.sampled_from([1, 3, 16, 100, 93_312]))
    jobs: list[tuple[int, int, int, int, int]] = []
    now = 0
    for job in range(draw(st.integers(0, 12))):
        now += draw(st.integers(0, 500))
        held = sum(q for _, start, end, _, q in jobs if start <= now < end)
        if held < size:
            run = draw(st.integers(0, 2_000))
            estimate = max(run, 1) * draw(st.integers(1, 50))
            jobs.append((job, now, now + run, now + estimate, draw(st.integers(1, size - held))))
    queue = waiting(
        *(
            (100 + k, 10**k, 10**k, 10 ** (k // 2), 1 + k % size, k % 2 == 0)
            for k in range(draw(st.integers(0, 12)))
        )
    )
    shown = []
    for instant in sorted(draw(st.lists(st.integers(0, now + 3_000), min_size=1, max_size=4))):
        rows = [
            (job, start, end if end <= instant else estimated, q, end > instant)
            for job, start, end, estimated, q in jobs
            if start <= instant
        ]
        busy = sum(row[3] for row in rows if row[4])
        ends = [row[2] for row in rows if row[4]]
        head = Reservation(999, 999, max(ends), 0, 60, size) if busy else None
        shown.append(Frame(f"made {size}", size, instant, started(*rows), queue, head))
    return shown


@given(frames())
def test_text_fits_a_terminal_at_every_instant(shown: list[Frame]):
    for frame in shown:
        lines = ansi(frame).splitlines()
        assert max(map(len, lines)) <= TEXT_WIDTH
        assert len(lines) <= 40


@given(frames())
def test_no_processor_is_drawn_twice_and_every_job_whole(shown: list[Frame]):
    placement = Placement(shown[0].machine_processors)
    for frame in shown:
        jobs = frame.started
        placement.update(jobs)
        held = sorted(
            interval for job in jobs.job[jobs.running] for interval in placement.intervals[job]
        )
        assert all(one[1] <= other[0] for one, other in pairwise(held))
        assert all(0 <= low < high <= frame.machine_processors for low, high in held)
        for job, processors in zip(jobs.job, jobs.processors, strict=True):
            drawn = placement.intervals.get(job, [])
            assert sum(high - low for low, high in drawn) in (0, processors)
            if not drawn:  # a zero-second job holds nothing
                assert not jobs.running[jobs.job == job].any()
        if frame.reservation is not None:
            free = placement.free_at(jobs, frame.reservation.shadow_time)
            assert fit(free, frame.machine_processors) == [(0, frame.machine_processors)]


@given(frames())
def test_a_job_is_drawn_where_it_was_whatever_frames_were_seen(shown: list[Frame]):
    followed = Placement(shown[0].machine_processors)
    for frame in shown:
        followed.update(frame.started)
    alone = Placement(shown[-1].machine_processors)
    alone.update(shown[-1].started)
    assert followed.intervals == alone.intervals


@given(frames())
def test_the_axis_has_the_present_in_its_middle_and_few_marks(shown: list[Frame]):
    for frame in shown:
        axis = time_axis(frame)
        assert frame.now - axis.first == axis.last - frame.now > 0
        assert 1 <= len(axis.ticks()) <= 9
        if frame.reservation is not None:
            assert frame.reservation.shadow_time < axis.last


def test_an_image_is_an_array_of_its_stated_size_made_without_a_display(monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    image = rgb_array(small_frame())
    width, height = IMAGE_SIZE
    assert (image.shape, image.dtype) == ((height, width, 3), np.uint8)
    assert image.flags.c_contiguous
    assert image.flags.writeable
    assert not pygame.display.get_init()
    assert np.array_equal(image, rgb_array(small_frame()))


@pytest.mark.parametrize("size", [(560, 320), (300, 300), (1400, 700), (1, 1)])
def test_an_image_scaled_to_a_size_keeps_its_proportions(size):
    pytest.importorskip("pygame")
    image = rgb_array(small_frame(), frame_size=size)
    width, height = size
    assert image.shape == (height, width, 3)
    if size == (300, 300):
        drawn = (image != image[0, 0]).any(axis=(1, 2)).nonzero()[0]
        assert 64 <= drawn[0] < 70 and 225 < drawn[-1] < 236  # of 300 * 640 / 1120 rows


@pytest.mark.parametrize("size", [(0, 5), (5,), (5, 2.5), "small", 7, (5, 100_000), (3, True, 1)])
def test_a_frame_size_that_is_none_is_refused(size):
    pytest.importorskip("pygame")
    for make in (gymnasium.make, gymnasium.make_vec):
        env = make("HPCBatch-v0", scenario="tiny", render_mode="rgb_array")
        env.metadata["frame_size"] = size
        env.reset(seed=0)
        with pytest.raises(ScenarioError, match=r"frame_size must be \(width, height\)"):
            env.render()


def test_environments_draw_frames_of_the_size_asked_for(monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    one = gymnasium.make("HPCBatch-v0", scenario="tiny", render_mode="rgb_array")
    one.metadata["frame_size"] = [280, 160]
    one.reset(seed=0)
    assert one.render().shape == (160, 280, 3)
    many = gymnasium.make_vec("HPCBatch-v0", num_envs=2, scenario="tiny", render_mode="rgb_array")
    many.metadata["frame_size"] = [280, 160]
    many.reset(seed=0)
    assert [np.array_equal(image, one.render()) for image in many.render()] == [True, True]
    window = gymnasium.make("HPCBatch-v0", scenario="tiny", render_mode="human")
    window.metadata["frame_size"] = [280, 160]
    window.reset(seed=0)
    assert pygame.display.get_surface().get_size() == (280, 160)
    window.close()


def test_an_image_shows_running_jobs_darker_than_their_estimates():
    pytest.importorskip("pygame")
    image = rgb_array(small_frame()).astype(int)
    left, top, width, height = CHART
    row = top + height // 4  # the upper half is job B
    past = image[row, left + width // 2 - 40]
    future = image[row, left + width // 2 + 40]
    assert past.sum() < future.sum() < 3 * 255
    now = image[row, left + width // 2]
    assert now[0] > 2 * now[1]  # the line of the present is red


def test_a_busy_image_and_an_empty_one_can_be_drawn():
    pytest.importorskip("pygame")
    many = [(job, job, 10, 100, 1, True) for job in range(200)]
    jobs = [(job, 0, 10_000_000, 1, True) for job in range(90_000, 93_000)]
    rgb_array(Frame("busy", 93_312, 5, started(*jobs), waiting(*many)))
    rgb_array(empty_frame())


@given(frames())
def test_any_frame_can_be_drawn(shown: list[Frame]):
    pytest.importorskip("pygame")
    viewer = Viewer("rgb_array")
    for frame in shown:
        viewer.render(frame)


def test_a_viewer_shows_what_the_functions_show():
    pytest.importorskip("pygame")
    frame = small_frame()
    assert Viewer("ansi").render(frame) == ansi(frame)
    assert np.array_equal(Viewer("rgb_array").render(frame), rgb_array(frame))


def test_a_viewer_starts_afresh_with_another_episode():
    viewer = Viewer("ansi")
    viewer.render(small_frame())
    other = Frame("made by hand, whole", 4, 60, started((5, 10, 70, 4, True)), waiting())
    assert viewer.render(other) == ansi(other)


def test_a_window_opens_and_closes(monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    viewer = Viewer("human", fps=1000)
    assert viewer.render(small_frame()) is None
    assert viewer.render(empty_frame()) is None
    assert pygame.display.get_surface().get_size() == IMAGE_SIZE
    viewer.close()
    viewer.close()
    assert not pygame.display.get_init()


@pytest.mark.parametrize("mode", ["rgb_array", "human"])
def test_without_pygame_the_error_says_how_to_install_it(mode, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(DependencyNotInstalled, match=r"pygame-ce.*pip install 'hpcgym\[render\]'"):
        Viewer(mode)
    Viewer("ansi").render(small_frame())
