"""Text of sacct as other programs write it: quotes, an index, decimals, dates, delimiters."""

from datetime import datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from hpcgym.base.errors import TraceError
from hpcgym.trace.accounting import read_accounting
from hpcgym.trace.accounting.dates import spelling_of
from hpcgym.trace.accounting.slurm import COMMAND

FIELDS = ["JobID", "JobName", "User", "State", "Submit", "Start", "End", "Elapsed", "Timelimit"]
FIELDS += ["NNodes", "NCPUS", "ReqTRES", "AllocTRES"]
BEGIN = datetime(2026, 2, 11, 8)
TRES = "billing=8,cpu=8,mem=4G,node=2"


def moments(job: int) -> list[datetime]:
    """Submit, start and end of a job."""
    submit = BEGIN + timedelta(hours=7 * job, seconds=job)
    start = submit + timedelta(seconds=60 * job + 5)
    return [submit, start, start + timedelta(days=job % 3, seconds=90 + job)]


def rows(form: str = "%Y-%m-%dT%H:%M:%S", jobs: int = 6) -> list[list[str]]:
    """Rows of jobs; times in a format of strftime, and of the last job unknown."""
    listed = []
    for job in range(1, jobs + 1):
        submit, start, end = (moment.strftime(form) for moment in moments(job))
        days, rest = divmod(int((moments(job)[2] - moments(job)[1]).total_seconds()), 86_400)
        elapsed = f"{days}-{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
        names = [f"name {job}", "ann", "COMPLETED"]
        listed.append([f"{job}", *names, submit, start, end, elapsed, "3-00:00:00", "2", "8"])
        listed[-1] += [TRES, TRES]
    return [*listed, ["99", "waits", "ben", "PENDING", submit, "Unknown", "Unknown", *[""] * 6]]


def text(lines: list[list[str]], delimiter: str = "|", fields: list[str] = FIELDS) -> str:
    """Rows as sacct prints them."""
    return "\n".join(delimiter.join(line) for line in [fields, *lines]) + "\n"


@pytest.fixture
def read(tmp_path: Path):
    """Return a function that writes content to a file and reads it."""

    def reading(content: str | bytes, name: str = "sacct.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_accounting(path, timezone="UTC")

    return reading


@pytest.fixture
def plain(read):
    """What sacct's own text says."""
    return read(text(rows()), "plain.txt")


def alike(found, plain) -> None:
    """Hold that the same runs were found, and as many rows left out."""
    pd.testing.assert_frame_equal(found.runs, plain.runs)
    assert sum(reason.rows for reason in found.ledger.left_out.values()) == 1


@pytest.mark.parametrize(
    "delimiter", ["|", ",", ";", "\t", "§", "¦", "·", "µ", "→", "||", "@@", "\x1f", " | ", "^", " "]
)
def test_any_delimiter_is_read_in_any_encoding(read, plain, delimiter: str) -> None:
    lines = [[cell.replace("name ", "name") for cell in line] for line in rows()]
    plain.runs["executable"] = plain.runs["executable"].str.replace("name ", "name")
    alike(read(text(lines, delimiter)), plain)
    if delimiter in "§¦·µ":
        alike(read(text(lines, delimiter).encode("latin-1")), plain)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quoting", [0, 1, 2])
@pytest.mark.parametrize("index", [True, False])
def test_tables_saved_by_pandas_are_read(read, plain, separator, quoting, index) -> None:
    """As texts, and as pandas' own types: counts with decimals, dates, differences of times."""
    lines = [line if line[0] != "4" else ["4", 'odd "x"', *line[2:]] for line in rows()]
    plain.runs.loc[plain.runs["job_id"] == 4, "executable"] = 'odd "x"'
    frame = pd.DataFrame(lines, columns=FIELDS)
    style = {"sep": separator, "quoting": quoting, "index": index}
    if separator != "|" or quoting:  # within bars quotes are of the name
        alike(read(frame.to_csv(**style)), plain)
    typed = frame.assign(
        **{
            key: pd.to_datetime(frame[key], errors="coerce", format="%Y-%m-%dT%H:%M:%S")
            for key in ("Submit", "Start", "End")
        },
        **{
            key: pd.to_timedelta(frame[key].str.replace("-", " days ").replace("", None))
            for key in ("Elapsed", "Timelimit")
        },
        **{key: pd.to_numeric(frame[key]) for key in ("NNodes", "NCPUS")},
    )
    assert "8.0" in typed.to_csv(**style) and "days" in typed.to_csv(**style)
    if separator != "|" or quoting:
        alike(read(typed.to_csv(**style)), plain)
        alike(read(typed.to_csv(na_rep="NaN", **style)), plain)
    seconds = typed.assign(
        **{
            key: typed[key].map(lambda at: at.timestamp(), na_action="ignore")
            for key in ("Submit", "Start", "End")
        },
        ElapsedRaw=typed["Elapsed"].dt.total_seconds(),
        TimelimitRaw=typed["Timelimit"].dt.total_seconds() / 60,
    ).drop(columns=["Elapsed", "Timelimit"])
    if separator != "|" or quoting:
        alike(read(seconds.to_csv(**style)), plain)


def test_an_index_saved_twice_and_ids_with_decimals_are_read(read, plain) -> None:
    frame = pd.DataFrame(rows(), columns=FIELDS)
    frame.insert(0, "Unnamed: 0", range(len(frame)))
    alike(read(frame.to_csv()), plain)
    frame["JobIDRaw"] = frame["JobID"] + ".0"
    alike(read(frame.to_csv()), plain)
    frame["JobID"] += ".0"
    alike(read(frame.to_csv()), plain)
    alike(read(frame.drop(columns="JobIDRaw").to_csv()), plain)


def test_values_in_quotes_may_hold_delimiters_quotes_and_ends_of_lines(read, plain) -> None:
    frame = pd.DataFrame(rows(), columns=FIELDS)
    names = ['a, "b"', "first\nsecond", "x\r\n\n,y", "plain", '"', "|"]
    frame.loc[:5, "JobName"] = names
    found = read(frame.to_csv(index=False))
    said = found.runs.sort_values("job_id")["executable"].str.replace("\r", "").tolist()
    assert said == [name.replace("\r", "").replace("\n\n", "\n") for name in names]
    alike(read(pd.DataFrame(rows(), columns=FIELDS).to_csv(index=False)), plain)


def test_a_quote_in_a_name_that_no_program_wrote_is_of_the_name(read) -> None:
    lines = rows()
    for row, name in enumerate(['"', '"x"', 'it is 5"', 'a"b|c']):
        lines[row][1] = name
    found = read(text(lines))
    assert found.runs.sort_values("job_id")["executable"].tolist()[:4] == [
        *('"', '"x"', 'it is 5"', 'a"b|c')
    ]


def test_fields_under_two_names_are_one(read, plain) -> None:
    lines = [line[:9] + line[9:11] + line[9:] for line in rows()]
    fields = [*FIELDS[:9], "AllocNodes", "AllocCPUS", *FIELDS[9:]]
    alike(read(text(lines, fields=fields)), plain)
    lines[-1][9:13] = ["0", "0", "2", "8"]  # a job that waits holds none
    alike(read(text(lines, fields=fields)), plain)
    lines[2][10] = "4"
    with pytest.raises(
        TraceError, match=r"sacct\.txt:4: AllocCPUS is '4' and NCPUS '8', which say one thing"
    ):
        read(text(lines, fields=fields))


def test_a_bar_in_a_name_is_told_beside_all_fields_of_sacct(read) -> None:
    """`sacct -o ALL` has texts of users in few fields; beside them every row is a run."""
    closed = ["AveCPU", "CPUTime", "Flags", "NodeList", "TRESUsageInAve", "UID", "Restarts"]
    fields = ["AllocCPUS", *closed, *FIELDS]
    lines = [["8", *["1"] * len(closed), *line] for line in rows()]
    lines[2][fields.index("JobName")] = "a|b||c"
    found = read(text(lines, fields=fields))
    assert found.runs["job_id"].tolist() == [1, 2, 3, 4, 5, 6]
    assert found.runs["executable"].tolist()[2] == "a|b||c"


@pytest.mark.parametrize(
    "form",
    [
        *("%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%Y%m%d-%H%M%S", "%Y%m%d%H%M%S"),
        *("%Y%m%dT%H%M%S", "%Y-%m-%dT%H:%M:%S+0000", "%Y-%m-%d %H:%M:%S UTC", "%d/%m/%Y %H:%M:%S"),
        *("%m/%d/%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%a %b %d %H:%M:%S %Y"),
        *("%A, %d %B %Y %H:%M:%S", "%a %d/%m/%Y %H:%M:%S", "%d-%b-%Y %I:%M:%S %p"),
        *("%H:%M:%S %d/%m/%Y", "%b %d, %Y %I:%M:%S%p", "%m/%d/%y %H:%M:%S"),
    ],
)
def test_times_in_a_format_of_the_site_are_read_where_they_can_be_told(read, plain, form) -> None:
    alike(read(text(rows(form))), plain)


def test_times_without_seconds_are_of_the_minute(read, plain) -> None:
    found = read(text(rows("%d %b %Y %H:%M")))
    assert (found.runs["submit_time"] == plain.runs["submit_time"] // 60 * 60).all()
    assert found.ledger.notes["times by day, month, year"] == 7


@pytest.mark.parametrize("form", ["%d/%m/%Y %H:%M:%S", "%m/%d/%y %H:%M:%S", "%y%m%d%H%M%S"])
def test_dates_that_can_be_read_in_two_ways_are_refused(read, form) -> None:
    early = [[*line[:4], *(datetime(2026, 2, 1).strftime(form),) * 3, *line[7:]] for line in rows()]
    with pytest.raises(TraceError, match=r"can be read as .* or .*, and no row tells which") as why:
        read(text(early))
    assert COMMAND in str(why.value)


@pytest.mark.parametrize(
    "form",
    ["Ystday %H:%M", "%a %H:%M", "%d %b %H:%M", "%H:%M:%S", "%Y-%m-%d", "%Y%m%d", "%d. Mär %Y"],
)
def test_times_without_a_year_or_a_clock_are_refused(read, form) -> None:
    """As SLURM_TIME_FORMAT=relative prints them, and dates alone."""
    with pytest.raises(TraceError, match=r"sacct\.txt: times such as .* do not tell year") as why:
        read(text(rows(form)))
    assert "SLURM_TIME_FORMAT=%s" in str(why.value)


def test_a_weekday_tells_which_number_is_the_month() -> None:
    assert spelling_of(["Sun 01/02/2026 08:00:00"]).order == "day, month, year"
    assert spelling_of(["Fri 01/02/2026 08:00:00"]).order == "month, day, year"


def test_a_span_that_is_a_number_alone_is_of_no_unit(read) -> None:
    fields = ["JobID", "Submit", "Start", "Elapsed", "NCPUS", "State"]
    lines = [["1", "5", "6", "3600", "1", "COMPLETED"], ["2", "5", "6", "1:00", "1", "COMPLETED"]]
    found = read(text(lines, fields=fields))
    assert found.runs["job_id"].tolist() == [2]
    assert list(found.ledger.left_out) == ["elapsed cannot be read"]


@pytest.mark.parametrize("before", ["sep=;\r\n", "# by cron\n", "\n# by cron\n#\n\n"])
@pytest.mark.parametrize("form", ["%Y-%m-%dT%H:%M:%S", "%d/%m/%Y %H:%M:%S"])
def test_a_header_may_stand_below_comments_and_what_excel_says(read, plain, before, form) -> None:
    found = read(before + text(rows(form), ";"), "sacct.csv")
    assert found.runs.equals(plain.runs)
    assert found.lines.min() == before.count("\n") + 2


def test_a_header_is_quoted_as_the_file_has_it(read) -> None:
    with pytest.raises(TraceError, match=r"the header has JobID, AllocCPUS, MyOwn\. Print all by"):
        read('"","JobID","AllocCPUS","MyOwn"\n"1","2","3","4"\n')
    with pytest.raises(TraceError, match="no row is an attempt: there is none"):
        read("|".join(FIELDS))
