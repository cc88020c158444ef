"""The suite: frozen logs, weeks and copies on which anybody's agent gets a record to replay."""

from hpcgym.evaluation.suite.definition import Suite, SuiteLog, load_suite
from hpcgym.evaluation.suite.record import run_suite
from hpcgym.evaluation.suite.record_file import Record, read_record
from hpcgym.evaluation.suite.table import suite_frame
from hpcgym.evaluation.suite.verify import Verdict, verify_record

__all__ = [
    "Record",
    "Suite",
    "SuiteLog",
    "Verdict",
    "load_suite",
    "read_record",
    "run_suite",
    "suite_frame",
    "verify_record",
]
