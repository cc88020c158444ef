"""What rows of sacct mean, one row after the other in plain Python: the judge of the importer.

Written from section 14 of the specification, and not from the importer. Rows are mappings from
sacct's names of fields to texts; times are seconds since 1970.
"""

import re
from math import ceil, gcd
from typing import Any

RAN = {"COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "CANCELLED"}
RAN |= {"BOOT_FAIL", "DEADLINE", "RESIZING", "SPECIAL_EXIT", "REQUEUE_HOLD", "OUT_OF_ME+"}
NOT_YET = {"PENDING": "still waiting", "RUNNING": "still running", "SUSPENDED": "still suspended"}
NO_TIME = ("", "Unknown", "None")


def moment(text: str) -> int | None:
    """Read a time."""
    return None if text in NO_TIME else int(text)


def span(text: str) -> int:
    """Read [D-]HH:MM:SS."""
    days, _, rest = text.rpartition("-")
    hours, minutes, seconds = map(int, rest.split(":"))
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def amounts(text: str) -> dict[str, str]:
    """Read a list of resources."""
    return dict(part.split("=", 1) for part in text.split(",") if part)


def memory_mb(text: str) -> float:
    """Read an amount of memory."""
    powers = {"K": -1, "M": 0, "G": 1, "T": 2}
    return float(text[:-1]) * 1024.0 ** powers[text[-1]]


def run_of(row: dict[str, str]) -> dict[str, Any] | str:
    """Return what a row says of a run, or why it is none."""
    if "." in row["JobID"]:
        return "step of a job"
    if "[" in row["JobID"]:
        return "array tasks that never started"
    state = row["State"].split(" ")[0]
    if state in NOT_YET:
        return NOT_YET[state]
    if state not in RAN:
        return "ran on another cluster (REVOKED)"
    submit, eligible, start = (moment(row[key]) for key in ("Submit", "Eligible", "Start"))
    if start is None:
        return "cancelled before its start" if state == "CANCELLED" else "no start"
    elapsed = int(row["ElapsedRaw"]) if row["ElapsedRaw"] else span(row["Elapsed"])
    wanted, given = amounts(row["ReqTRES"]), amounts(row["AllocTRES"])
    cpus = int(row["ReqCPUS"] or wanted.get("cpu") or row["NCPUS"])
    nodes, gpus = int(row["ReqNodes"]), int(wanted.get("gres/gpu", 0))
    spread = nodes > 1 and cpus % nodes == 0
    chunks = nodes if spread else gcd(cpus, gpus) if gpus else cpus
    memory = memory_mb(wanted["mem"]) if "mem" in wanted and "mem" in given else 0
    charged = int(row["NCPUS"])
    if charged % chunks:  # so no chunk could be as large as another
        gpus, memory = ceil(gpus / chunks) * chunks, ceil(memory / chunks) * chunks
        chunks, spread = gcd(charged, gpus) if gpus else charged, False
    limit = row["TimelimitRaw"]
    enters = submit if eligible is None else max(eligible, submit)
    return {
        "job": row["JobID"],
        "submit_time": enters,
        "wait_time": start - enters,
        "run_time": elapsed,
        "requested_time": int(limit) * 60 if limit.isdigit() else None,
        "chunks": chunks,
        "cpus": charged // chunks,
        "gpus": ceil(gpus / chunks),
        "memory_mb": ceil(memory / chunks),
        "spread": spread,
        "user": row["User"],
        "group": row["Account"],
        "partition": row["Partition"],
        "queue": row["QOS"],
        "executable": row["JobName"].strip(),
    }


def used_kb(steps: list[dict[str, str]]) -> int | None:
    """Return what memory a job used by its steps, rows with sacct's fields; None = unknown."""
    largest = None
    for step in steps:
        task_kb = size_kb(step["MaxRSS"])
        total_kb = size_kb(amounts(step["TRESUsageInTot"]).get("mem", ""))
        one_task = step["JobID"].endswith(".batch") or step["NCPUS"] == "1"
        tasks = int(step["NTasks"]) if step["NTasks"] else 1 if one_task else None
        if total_kb == 0 and task_kb == 0:
            continue
        if total_kb == 0 and tasks is None:
            return None
        largest = max(largest or 0, total_kb or task_kb * tasks)
    return largest


def size_kb(text: str) -> int:
    """Read a size: bytes without a unit."""
    if text[-1:].isdigit():
        return ceil(int(text) / 1024)
    return ceil(memory_mb(text) * 1024) if text else 0


def as_text(rows: list[dict[str, str]], fields: list[str], delimiter: str, end: str = "") -> str:
    """Print rows as sacct does, names as they are."""
    lines = [delimiter.join(fields) + end]
    lines += [delimiter.join(row[field] for field in fields) + end for row in rows]
    return "\n".join(lines) + "\n"


def as_job(row: dict[str, str], form: str) -> dict[str, Any]:
    """Return a row as sacct prints it in JSON, numbers in one of the forms that versions have."""

    def number(text: str) -> Any:
        if form == "object":
            return {"set": text not in NO_TIME, "infinite": False, "number": int(text or 0)}
        return None if text in NO_TIME else int(text)

    def resources(text: str) -> list[dict[str, Any]]:
        found = []
        for key, value in amounts(text).items():
            kind, _, name = key.partition("/")
            count = round(memory_mb(value)) if key == "mem" else int(value)
            found.append({"type": kind, "name": name or None, "id": 1, "count": count})
        return found

    job, task = re.fullmatch(r"(\d+)(?:_(\d+))?", row["JobID"]).groups()
    limit: Any = number(row["TimelimitRaw"]) if row["TimelimitRaw"].isdigit() else None
    if limit is None and form == "object":
        limit = {"set": False, "infinite": True, "number": 0}
    state = row["State"].split(" ")[0]
    times = {
        "submission": int(row["Submit"]),
        "eligible": int(row["Eligible"]),
        "start": None if form == "scalar" and row["Start"] in NO_TIME else int_or_0(row["Start"]),
        "end": int_or_0(row["End"]),
        "elapsed": int(row["ElapsedRaw"]),
        "limit": limit,
    }
    return {
        "job_id": int(row["JobIDRaw"]),
        "array": {"job_id": int(job) if task else 0, "task_id": number(task or "")},
        "het": {"job_id": 0, "job_offset": None},
        "state": {"current": state if form == "scalar" else [state], "reason": "None"},
        "time": times,
        "required": {"CPUs": int(row["ReqCPUS"] or 0)},
        "allocation_nodes": int(row["NNodes"]),
        "tres": {"requested": resources(row["ReqTRES"]), "allocated": resources(row["AllocTRES"])},
        "user": row["User"],
        "account": row["Account"],
        "partition": row["Partition"],
        "qos": row["QOS"],
        "name": row["JobName"],
    }


def int_or_0(text: str) -> int:
    """Read a time, 0 where there is none."""
    return moment(text) or 0
