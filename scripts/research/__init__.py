"""Benchmarks and studies: speed, ablation of the learnability kit, the value of information."""
