"""Catalogs: reading the cases of an eval, and checking a whole set of them before anything is spent."""

from pytest_hillclimb.catalog.check import check_cases, check_splits
from pytest_hillclimb.catalog.entry import CatalogEntry
from pytest_hillclimb.catalog.read import entries_from, read_catalog

__all__ = ["CatalogEntry", "check_cases", "check_splits", "entries_from", "read_catalog"]
