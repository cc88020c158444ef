"""What workers of evaluations need: imported, and loaded by a first run."""

from hpcgym.core.threads import keep_to_threads
from hpcgym.evaluation import evaluate

keep_to_threads(1)
evaluate(["SPF"], "tiny", progress=False)
