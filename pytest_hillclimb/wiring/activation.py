"""Whether a session runs evals, which ones, and the gate before them.

All of it happens before a conftest is imported, so a refusal leaves no trace of the harness having run.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from glob import iglob
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pytest_hillclimb import options
from pytest_hillclimb.errors import OptionError, RefusedError
from pytest_hillclimb.flow.harness import Harness
from pytest_hillclimb.flow.roots import conftests_below, outermost_eval_root, search_eval_roots
from pytest_hillclimb.model.redaction import Redactor
from pytest_hillclimb.model.settings import CHAOS, MAIN, NULL, PROBES, Settings
from pytest_hillclimb.model.withholding import restore_credentials, withhold_credentials
from pytest_hillclimb.report.terminal import one_line
from pytest_hillclimb.schedule.rotation import rotation_of

_PATH_OPTIONS = ("--hillclimb-flow", "--hillclimb-candidates")


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """An active session: what was asked, where its eval lies, and the harness that was found there."""

    settings: Settings
    eval_root: Path
    by_option: bool
    searched: tuple[Path, ...]
    harness: Harness
    approving: bool
    withheld: tuple[str, ...] = ()
    """The names of the credentials that the session does without."""


def usage_error(error: RefusedError, patterns: Sequence[str] = ()) -> pytest.UsageError:
    """Return a refusal as pytest's own: exit status 4, and one safe line.

    :param patterns: the ini's further patterns of secrets
    """
    try:
        redactor = Redactor(patterns, os.environ)
    except OptionError:  # which is then what the refusal is about
        redactor = Redactor((), os.environ)
    return pytest.UsageError(f"hillclimb: {one_line(redactor.text(str(error)))}")


def activate(config: pytest.Config, args: list[str]) -> bool:
    """Set the session up for evals if it runs any; return whether it does.

    :param args: pytest's command line, to which ini paths are added
    :raises pytest.UsageError: when the session must not run
    """
    namespace = config.known_args_namespace
    try:
        given = options.given_run_options(namespace)
        _refuse_in_addopts(config)
        starts = _starting_points(config, args, by_option=bool(given))
        root = _eval_root(config, starts, by_option=bool(given))
        if root is None:
            return False
        # Not before it is certain that evals run: these bring in all that is heavy.
        from pytest_hillclimb.wiring.gate import pass_gate
        from pytest_hillclimb.wiring.plugin import register

        _refuse_each(namespace)
        _refuse_paths_apart(config)
        settings = resolve_settings(config)
        harness, approving = pass_gate(config, settings, root)
        withheld = _withhold_credentials(config, settings) if settings.lane in PROBES else ()
    except RefusedError as error:
        raise usage_error(error, config.getini("hillclimb_redact")) from None
    _import_initially(config, starts, root)
    register(
        config,
        Activation(
            settings=settings,
            eval_root=root,
            by_option=bool(given),
            searched=tuple(starts),
            harness=harness,
            approving=approving,
            withheld=withheld,
        ),
    )
    return True


def resolve_settings(config: pytest.Config) -> Settings:
    """Return the resolved options of *config*.

    :raises OptionError: for a value that cannot be used
    """
    ini_name = config.inipath.name if config.inipath else "the ini file"
    values = dict(options.resolve(config.known_args_namespace, config.getini, ini_name, os.environ))
    del values["hillclimb"]
    _set_lane(values)
    if values["candidates"] is not None:
        values["candidates"] = _base(config, "hillclimb_candidates") / values["candidates"]
        if not values["candidates"].is_file():
            raise OptionError(f"--hillclimb-candidates: {values['candidates']} is no file")
        if values["model"] is not None:
            raise OptionError("--hillclimb-model and --hillclimb-candidates: the manifest names the models; drop one")
    values["rotation"] = _rotation(values["rotation"], balanced=values["schedule"] == "balanced")
    if values["lane"] == CHAOS:
        # A schedule pairs candidates with the cases of the catalog; every active one must survive every fault.
        values["schedule"] = "full"
    if (cap := config.getini(options.TRACE_CAP)) is not None:
        values["max_trace_bytes"] = _bytes(cap, f"{options.TRACE_CAP} in {ini_name}")
    return Settings(flow_base=_base(config, "hillclimb_flow"), **values)


def _withhold_credentials(config: pytest.Config, settings: Settings) -> tuple[str, ...]:
    """Take credentials out of the environment until the session is over, before anything of the eval is imported.

    :raises RefusedError: if the candidates, who may require other variables, cannot be read
    """
    from pytest_hillclimb.schedule.manifest import read_manifest

    path = settings.candidates
    required = read_manifest(path, _shown(config, path)).required_env if path is not None else ()
    changed = withhold_credentials(os.environ, required)
    config.add_cleanup(lambda: restore_credentials(os.environ, changed))
    return tuple(sorted(name for name, value in changed.items() if value is not None))


def _bytes(text: str, origin: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 1):
        raise OptionError(f"{origin}: expected a number of bytes from 2, got {text!r}")
    return int(text)


def _set_lane(values: dict[str, Any]) -> None:
    """Make of ``--hillclimb-null`` and ``--hillclimb-oracle`` the lane that they are, with what turns it red."""
    asked = [lane for lane in PROBES if values.pop(lane)]
    if not asked:
        return
    if len(asked) > 1 or values["lane"] != MAIN:
        raise OptionError("--hillclimb-null, --hillclimb-oracle and --hillclimb-lane chaos are runs of their own: one")
    values["lane"] = asked[0]
    values["fail_on"] = "pass" if asked[0] == NULL else "grade"


def _rotation(given: str | None, *, balanced: bool) -> int | None:
    """Return the rotation as a number; without one, a balanced schedule takes the week of today, a full one all."""
    if given is None and not balanced:
        return None
    try:
        return rotation_of(given or "today", datetime.now(UTC))
    except ValueError as expected:
        raise OptionError(f"--hillclimb-rotation: expected {expected}, got {given!r}") from None


def confcutdir(config: pytest.Config) -> Path:
    """Return the directory above which pytest loads no conftest."""
    given = config.known_args_namespace.confcutdir
    if given:
        return Path(os.path.abspath(config.invocation_params.dir / given))
    return config.inipath.parent if config.inipath else config.rootpath


def _base(config: pytest.Config, dest: str) -> Path:
    """Return the directory that the path given as the option *dest* is relative to."""
    if getattr(config.known_args_namespace, dest, None) is not None:
        return config.invocation_params.dir
    if config.getini(dest) and config.inipath is not None:
        return config.inipath.parent
    return config.rootpath


def _refuse_in_addopts(config: pytest.Config) -> None:
    """An approval is a person's act: standing options must not give it."""
    standing = [*config.getini("addopts"), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))]
    if any(str(word).split("=")[0] == options.APPROVE for word in standing):
        raise OptionError(f"{options.APPROVE} must be typed, not set in addopts or PYTEST_ADDOPTS")


def _refuse_each(namespace: Any) -> None:
    if getattr(namespace, "dist", "no") == "each":
        raise OptionError("--dist each would run and pay for every execution once per worker; use --dist load")


def _refuse_paths_apart(config: pytest.Config) -> None:
    """Refuse paths in words of their own where others take them for those of tests.

    Before plugins are loaded, pytest takes the value of an unknown option for a test path, and looks for an ini file
    around it. With a path outside of the project it finds none, and rootdir and harness are other ones. pytest-xdist
    does not find it on another machine or in another directory, and ends with a traceback.
    """
    words = [str(word) for word in config.invocation_params.args]
    specs = [str(spec) for spec in getattr(config.known_args_namespace, "tx", None) or ()]
    displaced = any("popen" not in spec or "chdir=" in spec for spec in specs)
    for flag, value in pairwise(words):
        path = Path(os.path.abspath(config.invocation_params.dir / value))
        if flag not in _PATH_OPTIONS or not path.exists():
            continue
        if config.inipath is None and not path.is_relative_to(config.invocation_params.dir):
            raise OptionError(f"write {flag}={value} in one word: apart, pytest looks for its ini file there")
        if displaced:
            raise OptionError(f"write {flag}={value} in one word: apart, pytest-xdist takes it for the path of a test")


def _starting_points(config: pytest.Config, args: list[str], *, by_option: bool) -> list[Path]:
    """Return the paths in which to look for the eval; without any on the command line, add those of the ini file."""
    namespace = config.known_args_namespace
    base = config.invocation_params.dir
    typed = [str(argument) for argument in namespace.file_or_dir]
    if typed:
        return [path for argument in typed if (path := _path_of(argument, base)).exists()]
    ini_paths = [Path(path) for path in config.getini("hillclimb_paths")]
    for path in ini_paths:
        if not path.exists():
            raise OptionError(f"hillclimb_paths: {path} does not exist")
    usual = _usual_paths(config)
    if by_option and ini_paths:
        args.extend(str(path) for path in ini_paths)
    elif missing := [path for path in ini_paths if not any(path.is_relative_to(known) for known in usual)]:
        args.extend(str(path) for path in (*usual, *missing))
    return ini_paths or usual


def _usual_paths(config: pytest.Config) -> list[Path]:
    """Return what pytest collects when the command line names nothing."""
    base = config.invocation_params.dir
    if base == config.rootpath:
        patterns = [str(base / pattern) for pattern in config.getini("testpaths")]
        found = [Path(os.path.abspath(path)) for pattern in patterns for path in sorted(iglob(pattern, recursive=True))]
        if found:
            return found
    return [base]


def _path_of(argument: str, base: Path) -> Path:
    return Path(os.path.abspath(base / argument.split("::", 1)[0]))


def _eval_root(config: pytest.Config, starts: Sequence[Path], *, by_option: bool) -> Path | None:
    stop, norecursedirs = confcutdir(config), config.getini("norecursedirs")
    roots: set[Path] = set()
    for start in starts:
        directory = start if start.is_dir() else start.parent
        above = outermost_eval_root(directory, stop)
        if above is not None:
            roots.add(above)
        elif start.is_dir():
            roots.update(search_eval_roots(start, norecursedirs))
    outermost = sorted(root for root in roots if not any(root != r and root.is_relative_to(r) for r in roots))
    if len(outermost) > 1:
        listed = ", ".join(_shown(config, root) for root in outermost)
        raise OptionError(f"these evals are separate, and a flow holds one: {listed}; name one (pytest DIR)")
    if not outermost and by_option:
        looked = ", ".join(_shown(config, start) for start in starts) or "the paths given"
        raise OptionError(f"no eval found: no conftest.py with a pytest_hillclimb_ hook in or around {looked}")
    return outermost[0] if outermost else None


def _shown(config: pytest.Config, path: Path) -> str:
    return os.path.relpath(path, config.invocation_params.dir)


def _import_initially(config: pytest.Config, starts: Iterable[Path], root: Path) -> None:
    """Make pytest import all conftests of the eval now, so that cases can be loaded before collection."""
    conftests = conftests_below(root, config.getini("norecursedirs"))
    namespace = config.known_args_namespace
    decided = namespace.file_or_dir or [str(path) for path in _usual_paths(config)]
    namespace.file_or_dir = [*decided, *map(str, starts), str(root), *(str(path.parent) for path in conftests)]
