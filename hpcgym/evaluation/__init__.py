"""Judging agents: the same weeks for all, paired ratios to SAF, bootstrap intervals."""

from hpcgym.evaluation.held_out import judge
from hpcgym.evaluation.judgement import Judgement
from hpcgym.evaluation.protocol import evaluate, play
from hpcgym.evaluation.statistics import Estimate, draw_weeks, mean_log_ratio, ratio_of_sums
from hpcgym.evaluation.table import Evaluation, Summary

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
