"""The check of a person's own log."""

from hpcgym.trace import check_log, find_trace, read_swf

GOOD = "7 0 -1 10 4 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1"


def test_what_a_log_has_lacks_and_would_lose_is_found(tmp_path):
    path = tmp_path / "mine.swf"
    path.write_text(f"; MaxNodes: 8\n{GOOD}\n1 2\n{GOOD.replace(' 10 ', ' -1 ')}\n")
    found = check_log(read_swf(path, on_bad_line="drop"))
    content = {field.name: field for field in found.fields}
    assert (content["run_time"].known, content["run_time"].smallest) == (1, 10)
    assert (content["requested_time"].known, content["requested_time"].largest) == (0, None)
    assert content["allocated_processors"].largest == 4
    assert (found.header["MaxNodes"], found.header["MaxProcs"]) == ("8", None)
    starts = [text.split(":")[0] for text in found.lacks]
    assert starts == [
        *("wait times", "requested times", "requested processors", "users", "UnixStartTime"),
        "MaxRuntime",
    ]
    assert found.cleaning.count("no run time") == 1
    assert (found.cleaning.jobs, found.cleaning.records) == (1, 3)
    text = str(found)
    for part in ("run_time", "lacks users", "line 3: 2 fields", "dropped", "1 of 3 jobs kept"):
        assert part in text


def test_log_that_cannot_be_used_says_why(tmp_path):
    path = tmp_path / "mine.swf"
    path.write_text(GOOD + "\n" + "1 2\n" * 9)
    found = check_log(read_swf(path, on_bad_line="drop"))
    assert found.cleaning is None
    assert "neither MaxProcs nor MaxNodes" in found.refusal
    assert "It cannot be simulated as it is: " in str(found)
    assert "9 malformed lines, refused unless dropped:" in str(found)
    assert str(found).count("  line ") == 5
    assert check_log(found.log, machine_processors=4).cleaning.jobs == 1


def test_whole_log_lacks_nothing():
    found = check_log(read_swf(find_trace("tiny")))
    assert found.lacks == ()
    assert found.cleaning.jobs == 8
