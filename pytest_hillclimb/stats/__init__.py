"""Numbers from numbers: pure functions."""
