"""Carrying out trials: deadlines, retries, identity, and the lanes that run many at once. Knows no pytest, no files."""
