"""Frozen values that every layer shares: cases, runs, grades, rows, ids and settings."""
