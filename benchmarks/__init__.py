"""Benchmarks of whole pytest sessions, as ratios against what they are held to: ``python -m benchmarks``."""
