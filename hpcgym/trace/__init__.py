"""Logs: read, clean, find, download, split, resample and make them."""

from hpcgym.trace.catalogue import TraceEntry, catalogue, entry, find_trace
from hpcgym.trace.clean import CleaningReport, Flurry, clean
from hpcgym.trace.load import load_with_report, load_workload
from hpcgym.trace.swf import SwfLog, read_swf, write_swf

__all__ = [
    "CleaningReport",
    "Flurry",
    "SwfLog",
    "TraceEntry",
    "catalogue",
    "clean",
    "entry",
    "find_trace",
    "load_with_report",
    "load_workload",
    "read_swf",
    "write_swf",
]
