"""Waiting jobs: kept in order in a B+ tree, selected from lists, each with its entry."""
