"""A report of a drawn site: a year, hourly queues, 300 users, 12 days with 1,000 jobs each."""

import numpy as np

HOUR, DAY, YEAR_HOURS = 3_600, 86_400, 8_760
BEGIN = 1_735_689_600
CPUS = ["1", "2-3", "4-7", "8-15", "16-31", "32-63", "64-127", "128-255", "256 or more"]
LIMITS = ["< 10 min", "< 1 h", "< 4 h", "< 12 h", "< 24 h", "< 72 h", "longer"]
CAPACITY = 1_024
SERIES = ("recorded", "today", "saf", "urgent-young")
UNTOLD = "not distinguishable"

OPTIONS = [  # id, name, group, on the first screen, gain, told
    ("recorded", "recorded", "today", True, None, None),
    ("today", "simulated today", "today", True, None, None),
    ("sqf", "SQF", "order", True, 1.1, "better"),
    ("saf", "SAF", "order", True, 1.4, "better"),
    ("wfp3", "WFP3", "order", True, 0.2, UNTOLD),
    ("lqf", "LQF", "order", True, -2.5, "worse"),
    ("none", "no backfilling", "mode", False, -75.0, "worse"),
    ("conservative", "conservative", "mode", False, -0.1, UNTOLD),
    ("limits-saf", "limits, SAF", "limits", False, 1.9, "better"),
    ("machine-973", "973 processors", "machine", False, -3.0, "worse"),
    ("machine-1075", "1,075 processors", "machine", False, 2.1, "better"),
    ("urgent-young", "URGENT-YOUNG", "simulated only", True, 1.6, "better"),
]


def drawn_report(seed=7, *, hours=YEAR_HOURS, users=300, days=12, jobs=1_000):
    """Return a report of the schema that the page takes."""
    chance = np.random.default_rng(seed)
    halves = BEGIN + hours * HOUR // 2
    return {
        "schema": "hpcgym-report-1",
        "version": "0.9",
        "title": "drawn-site",
        "made": "2026-11-26",
        "log": {
            "files": ["acct.txt"],
            "n_jobs": 284_760,
            "begin": BEGIN,
            "utc": True,
            "end": BEGIN + hours * HOUR,
            "split": halves,
            "n_judged": 142_380,
            "machine": "32 nodes, 1,024 cpus",
            "machine_is_guess": True,
            "users": users,
            "utilisation": 0.81,
            "notes": ["left out: gang scheduling, no nodes"],
            "read": ["acct.txt: sacct", "rows 290000, of which 284760 are attempts"],
        },
        "answer": [
            "From 2 July 2025 to 31 December 2025, 142,380 jobs waited 4.2 h in the mean; the "
            "simulation nearest to it (FCFS, backfill easy, no threshold) says 4.4 h.",
            "Under SAF they would wait 1.4 h less (60 % interval 1.0 h to 1.8 h); the simulation "
            "misses 0.6 h.",
            "Those who lose most are jobs of 256 or more cpus: 42 of them would wait 32 h longer; "
            "19% of jobs wait over 10 minutes longer.",
        ],
        "trust": _trust(),
        "options": [_option(*row) for row in OPTIONS],
        "named": "saf",
        "best": "saf",
        "best_any": "urgent-young",
        "groups": {
            "partition": [_group(chance, name) for name in ("batch", "long", "gpu")],
            "account": [_group(chance, f"project-{i}") for i in range(users // 5)],
            "user": [_group(chance, f"user-{chance.integers(2**32):08x}") for _ in range(users)],
            "cpus": [_group(chance, name) for name in CPUS],
            "limit": [_group(chance, name) for name in LIMITS],
        },
        "heat": _heat(chance),
        "queue": _queue(chance, hours),
        "days": [_day(chance, int(i * hours // 24 // days), jobs) for i in range(days)],
        "requests": {
            "used_share": 0.31,
            "median_used": 0.2,
            "memory": {
                "n_jobs": 201_312,
                "mean_used": 0.38,
                "median_used": 0.27,
                "below_quarter": 0.47,
            },
            "histogram": {
                "edges": [i / 10 for i in range(11)],
                "shares": [0.33, 0.19, 0.12, 0.085, 0.067, 0.052, 0.037, 0.032, 0.024, 0.063],
            },
        },
        "machine_sizes": [
            {"id": "machine-973", "processors": 973, "wait_mean": 7.4},
            {"id": "today", "processors": CAPACITY, "wait_mean": 4.4},
            {"id": "machine-1075", "processors": 1_075, "wait_mean": 2.3},
        ],
        "changed": [_changed(i) for i in range(20)],
        "settings": {"today's scheduler": "FCFS, backfill easy", "names": "hashed"},
        "command": "hpcgym report acct.txt --machine nodes.txt",
    }


def _trust():
    waits = {"mean": 4.2, "median": 0.4, "p90": 14.0, "max": 90.0}
    simulated = {"mean": 4.4, "median": 0.5, "p90": 15.1, "max": 80.0}
    sides = {"recorded": waits, "simulated": simulated, "misfit_h": 0.6}
    return {
        "verdict": "rough",
        "setting": "FCFS, backfill easy, no threshold",
        "chosen_among": 16,
        **sides,
        "noise_h": 0.03,
        "correlation": 0.81,
        "same_class": 0.62,
        "fixed_share": 0.12,
        "missed": ["median"],
        "causes": [{"cause": "limits", "n": 90, "share": 0.05, "missing": 0.02, "too_much": 0}],
        "overfull_jobs": 12,
        "partitions": [{"name": name, "n": 47_000, **sides} for name in ("batch", "long", "gpu")],
        "classes": {
            "labels": ["< 1 min", "< 10 min", "< 1 h", "< 8 h", "more"],
            "recorded": [0.4, 0.05, 0.1, 0.25, 0.2],
            "simulated": [0.38, 0.04, 0.08, 0.27, 0.23],
        },
        "candidates": [
            {"setting": "FCFS, backfill easy", "apart": 0.07, "chosen": True},
            {"setting": "SAF, backfill easy", "apart": 11.2, "chosen": False},
        ],
    }


def _option(name_id, name, group, first, gain, told):
    mean = 4.4 - (gain or 0.0)
    loser = {"by": "cpus", "name": "256 or more", "n": 42, "change_h": 32.0}
    return {
        "id": name_id,
        "name": name,
        "group": group,
        "first": first,
        "what": f"what {name} is",
        "settings": f"{name}, backfill easy, no threshold",
        "wait": {"mean": mean, "median": mean / 9, "p90": mean * 3.5, "max": mean * 20},
        "bsld": 87.5,
        "long_share": 0.067,
        "utilisation": 0.77,
        "idle_while_waiting": 0.14,
        "wasted": 0.0,
        "gain_h": gain,
        "told": told,
        "interval_h": None if gain is None else [gain - 0.4, gain + 0.4],
        "losers": None if gain is None else 0.19,
        "winners": None if gain is None else 0.46,
        "worst_group": None if gain is None else loser,
    }


def _group(chance, name):
    mean = float(chance.lognormal(1.0, 1.0))
    waits = {"today": mean * 1.05, "saf": mean * float(chance.uniform(0.3, 1.6))}
    told = ("better", "worse", UNTOLD)
    return {
        "name": name,
        "n": int(chance.lognormal(5, 1.5)) + 1,
        "recorded": mean,
        "core_hours": float(chance.lognormal(7, 2)),
        "waits": {**waits, "urgent-young": mean * 0.7},
        "told": {key: told[int(chance.integers(3))] for key in ("saf", "urgent-young")},
    }


def _heat(chance):
    counts = chance.poisson(40, (len(CPUS), len(LIMITS))) * chance.integers(0, 2, (len(CPUS), 1))
    counts[0], counts[:, -1] = 500, 0
    waits = {}
    for key in SERIES:
        grid = chance.lognormal(0.0, 1.5, counts.shape)
        waits[key] = [
            [float(wait) if n else None for wait, n in zip(*lines, strict=True)]
            for lines in zip(grid, counts, strict=True)
        ]
    return {"cpus": CPUS, "limit": LIMITS, "n": counts.tolist(), "waits": waits}


def _queue(chance, hours):
    walk = np.abs(np.cumsum(chance.normal(0, 6, hours)))
    shape = 1 + 0.4 * np.sin(np.arange(hours) * 2 * np.pi / 24)
    series = {
        key: np.rint(walk * shape * chance.uniform(0.7, 1.1)).astype(int).tolist() for key in SERIES
    }
    busy = {
        key: np.minimum(CAPACITY, chance.normal(850, 120, hours)).astype(int).tolist()
        for key in SERIES
    }
    known = {"step_s": HOUR, "begin": BEGIN, "series": series, "cpus": busy}
    return known | {"capacity": CAPACITY, "capacities": dict.fromkeys(busy, CAPACITY)}


def _day(chance, day, n_jobs):
    widths = 2 ** chance.integers(0, 8, n_jobs)
    schedules = {}
    for key in SERIES:
        low, start, tall, boxes = 0, 0, 0, []
        for job in chance.permutation(n_jobs):
            length = int(chance.integers(600, 20_000))
            if low + widths[job] > CAPACITY:
                low, start, tall = 0, (start + tall) % DAY, 0
            end = min(start + length, DAY)
            boxes.append([int(low), int(widths[job]), int(start), int(end), int(job)])
            low, tall = low + widths[job], max(tall, end - start)
        schedules[key] = boxes
    jobs = [
        {
            "id": str(40_000 + i),
            "user": f"user-{i % 37}",
            "cpus": int(widths[i]),
            "limit_h": 4.0,
            "waits": {key: float(chance.lognormal(0, 2)) for key in SERIES},
        }
        for i in range(n_jobs)
    ]
    begin = BEGIN + day * DAY
    label = str(np.datetime64(begin, "s"))[:10]
    return {"begin": begin, "label": label, "schedules": schedules, "jobs": jobs}


def _changed(i):
    before, after = 40.0 - i, 2.0 + 3 * i
    return {
        "job": str(1_000 + i),
        "user": f"user-{i}",
        "cpus": 2 ** (i % 8),
        "limit_h": 12.0,
        "run_h": 1.5,
        "before_h": before,
        "after_h": after,
        "change_h": after - before,
        "why": "asks for more cpu-hours than 89% of jobs",
    }
