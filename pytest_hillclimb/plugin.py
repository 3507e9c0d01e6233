"""The pytest11 entry point. Declares options and hooks; loads the rest only for a session that runs evals."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pluggy import PluginValidationError

from pytest_hillclimb import options

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

_ACTIVE = pytest.StashKey[bool]()
_LEFT_ALONE = pytest.StashKey[set[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options and ini keys."""
    options.register(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks, also in sessions without evals: their conftests may be loaded all the same."""
    from pytest_hillclimb import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> Generator[None, object, object]:
    """Decide whether this session runs evals, before any conftest is imported; if so, gate it and set it up."""
    if _is_worker_process():
        _import_as_controller(early_config)
    elif _may_be_active(early_config):
        from pytest_hillclimb.wiring.activation import activate

        early_config.stash[_ACTIVE] = activate(early_config, args)
    try:
        return (yield)
    except PluginValidationError as error:
        if "pytest_hillclimb_" not in str(error):
            raise
        raise pytest.UsageError(f"hillclimb: {' '.join(str(error).split())}") from None


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker that every eval item carries; in a worker, take up the plan of its controller."""
    config.addinivalue_line("markers", "hillclimb: an execution of an eval (set by pytest-hillclimb)")
    plan = getattr(config, "workerinput", {}).get("hillclimb")
    if plan is not None:
        from pytest_hillclimb.wiring.worker import WorkerSession

        config.stash[_ACTIVE] = True
        config.pluginmanager.register(WorkerSession(config, plan), "hillclimb-worker")
    elif _is_worker_process() and not hasattr(config, "workerinput") and _may_be_active(config):
        # A session started by a test that itself runs in a worker.
        from pytest_hillclimb.wiring.activation import activate

        config.stash[_ACTIVE] = activate(config, config.args)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> None:
    """In a session without evals, take note of the catalogs that are left alone."""
    config = parent.config
    if config.stash.get(_ACTIVE, False):
        return
    from pytest_hillclimb.flow.roots import CONFTEST, outermost_eval_root

    if file_path.name == CONFTEST:
        holds_cases = b"pytest_hillclimb_load_cases" in file_path.read_bytes()
    else:
        holds_cases = file_path.name in config.getini("hillclimb_catalogs")
    named = any(file_path.is_relative_to(path) for path in _paths(config.args, config.invocation_params.dir))
    if holds_cases and named and outermost_eval_root(file_path.parent, config.rootpath) is not None:
        config.stash.setdefault(_LEFT_ALONE, set()).add(str(file_path))


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    """Say in one line how many catalogs were left alone."""
    count = len(config.stash.get(_LEFT_ALONE, ()))
    if not count:
        return []
    catalogs = "1 catalog" if count == 1 else f"{count} catalogs"
    return [f"hillclimb: {catalogs} left alone; run evals with --hillclimb, or by naming them (pytest DIR)"]


def _import_as_controller(config: pytest.Config) -> None:
    """In a worker, import the conftests of the eval initially, as its controller has done."""
    namespace = config.known_args_namespace
    if getattr(namespace, "hillclimb_null", None) or getattr(namespace, "hillclimb_oracle", None):
        from pytest_hillclimb.model.withholding import withhold_credentials

        withhold_credentials(os.environ)  # of a worker on another machine
    paths = config.getini("hillclimb_paths")
    if paths and not namespace.file_or_dir:
        namespace.file_or_dir = [str(config.invocation_params.dir), *map(str, paths)]


def _is_worker_process() -> bool:
    """Return whether this process may be a worker of pytest-xdist, which cannot be told for sure before configuring."""
    return "PYTEST_XDIST_WORKER" in os.environ and sys.argv[:1] == ["-c"]


def _may_be_active(config: pytest.Config) -> bool:
    """Return whether it is worth looking closer: an option, the ini key, or a path that may lie in an eval."""
    namespace = config.known_args_namespace
    if any(getattr(namespace, name, False) for name in ("help", "version", "markers", "showfixtures", "cacheshow")):
        return False
    if options.given_run_options(namespace) or config.getini("hillclimb_enabled"):
        return True
    return any(_near_an_eval(config, arg) for arg in _paths(namespace.file_or_dir, config.invocation_params.dir))


def _paths(arguments: Iterable[str], base: Path) -> Iterable[Path]:
    for argument in arguments:
        path = Path(os.path.abspath(base / str(argument).split("::", 1)[0]))
        if path.exists():
            yield path


def _near_an_eval(config: pytest.Config, path: Path) -> bool:
    from pytest_hillclimb.flow.roots import CONFTEST, outermost_eval_root

    if path.is_file() and path.name not in (CONFTEST, *config.getini("hillclimb_catalogs")):
        return False
    return outermost_eval_root(path if path.is_dir() else path.parent, config.rootpath) is not None
