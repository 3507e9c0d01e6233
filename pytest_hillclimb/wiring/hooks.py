"""The user's hooks: checking that they are there and rightly named, and calling them for the engine."""

from __future__ import annotations

import asyncio
import difflib
import inspect
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb import hookspecs
from pytest_hillclimb.engine.chain import error_place, error_text
from pytest_hillclimb.engine.outcome import Kind, Signal
from pytest_hillclimb.errors import CatalogError, HookError
from pytest_hillclimb.flow.roots import CONFTEST

_PREFIX = "pytest_hillclimb_"
_KNOWN = tuple(name for name in vars(hookspecs) if name.startswith(_PREFIX))


def check_names(plugin: object) -> None:
    """Refuse a plugin that has a function named like a hook of ours but unknown.

    :raises HookError: with the file and the nearest name
    """
    for name in dir(plugin) if inspect.ismodule(plugin) else ():
        if name.startswith(_PREFIX) and name not in _KNOWN and callable(getattr(plugin, name, None)):
            near = difflib.get_close_matches(name, _KNOWN, n=1, cutoff=0)
            raise HookError(f"{file_of(plugin)}: there is no hook {name}; did you mean {near[0]}?")


def check_present(config: pytest.Config, files: Iterable[Path], names: Iterable[str]) -> None:
    """Refuse an eval that lacks any of the hooks *names* for the cases of one of its *files*.

    :raises HookError: naming the hooks, and the conftest to put them into
    """
    names = list(names)
    for path in files:
        absent = [n for n in names if not any(_reaches(each.plugin, path) for each in implementations(config, n))]
        if absent:
            listed = ", ".join(f"{name}(...)" for name in absent)
            what = "it" if len(absent) == 1 else "them"
            raise HookError(f"no {listed} for the cases of {path}: define {what} in {path.parent / CONFTEST}")


def _reaches(plugin: object, path: Path) -> bool:
    """Return whether the hooks of a plugin are called for the cases of a file, which those of a conftest may not be."""
    home = file_of(plugin)
    return home is None or home.name != CONFTEST or path.is_relative_to(home.parent)


def implementations(config: pytest.Config, name: str) -> list[Any]:
    """Return pluggy's implementations of a hook of ours."""
    return list(getattr(config.hook, name).get_hookimpls())


def file_of(plugin: object) -> Path | None:
    """Return the file that a plugin's module was loaded from."""
    file = getattr(plugin, "__file__", None)
    return Path(file) if isinstance(file, str) else None


def outside_digest(config: pytest.Config, files: Iterable[str]) -> list[str]:
    """Return the files that implement hooks of ours but are not part of the harness."""
    covered = {os.path.realpath(config.rootpath / name) for name in files}
    homes: set[str] = set()
    for name in _KNOWN:
        for implementation in implementations(config, name):
            code = getattr(inspect.unwrap(implementation.function), "__code__", None)
            home = code.co_filename if code is not None else str(file_of(implementation.plugin) or "")
            if home:
                homes.add(os.path.realpath(home))
    return sorted(homes - covered)


def load_cases(config: pytest.Config, eval_root: Path) -> list[tuple[Path, object]]:
    """Call every ``load_cases`` hook; return what each gave, with the conftest that it is collected under.

    :raises CatalogError: when a hook raises
    """
    loaded: list[tuple[Path, object]] = []
    for implementation in reversed(implementations(config, f"{_PREFIX}load_cases")):
        home = file_of(implementation.plugin)
        if home is None or home.name != CONFTEST:
            home = eval_root / CONFTEST
        arguments = {"config": config} if "config" in implementation.argnames else {}
        loaded.append((home, _materialise(implementation.function, arguments, home)))
    return loaded


def _materialise(function: Callable[..., Any], arguments: dict[str, Any], home: Path) -> object:
    try:
        cases = function(**arguments)
        if inspect.isawaitable(cases):
            cases = asyncio.run(_awaited(cases))
        one_pass = inspect.isgenerator(cases) or isinstance(cases, (map, filter, zip))
        return list(cases) if one_pass else cases
    except (Exception, SystemExit, pytest.skip.Exception, pytest.fail.Exception) as error:
        frames = error_place(error)
        at = f" at {frames[-1]}" if frames else ""
        text = f"{home}: {_PREFIX}load_cases raised {type(error).__name__}: {error_text(error)}{at}"
        raise CatalogError(text) from None


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def is_async(caller: Any) -> bool:
    """Return whether a hook, as the relay of a file calls it, reaches a coroutine function, which is awaited."""
    return any(inspect.iscoroutinefunction(implementation.function) for implementation in caller.get_hookimpls())


def signal(error: BaseException) -> Signal | None:
    """Return what an exception asks of the test runner, None for an ordinary one.

    A group, as a task group raises it, asks what its members ask, if none of them is ordinary.
    """
    if isinstance(error, BaseExceptionGroup):
        signals = [signal(member) for member in error.exceptions]
        return signals[0] if None not in signals else None
    if isinstance(error, pytest.skip.Exception):
        return Signal(Kind.SKIPPED, _reason(error))
    if isinstance(error, pytest.xfail.Exception):
        return Signal(Kind.XFAILED, _reason(error))
    if isinstance(error, pytest.exit.Exception):
        return Signal(Kind.EXIT, _reason(error), error.returncode)
    return None


def _reason(error: BaseException) -> str:
    return str(getattr(error, "msg", None) or error_text(error))
