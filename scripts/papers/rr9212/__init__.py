"""Legrand, Trystram, Zrigui 2018 (Inria RR-9212): mixed policies."""
