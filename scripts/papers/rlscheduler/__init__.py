"""RLScheduler's table of mean bounded slowdowns, and the rules behind its columns."""
