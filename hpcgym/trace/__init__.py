"""Logs: read, clean, find, download, split, resample and make them."""

from hpcgym.trace.as_found import as_found
from hpcgym.trace.catalogue import TraceEntry, catalogue, download, entry, find_trace, verify
from hpcgym.trace.check import LogCheck, check_log
from hpcgym.trace.clean import clean
from hpcgym.trace.cleaning_report import CleaningReport
from hpcgym.trace.estimates import tsafrir_estimates
from hpcgym.trace.load import load_with_report, load_workload, read_log
from hpcgym.trace.lublin import lublin_workload
from hpcgym.trace.resample import jitter, join_weeks, resample, resample_week, scale_load
from hpcgym.trace.sessions import session_workload
from hpcgym.trace.split import between, months, weeks, window, windows
from hpcgym.trace.statistics import weekly_loads, workload_statistics
from hpcgym.trace.swf import SwfLog, log_of, read_swf, write_swf
from hpcgym.trace.synthetic import synthetic_workload
from hpcgym.trace.tables import read_table

__all__ = [
    "CleaningReport",
    "LogCheck",
    "SwfLog",
    "TraceEntry",
    "as_found",
    "between",
    "catalogue",
    "check_log",
    "clean",
    "download",
    "entry",
    "find_trace",
    "jitter",
    "join_weeks",
    "load_with_report",
    "load_workload",
    "log_of",
    "lublin_workload",
    "months",
    "read_log",
    "read_swf",
    "read_table",
    "resample",
    "resample_week",
    "scale_load",
    "session_workload",
    "synthetic_workload",
    "tsafrir_estimates",
    "verify",
    "weekly_loads",
    "weeks",
    "window",
    "windows",
    "workload_statistics",
    "write_swf",
]
