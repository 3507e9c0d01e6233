"""Printing figures: median and minimum of what was measured, and ratios beside their goals."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

_WIDTH = 58


def row(label: str, values: Sequence[float], unit: str = "s") -> None:
    """Print the median and the minimum of *values*."""
    digits = 0 if unit == "MB" else 3
    figures = f"{median(values):8.{digits}f} {unit:<3} min {min(values):8.{digits}f} {unit}"
    print(f"  {label:<{_WIDTH}} {figures}", flush=True)


def ratio(label: str, values: Sequence[float], base: Sequence[float] | float, goal: float) -> None:
    """Print by how much *values* exceed *base*, median by median and minimum by minimum."""
    of_medians, of_minima = (
        function(values) / (base if isinstance(base, float) else function(base)) for function in (median, min)
    )
    print(f"  {f'= {label}':<{_WIDTH}} {of_medians:8.2f} x   min {of_minima:8.2f} x     goal {goal:g} x", flush=True)


def difference(label: str, values: Sequence[float], base: Sequence[float], goal_ms: float) -> None:
    """Print by how many milliseconds *values* exceed *base*, median by median and minimum by minimum."""
    of_medians, of_minima = (1000 * (function(values) - function(base)) for function in (median, min))
    figures = f"{of_medians:+8.1f} ms  min {of_minima:+8.1f} ms    goal {goal_ms:g} ms"
    print(f"  {f'= {label}':<{_WIDTH}} {figures}", flush=True)
