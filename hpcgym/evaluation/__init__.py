"""Judging agents: the same weeks for all, paired ratios to SAF, bootstrap intervals."""

from hpcgym.evaluation.cross_validation import judge
from hpcgym.evaluation.cv_result import Judgement
from hpcgym.evaluation.results import Evaluation, Summary
from hpcgym.evaluation.runner import evaluate, play
from hpcgym.evaluation.statistics import Estimate, draw_weeks, mean_log_ratio, ratio_of_sums

__all__ = [
    "Estimate",
    "Evaluation",
    "Judgement",
    "Summary",
    "draw_weeks",
    "evaluate",
    "judge",
    "mean_log_ratio",
    "play",
    "ratio_of_sums",
]
