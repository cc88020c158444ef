"""Comparison of agents: the same weeks for all, paired ratios to SAF, t intervals."""

from hpcgym.evaluation.cross_validation import cross_validate, evaluate
from hpcgym.evaluation.cv_result import CrossValidationResult
from hpcgym.evaluation.recording import Recording, record
from hpcgym.evaluation.results import Evaluation, Summary
from hpcgym.evaluation.runner import play
from hpcgym.evaluation.short_tables import overview, verdict
from hpcgym.evaluation.statistics import Estimate, mean_log_ratio, ratio_of_sums

__all__ = [
    "CrossValidationResult",
    "Estimate",
    "Evaluation",
    "Recording",
    "Summary",
    "cross_validate",
    "evaluate",
    "mean_log_ratio",
    "overview",
    "play",
    "ratio_of_sums",
    "record",
    "verdict",
]
