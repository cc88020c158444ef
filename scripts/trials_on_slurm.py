import sys
from pathlib import Path
from research.slurm_chroot import make_chroot
from research.trials_on_slurm import run_arms
run_arms(make_chroot(Path(sys.argv[1])), Path(sys.argv[2]), [int(s) for s in sys.argv[3:]])
