"""Jobs that are not submitted yet: what is read of their shapes, and when they would start."""

import pytest
from live_queues import NOW, nodes, reading, runs, waits

from hpcgym.base.errors import LiveError
from hpcgym.site.live.ranges import Range
from hpcgym.site.live.readings import Text, read_queue
from hpcgym.site.live.run_times import no_past
from hpcgym.site.live.shapes import Outlook, Shape, outlooks, shape_of, sooner

QUEUE = reading([waits(1, 16, 600, priority=3)], [runs(9, 12, 700, 100)])
"""Four of 16 cpus are idle; in 600 s job 1 takes all, for 600 s."""


@pytest.mark.parametrize(
    ("text", "limit_s", "n_nodes"),
    [
        ("cpus=4,time=4:00:00", 14_400, 1),
        ("cpus=4, time=1-00:00:30, nodes=1, gres=gpu:2, partition=batch", 86_430, 1),
    ],
)
def test_shapes_are_read(text, limit_s, n_nodes):
    assert shape_of(text, QUEUE) == Shape(text, 4, limit_s, n_nodes, "batch")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cpus=4", "time is missing; allowed: [D-][HH:]MM:SS"),
        ("cpus=4,time=4", "time is 4; allowed"),
        ("cpus=0,time=4:00", "cpus is 0; allowed: a whole number, 1 or more"),
        ("cpus=4,time=4:00,nodes=x", "nodes is x"),
        ("cpu=4,time=4:00", "unknown key 'cpu'; did you mean 'cpus'"),
        ("cpus=4,cpus=5,time=4:00", "cpus needs one value"),
        ("cpus=4,time=", "time needs one value"),
        ("cpus=4,time=4:00,partition=bach", "unknown partition 'bach'; did you mean 'batch'"),
    ],
)
def test_what_is_no_shape_is_refused(text, says):
    with pytest.raises(LiveError) as refused:
        shape_of(text, QUEUE)
    assert says in str(refused.value)


def test_a_job_that_names_no_partition_gets_the_default_or_that_of_most_nodes():
    sinfo = "n1|batch|idle|16|0/16/0/16|1|\nn2|debug*|idle|8|0/8/0/8|1|\n"
    default = read_queue(Text("squeue", ""), Text("sprio", ""), Text("sinfo", sinfo))
    assert shape_of("cpus=4,time=4:00", default).partition == "debug"
    shared = reading(of=(*nodes(16, partition="a"), *nodes(16, 16)))
    assert shape_of("cpus=4,time=4:00", shared).partition == "batch"


def test_partition_is_said_where_there_are_several():
    several = reading(of=(*nodes(16), *nodes(8, partition="debug", first=2)))
    with pytest.raises(LiveError, match="write partition=NAME in it; there are batch, debug"):
        shape_of("cpus=4,time=4:00", several)
    assert shape_of("cpus=4,time=4:00,partition=debug", several).partition == "debug"


def test_each_shape_is_submitted_alone_behind_all_that_wait():
    """What ends before job 1 begins starts now; what does not, when job 1 has ended."""
    texts = ("cpus=4,time=10:00", "cpus=4,time=10:01", "cpus=4,time=10:00", "cpus=17,time=1:00")
    made, said = outlooks(QUEUE, no_past(), [shape_of(text, QUEUE) for text in texts])
    assert [each.wait for each in made] == [0, 1_200, 0, None]
    assert made[1].row(NOW)["start"] == NOW + 1_200
    assert made[1].range is None
    assert made[3].why == "asks 17 cpus; up: 16"
    assert made[3].row(NOW)["start"] is None
    assert said == [each for each in said if each.startswith("no ranges")]
    assert len(said) == 1


def outlook(text, wait, low=None, high=None):
    """Return when a shape would start."""
    known = None if low is None else Range(low, wait, high, 100.0)
    return Outlook(Shape(text, 1, 60, 1, "batch"), wait, known, "")


def test_words_say_which_starts_sooner_and_whether_that_is_sure():
    short, long = outlook("short", 60, 0, 100), outlook("long", 660, 101, 900)
    assert sooner([long, short]) == (
        "Expected to start first: short, 10m00s before the next; ranges do not overlap."
    )
    wide = outlook("long", 660, 99, 900)
    assert sooner([wide, short]).endswith("ranges overlap, so it may be otherwise.")
    assert sooner([outlook("a", 5), short]).endswith("without ranges that is a guess.")
    assert "same time" in sooner([short, short])
    assert sooner([short, outlook("never", None)]) == ""
