"""The support assistant of a small outdoor shop."""
