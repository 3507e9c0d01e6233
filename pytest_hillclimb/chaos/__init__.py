"""Faults that are injected on purpose, and the invariants that must survive them."""
