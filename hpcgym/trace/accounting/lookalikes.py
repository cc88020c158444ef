"""What a file looks like that is no log: its name among people, and what would be read instead."""

from __future__ import annotations

import re
from typing import NamedTuple

from hpcgym.trace.accounting.slurm import COMMAND
from hpcgym.trace.swf import GWF_FIELDS

_SACCT = f"print it by: {COMMAND}"
_JSON_OF_SLURM = "sacct --json and squeue --json print a list jobs, each with a job_id"
_NO_LOG = "a log is text, or Parquet"
_MACHINE = "simulate --machine FILE takes it, beside a log"
_UNPACK = "take the log out of it"
_SEEN = 4000  # characters behind the first comments that are looked at

_COMMENTS = re.compile(r"(?:[ \t]*(?:[#;][^\n]*)?\n)*")


class Lookalike(NamedTuple):
    """A kind of file: what begins so, what it is, and what would be read instead."""

    begins: re.Pattern[str]
    what: str
    instead: str


def _like(begins: str, what: str, instead: str) -> Lookalike:
    """Make an entry of a pattern, which a text matches at its beginning."""
    return Lookalike(re.compile(begins, re.ASCII), what, instead)


_STATE = r"\b(?:COMPLETED|FAILED|TIMEOUT|CANCELLED|NODE_FAIL|OUT_OF_MEMORY|PENDING|RUNNING)\b"
_MOMENT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
_ID = r"\"?\d[\w.+\[\],%-]{0,60}\"?"
_LOOKALIKES = (
    _like(r"PK\x03\x04", "a zip archive, such as .zip, .xlsx or .npz", _UNPACK),
    _like(r"7z\xbc\xaf|Rar!|(?s:.{257})ustar", "an archive, such as .tar, .7z or .rar", _UNPACK),
    _like(
        '\\(\xb5/\xfd|\x1f\x9d|\x04"M\x18',
        "packed by another program than gzip, bzip2 and xz",
        "unpack it, or pack it by one of these",
    ),
    _like("\xff\xfe|\xfe\xff|.\0.\0", "text in UTF-16", "make it UTF-8: iconv -f UTF-16 -t UTF-8"),
    _like(r"SQLite format 3|%PDF-", "a database or a PDF", _NO_LOG),
    _like(r"[^\n]*\0|[^\n]{0,400}[\x01-\x06\x0e-\x1a]", "no text", _NO_LOG),
    _like(r"version https://git-lfs", "a pointer of Git LFS to a file", "git lfs pull fetches it"),
    _like(r"\s*<(?i:!doctype html|html)", "a web page, as of a failed download", _NO_LOG),
    _like(r"\s*<(?:\?xml|!--|[A-Za-z])", "XML", "print accounting as text"),
    _like(
        rf"{_ID}(?P<d>[^\w\s.+-]+|\t)(?:[^\n]*{_STATE}|[^\n]*{_MOMENT}[^\n]*(?P=d)[^\n]*{_MOMENT})"
        rf"|(?=[^\n]*(?:{_MOMENT}|\b\d{{10}}\b))[^\n]*[^\w\s]{_STATE}",
        "text of sacct without the line that names its fields, as -n (--noheader) prints it",
        f"leave -n out; {_SACCT}",
    ),
    _like(
        rf"\s*{_ID} +[^\n]*{_STATE}|[ ]*(?:\w+ +)*JobID(?:Raw)?(?: +\w+)+ *\r?\n",
        "text of sacct for people, as it prints without -P",
        f"values are cut short there; {_SACCT}",
    ),
    _like(
        r"\s*JobId=\d",
        "what scontrol show job prints, the jobs of now",
        f"sacct keeps them; {_SACCT}",
    ),
    _like(
        r"\s*(?:(?:Node|Partition|Switch|Cluster)Name|SlurmctldHost)=|Configuration data as",
        "a machine, as scontrol prints it or Slurm's files state it",
        _MACHINE,
    ),
    _like(r"\s*\d+\s+[A-Za-z]\S*\s+\d+\s+\d+(?:\s|$)", "machines of Alea", _MACHINE),
    _like(
        r"\s*[A-Z]\w+\|(?:\w+\|)+\w+\|?\s*\n",
        "what sshare, sacctmgr or sreport prints",
        f"sacct prints jobs, with JobID; {_SACCT}",
    ),
    _like(
        r"\s*JOBID\s[^\n]*\b(?:ST|STATE|NODELIST|TIME_LEFT)\b",
        "what squeue prints for people, the jobs of now",
        f"sacct keeps them; {_SACCT}",
    ),
    _like(
        r"\s*(?:Job Id: |Job [Ii][Dd] +(?:Name|User)|[\w.-]+:\s*\n[^\n]*Req'd)",
        "what qstat of PBS prints, the jobs of now",
        "its accounting is in the folder server_priv/accounting",
    ),
    _like(
        r"\s*(?:job-ID +prior|={20,}\s*\n(?:job_number|qname))",
        "what qstat or qacct of SGE prints",
        "its accounting is the file common/accounting of the cell",
    ),
    _like(
        r"\s*(?:JOBID +USER +STAT|Job <\d)",
        "what bjobs or bhist of LSF prints",
        "its accounting is in the files lsb.acct",
    ),
    _like(
        rf"\s*-?\d+(?:[ \t]+\S+){{{GWF_FIELDS - 1}}}[ \t\r]*(?:\n|$)",
        "GWF of the Grid Workloads Archive, whose fields 17 and 18 are sites",
        "its fields 1 to 16 are those of SWF; make it SWF by: "
        "awk '/^[^#]/{for(i=1;i<17;i++)printf \"%s \",$i; print -1,-1}'",
    ),
    _like(
        r"\s*[+-]?[\d.]+(?P<d>[;,|])[+-]?[\d.]*(?:(?P=d)[+-]?[\d.]*){3}",
        "numbers with no spaces between, and without a line that names columns",
        "SWF has 18 numbers a line with spaces between; a table of jobs names its columns",
    ),
    _like(
        r"\s*(?:\[[\w.]+\]\s|\w+ = )",
        "a configuration, such as a scenario or a machine in TOML",
        "evaluate --scenario FILE and simulate --machine FILE take these",
    ),
)
"""The first that matches counts, of a text that no format which is read has recognised."""


def no_log(head: str) -> str:
    r"""Return what a text looks like that is no log, and what would be read; "" = like nothing.

    Example:
        >>> no_log("PK\x03\x04")
        'it looks like a zip archive, such as .zip, .xlsx or .npz: take the log out of it'
    """
    body = _body(head)
    if body.lstrip()[:1] in ("{", "[") and (json := _json(body)):
        return f"it looks like {json}"
    like = next((each for each in _LOOKALIKES if each.begins.match(body)), None)
    return f"it looks like {like.what}: {like.instead}" if like else ""


def is_batsim(head: str) -> bool:
    """Tell whether JSON is a workload of Batsim."""
    return re.search(r'"(?:subtime|nb_res)"\s*:|"profiles"\s*:\s*\{', head) is not None


def _body(head: str) -> str:
    """Return what stands behind the first comments and blank lines."""
    begun = _COMMENTS.match(head)
    return head[begun.end() if begun else 0 :][:_SEEN]


def _json(body: str) -> str:
    """Return what JSON looks like; "" where it is none."""
    keys = list(dict.fromkeys(re.findall(r'"([^"\\\n]{1,40})"\s*:', body)))
    if is_batsim(body):
        return "a workload of Batsim in JSON: a table of jobs in CSV would be read, or SWF"
    if {"groups", "resources"} <= set(keys):
        return "a machine of AccaSim in JSON: its jobs are SWF; simulate --machine FILE takes TOML"
    if {"sinfo", "nodes"} & set(keys):
        return f"a machine in JSON, as sinfo prints it: {_MACHINE}"
    if not keys:
        return f"JSON: {_JSON_OF_SLURM}" if re.match(r'\s*[\[{]\s*[\[{\]}"]', body) else ""
    if body.lstrip().startswith("[") and "job_id" in keys:
        return "a list of jobs in JSON, without what Slurm prints around it: jq '{jobs: .}'"
    return f"JSON of {', '.join(keys[:6])}: {_JSON_OF_SLURM}"
