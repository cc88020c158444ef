"""Records of LSF and rows of Grid Engine from known jobs, and what they mean, in plain Python.

Written from section 14 of the specification and from the manuals of both, and not from the readers.
A job is a mapping; times are seconds since 1970.
"""

from typing import Any

T = 1_700_000_000  # when the jobs are

LSF_JOB: dict[str, Any] = {
    "version": "10.108",
    "id": 12,
    "index": 0,
    "submit": T + 1_000,
    "begin": 0,
    "start": T + 1_300,
    "end": T + 1_900,
    "asked": (4, 4),
    "hosts": ["n1"] * 4,
    "slots": None,  # those that the job held; default its hosts
    "options": 2,
    "status": 64,
    "exit_info": 0,
    "limit": -1,
    "run_time": None,  # seconds in the state "run"; default all
    "memory_kb": 2_048,
    "ineligible": -1,
    "condition": "",
    "requirement": "",
    "effective": None,  # default the requirement
    "pairs": [],
    "host_usage": [],
    "to_cluster": "",
    "user": "ann",
    "project": "chem",
    "queue": "normal",
    "name": "",
    "command": "sleep 1",
}

SGE_JOB: dict[str, Any] = {
    "id": 7,
    "task": 0,
    "submit": T + 1_000,
    "start": T + 1_300,
    "end": T + 1_900,
    "failed": 0,
    "exit": 0,
    "slots": 4,
    "pe": "mpi",
    "pe_task": "NONE",
    "category": "-l h_rt=3600 -pe mpi 4",
    "form": 45,  # how many fields; 43 before advance reservations, 52 of Univa
    "qdel": "NONE",
    "user": "ann",
    "unix_group": "staff",
    "account": "sge",
    "project": "NONE",
    "queue": "all.q",
    "name": "job.sh",
}


def quoted(text: str) -> str:
    """Write a text as LSF does."""
    return '"' + text.replace('"', '""') + '"'


def shortened(hosts: list[str]) -> list[str]:
    """Write hosts as LSF does under SHORT_EVENTFILE: 3*n1 for n1 three times."""
    counts: dict[str, int] = {}
    for host in hosts:
        counts[host] = counts.get(host, 0) + 1
    return [host if count == 1 else f"{count}*{host}" for host, count in counts.items()]


def lsf_record(short: bool = False, by_manual: bool = False, **changes: Any) -> str:
    """Write a record JOB_FINISH; `short` has hosts counted, `by_manual` the order of the manual."""
    job = LSF_JOB | changes
    hosts = shortened(job["hosts"]) if short else job["hosts"]
    effective = job["requirement"] if job["effective"] is None else job["effective"]
    fewest, most = job["asked"]
    head: list[Any] = [quoted("JOB_FINISH"), quoted(job["version"]), job["end"], job["id"], 1501]
    head += [job["options"], fewest, job["submit"], job["begin"], 0, job["start"]]
    texts = [job["user"], job["queue"], job["requirement"], job["condition"], "", "login", "/w"]
    head += map(quoted, [*texts, "", "out.txt", "", "1000.12"])
    head += [1, quoted("group"), len(hosts), *map(quoted, hosts), job["status"], "60.0"]
    head += [quoted(job["name"]), quoted(job["command"]), "1.5", "0.25", *[-1] * 17, quoted("")]
    head += [quoted(job["project"]), 0, most]
    if job["version"] == "2.2":
        return " ".join(map(str, [*head, '""']))
    head += ['""', '""', job["index"], job["memory_kb"], 0, '""', '""', '""']
    if job["version"] == "5.1":
        return " ".join(map(str, head))
    head += ['""', 0, '""', job["exit_info"], '""', -1, '"/ann"', '""', '""', '""', -1, '""', '""']
    if job["version"] == "7.06":
        return " ".join(map(str, head))
    head += [1040, '""', job["start"], '""', '""', len(job["pairs"])]
    for key, value in job["pairs"]:
        head += [key, quoted(value)]
    head.append(len(job["host_usage"]))
    for host in job["host_usage"]:
        head += [host, 1306, 0, 50, 2] if by_manual else [host, 1306, 0, 50, 2, 0]
    ran = job["end"] - job["start"] if job["run_time"] is None else job["run_time"]
    head += [64, job["limit"]] if by_manual else [job["limit"], 64]
    head += [2048, quoted(effective), '""', -1, quoted(job["to_cluster"])]
    head += [3 if job["to_cluster"] else -1, 0, 0 if by_manual else '""', 0, 0, '""', ran, '"/w"']
    head += [1, '"18338657682652659712"', 1, '""']
    if job["version"] == "9.11":
        return " ".join(map(str, head))
    slots = job["hosts"] if job["slots"] is None else job["slots"]
    slots = shortened(slots) if short else slots
    head += ["0.000000", "0.00", "0.00", "0.00", "0.00", len(slots), *map(quoted, slots)]
    return " ".join(map(str, [*head, job["ineligible"], 0, 0, 0, 0, 1, '"overhead"', '"0.00"']))


def lsf_run(**changes: Any) -> dict[str, Any]:
    """Return what a record of a job that ran says."""
    job = LSF_JOB | changes
    version = job["version"]
    tail, has_slots = version in ("9.11", "10.1", "10.108"), version in ("10.1", "10.108")
    fewest, most = job["asked"]
    slots = job["hosts"] if job["slots"] is None or not has_slots else job["slots"]
    held = len(slots)
    processors = min(max(held, fewest), most)
    requirement = job["requirement"]
    if tail and job["effective"]:
        requirement = job["effective"]
    each = 1
    if requirement == "span[hosts=1]":
        each = processors
    if requirement.startswith("span[ptile="):
        per_host = int(requirement.removeprefix("span[ptile=").removesuffix("]"))
        if per_host >= processors:
            each = processors
        elif processors % per_host == 0:
            each = per_host
    enters = max(job["submit"], job["begin"])
    if has_slots and job["ineligible"] > 0:
        enters = max(enters, job["submit"] + job["ineligible"])
    enters = min(enters, job["start"])
    run_time = job["end"] - job["start"]
    ran = job["run_time"]
    if tail and ran is not None and 0 < ran < run_time - 60:
        run_time = ran
    index = job["index"] if version != "2.2" else 0
    killed = job["exit_info"] in (8, 9, 14, 15, 23) and version not in ("2.2", "5.1")
    return {
        "submit_time": enters,
        "wait_time": job["start"] - enters,
        "run_time": run_time,
        "requested_time": job["limit"] if tail and job["limit"] > 0 else -1,
        "chunks": processors // each,
        "cpus": each,
        "spread": 1 < each < processors,
        "exclusive": bool(job["options"] & 64),
        "charged": max(held, processors),
        "status": 1 if job["status"] == 64 else 5 if killed else 0,
        "used_memory_kb": -1 if version == "2.2" or job["memory_kb"] <= 0 else job["memory_kb"],
        "user": job["user"],
        "group": job["project"],
        "queue": job["queue"],
        "executable": job["name"].partition("[")[0] if index else job["name"],
    }


def sge_row(**changes: Any) -> str:
    """Write a row of a job; times of Univa are milliseconds."""
    job = SGE_JOB | changes
    times = [job["submit"], job["start"], job["end"]]
    if job["form"] > 45:
        times = [time and time * 1000 + 999 for time in times]
    row: list[Any] = [job["queue"], "node1", job["unix_group"], job["user"], job["name"], job["id"]]
    row += [job["account"], 0, *times, job["failed"], job["exit"]]
    row += [job["end"] - job["start"], "0.12", "0.30", "2700.000000", *[0] * 14]
    row += [job["project"], "defaultdepartment", job["pe"], job["slots"], job["task"], "0.3"]
    row += ["0.000000", "1.5e-05", job["category"], "0.000000", job["pe_task"], "127.0"]
    row += [0, 0, "NONE", job["qdel"], 1024, 0, "login", "/w", "qsub job.sh"]
    return ":".join(map(str, row[: job["form"]]))


def sge_run(**changes: Any) -> dict[str, Any]:
    """Return what a row of a job that ran says."""
    job = SGE_JOB | changes
    asked = {}
    for option in job["category"].split():
        for part in option.split(","):
            key, _, value = part.partition("=")
            asked[key] = value
    text = asked.get("h_rt") or asked.get("s_rt") or "INFINITY"
    limit = -1
    if text != "INFINITY":
        limit = 0
        for part in text.split(":"):
            limit = limit * 60 + int(part)
    deleted = job["form"] > 46 and job["qdel"] != "NONE"
    account = job["unix_group"] if job["account"] == "sge" else job["account"]
    return {
        "submit_time": job["submit"],
        "wait_time": job["start"] - job["submit"],
        "run_time": job["end"] - job["start"],
        "requested_time": limit,
        "chunks": job["slots"],
        "cpus": 1,
        "spread": False,
        "exclusive": False,
        "charged": job["slots"],
        "status": 5 if deleted else 0 if job["failed"] or job["exit"] else 1,
        "used_memory_kb": -1,
        "user": job["user"],
        "group": account if job["project"] == "NONE" else job["project"],
        "queue": job["queue"],
        "executable": job["name"],
    }
