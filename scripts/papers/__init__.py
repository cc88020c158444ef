"""Reruns of published papers on real logs, one package each."""
