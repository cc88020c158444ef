"""Lawson, Smirni, Puiu 2002: multiple-queue backfilling."""
