"""Waiting jobs: kept in order in a B-tree, scored and selected, each with its row of arrays."""
