"""Benchmarks and studies: speed, options of the learnability kit, the value of information."""
