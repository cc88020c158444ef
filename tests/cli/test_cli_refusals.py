"""What a command cannot do is refused in one line that says what is allowed."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., str]

LOG = """\
; MaxProcs: 4
 1 100 -1  10  4 -1 -1  4  20 -1  1  1 -1 -1 -1 -1 -1 -1
 2 105 -1  30  4 -1 -1  4  30 -1  1  1 -1 -1 -1 -1 -1 -1
"""
NODES = '[[nodes]]\ncount = 4\ncpus = 1\ngroup = "left"\n'

HUGE = 99999999999999999999
LONGER = "9" * 5000

SIMULATE = {
    "--policy SFP": "unknown policy 'SFP' ... did you mean 'SPF'",
    "--policy q=1,ee=2": "unknown feature 'ee' ... did you mean 'e'",
    "--policy q=one": "weight of q must be a number",
    "--backfill esay": "did you mean 'easy'",
    "--backfill-order SPFF": "did you mean 'SPF'",
    "--threshold -5": "--threshold '-5' ... whole seconds, 0 to ... 'none'",
    "--threshold 1.5": "--threshold '1.5' ... whole seconds",
    "--estimates exat": "did you mean 'exact'",
    "--correction reqtme": "did you mean 'reqtime'",
    "--correction reqtime": "no job outlives its estimate",
    "--event-semantics pys": "did you mean 'pyss'",
    "--event-semantics pyss --no-kill": "pyss",
    "--missing-request maxx": "did you mean 'max'",
    "--on-bad-line dorp": "on_bad_line ... drop",
    "--processors 0": "processors must be a whole number from 1",
    "--processors -4": "processors must be a whole number from 1",
    "--processors 1": "no job remains",
    "--max-request 0": "max_request",
    "--top 3": "--top 3 ... with --by",
    "--by user --top 0": "--top 0 ... at least 1",
    "--format tabel": "did you mean 'table' ... markdown",
    "--by usr": "did you mean 'user'",
    "--by partition": "partitions need a machine of nodes ... --machine",
    "--by resource": "need a machine of nodes ... --machine",
    "--output out.txt": "must end in .batsim.csv, .csv, .parquet, .swf or .swf.gz",
    "--output /proc/folder/out.csv": "cannot make this folder",
    "--seed 0": "--seed has no effect without --missing-request tsafrir",
    "--placement lowest": "--placement has no effect without --machine",
    "--requested-memory": "--requested-memory has no effect without --machine",
    "--alpha 1": "--alpha has no effect without --shapes",
    "--force": "--force has no effect without --output",
    "--columns all": "--columns has no effect without --output",
    "--columns all -o out.swf": "columns are chosen in .csv and .parquet files",
    "--columns al -o out.csv": "did you mean 'all'",
    "--backfill gang --threshold 5": "--threshold has no effect with --backfill",
    "--backfill gang --estimates exact": "--estimates has no effect with",
    "--outage 104,120": "--outage '104,120': write FROM,TO,COUNT",
    "--outage 104,120,-2": "--outage '104,120,-2': write FROM,TO,COUNT",
    "--outage 104,104,2": "to must be later than from",
    "--outage 104,120,5": "outages take 5 processors at 104 s; mine has 4",
    "--outage 104,120,nodes=1": "names nodes; on counted processors say how many",
    "--machine nodes.toml --placement locale": "unknown placement 'locale'",
    "--machine nodes.toml --outage 104,120,2": "counts processors; of nodes name those",
    "--machine nodes.toml --outage 104,120,nodes=lefd": "did you mean 'left'",
    "--machine nodes.toml --outage 104,120,nodes=2-4": "there is no 4; allowed are 0-3",
    "--machine nodes.toml --outage 104,x,nodes=2": "write FROM,TO,COUNT",
    "--machine down.toml": "down.toml: [[outage]] 1: to is missing",
}
SIMULATE |= {
    f"--threshold {HUGE}": "0 to 4503599627370496",
    f"--threshold {LONGER}": "0 to 4503599627370496",
    f"--processors {HUGE}": "from 1 to 4503599627370496",
    f"--max-request {HUGE}": "from 1 to 4503599627370496",
    f"--minimum-run-time {HUGE}": "from 0 to 4503599627370496",
    "--minimum-run-time -1": "from 0 to 4503599627370496",
    "--policy q=1e308,e=1e308": "sum of their absolute values",
    f"--backfill depth:k={HUGE}": "whole number >= 1 or inf",
    "--backfill depth:k=1e400": "whole number >= 1 or inf",
    f"--backfill multi-queue:delay={HUGE}": "whole number >= 0",
    f"--backfill multi-queue:bounds={HUGE}": "whole numbers of seconds",
    f"--backfill look-ahead:window={HUGE}": "whole number >= 1 or inf",
}
OF_A_LOG = {
    "--no-kill": "goes with --log only",
    "--backfill easy": "--backfill goes with --log only",
    "--processors 4": "--processors goes with --log only",
    "--threshold 4": "--threshold goes with --log only",
    "--missing-request max": "--missing-request goes with --log only",
    "--on-bad-line drop": "--on-bad-line goes with --log only",
    "--machine=nodes.toml": "--machine goes with --log only",
    "--placement=local": "--placement goes with --log only",
    "--requested-memory": "--requested-memory goes with --log only",
    "--log tiny --placement local": "--placement has no effect without --machine",
    "--log tiny --correction reqtime": "no job outlives its estimate",
    "--log tiny -s tiny": "--log and --scenario are both given",
    "--force": "--force has no effect without --output",
}
EVALUATE = {
    "-s tiny -a FCSF": "unknown agent 'FCSF' ... did you mean 'FCFS'",
    "-s tiny -a FCFS,,SAF": "missing at a comma",
    "-s tiny -a FCFS,fcfs": "two agents are called FCFS",
    "-s tiny -a ee=1": "unknown feature 'ee'",
    "-s tiny --weeks 2": "there is no 2 ... allowed are 1",
    "-s tiny --weeks one": "unknown part 'one' ... or numbers: 1-3,5",
    "-s tiny --jitter 600": "jitter is 600 s and replicas 0",
    "-s tiny --replicas -1": "replicas must be a whole number from 0",
    "-s tiny --on local:0": "local must be a whole number from 1",
    f"-s tiny --on local:{HUGE}": "from 1 to 4096, got",
    f"-s tiny --weeks 1-{HUGE}": "allowed are 1",
    f"-s tiny --weeks {LONGER}": "write them as",
    f"-s tiny --jitter {HUGE} --replicas 1": "from 0 to 4503599627370496",
    "-s tiny --processes 2": "--processes is gone; --on local:8",
    "-s tiny --resume": "--resume goes with --output",
    "-s tinny": "did you mean 'tiny'",
    "-s tinny --output new/results": "did you mean 'tiny'",
    "-s tiny -a FCFS,SFA --output new/results": "did you mean 'SAF'",
    "-s tiny --weeks 99 --output new/results": "there is no 99",
    "-s tiny --jitter 600 --output new/results": "replicas 0",
    "-s tiny --on local:0 --output new/results": "from 1",
    "--log mine.swf --processors 0": "processors must be a whole number from 1",
    "--log mine.swf --threshold soon": "'soon': allowed are whole",
    "--log mine.swf --missing-request run": "true run times",
}
CROSS_VALIDATE = {
    "wieghts": "did you mean 'weights'",
    "weights --scenario tinny": "did you mean 'tiny'",
    "weights --scenario tiny": "too few for 5 blocks",
    "weights --replicas 0": "need both above 0",
    "SAF --seeds 0": "seeds must be a whole number from 1 to",
    "SAF --resume": "--resume goes with --output",
    "SPF --no-baselines --folds=3": "--folds has no effect",
}
PLOT = {
    "--kind gnatt": "did you mean 'gantt'",
    "--kind usage --jobs 5": "shows all jobs",
    "--jobs 0": "1 to 50,000 jobs",
    "--days 5": "write two numbers, as in 14-21",
    "--days 5-3": "must lie below",
    "--days 5-6": "nothing is there",
    "--policy SFA": "did you mean 'SAF'",
    "--backfill esay": "did you mean 'easy'",
    "--placement local": "--machine",
}
SEEDS = {
    "--seeds 0-1 --seed 3": "--seeds takes the place of --seed",
    "--on local:2": "--on shares trainings of several --seeds",
    "--seeds 0-1 --shelf": "--shelf takes one agent",
    "--seeds none": "none",
    "--seeds 0-1 --on locale:2": "did you mean 'local'",
}
OTHERS = {
    "simulate tinny": "did you mean 'tiny'",
    "record tiny-v0 -a SAF -s tiny --seed 3": "--seed has no effect without --epsilon",
    "traces info KTH-SP2-1996-2.1-clnn": "did you mean 'KTH-SP2-1996-2.1-cln'",
    "traces download KTH-SP2-1996-2.1-clnn": "did you mean 'KTH-SP2-1996-2.1-cln'",
    "traces verify KTH-SP2-1996-2.1-clnn": "did you mean 'KTH-SP2-1996-2.1-cln'",
    "agents info SFA": "did you mean 'SAF'",
    "scenarios info kth-sp2-week": "did you mean 'kth-sp2-weeks'",
    "traces import sacct.txt -o jobs.txt": "allowed endings: .csv, .csv.gz, .swf, .swf.gz",
    "traces import sacct.txt -o a.csv --counted-from start": 'allowed: "eligible", "submit"',
}
REFUSED = OTHERS | {
    f"{command} {options}": said
    for command, table in (
        ("simulate mine.swf", SIMULATE),
        ("evaluate -a FCFS", OF_A_LOG),
        ("cross-validate FCFS", OF_A_LOG),
        ("evaluate", EVALUATE),
        ("cross-validate", CROSS_VALIDATE),
        ("plot tiny -o out.png", PLOT),
        ("train -s tiny -o out", SEEDS),
    )
    for options, said in table.items()
}
"""Commands, and parts of what each says."""


@pytest.mark.parametrize("command", REFUSED, ids=lambda command: command[:60])
def test_what_cannot_be_is_one_line_that_says_what_is_allowed(
    refuse: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    if command.startswith("plot"):
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    files = {
        "mine.swf": LOG,
        "nodes.toml": NODES,
        "down.toml": f"{NODES}[[outage]]\nfrom = 1\n",
        "sacct.txt": "JobID|State|Submit|Start|End|NCPUS\n1|COMPLETED|10|20|90|4\n",
    }
    for name, text in files.items():
        Path(name).write_text(text)
    said = refuse(*shlex.split(command))
    assert all(part in said for part in REFUSED[command].split(" ... ")), said
    assert {path.name for path in tmp_path.iterdir()} == files.keys()
