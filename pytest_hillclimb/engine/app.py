"""What a trial is given: the user's functions, and the facts of the run that it may look at."""

from __future__ import annotations

import inspect
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from pytest_hillclimb.engine.outcome import Signal
from pytest_hillclimb.errors import AttachmentError, BadValueError
from pytest_hillclimb.model.candidate import Candidate
from pytest_hillclimb.model.case import Attachment, Case
from pytest_hillclimb.model.credentials import environment_for
from pytest_hillclimb.model.ids import path_safe, trial_seed
from pytest_hillclimb.model.jsonable import plain
from pytest_hillclimb.model.prices import PriceTable
from pytest_hillclimb.model.redaction import Redactor
from pytest_hillclimb.model.run import Run
from pytest_hillclimb.model.settings import Settings
from pytest_hillclimb.schedule.plan import Execution

MAX_ATTACHED_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class App:
    """The user's functions as the engine calls them.

    ``run_case`` and ``grade_case`` may give an awaitable; that of ``grade_case`` is awaited only if
    ``grade_is_async``, so that a coroutine which a grader forgot to await is an error and not a score.
    ``reference`` returns the frozen baseline output of a path-safe id; ``signal`` tells what an exception asks of the
    test runner.
    """

    run_case: Callable[[Case, Context], object]
    grade_case: Callable[[Case, Run, str | None, Context], object]
    perf: Callable[[Case, Run], list[object]]
    grade_is_async: bool
    reference: Callable[[str], str | None]
    signal: Callable[[BaseException], Signal | None]
    settings: Settings
    state: Mapping[str, Any]
    prices: PriceTable = field(default_factory=PriceTable.built_in)
    redactor: Redactor = field(default_factory=Redactor)
    required_env: frozenset[str] = frozenset()
    """The environment variables that any candidate of the run requires."""

    def perf_numbers(self, case: Case, run: Run) -> dict[str, Any]:
        """Return what the perf functions add to a row.

        :raises BadValueError: when one gives something else than a mapping of JSON values
        """
        numbers: dict[str, Any] = {}
        for given in self.perf(case, run):
            if inspect.iscoroutine(given):
                given.close()
                raise BadValueError.at("perf", "expected a mapping, got a coroutine; write a plain def")
            data = plain(given, "perf")
            if not isinstance(data, dict):
                raise BadValueError.at("perf", f"expected a mapping, got {type(given).__name__}")
            numbers.update(data)
        return numbers


@dataclass(slots=True, kw_only=True)
class Context:
    """``ctx``: what the user's functions are told about the run, one for each attempt.

    ``attempt`` counts the calls of this stage from 1; ``fault`` is None outside of the chaos lane.
    """

    execution: Execution = field(repr=False)
    app: App = field(repr=False)
    attempt: int
    deadline: Callable[[], float] = field(repr=False)
    fault: Any = None
    attached_before: int = field(default=0, repr=False)
    _workspace: Path | None = field(default=None, repr=False)
    _attached: dict[str, bytes] = field(default_factory=dict, repr=False)
    _candidate: Candidate | None = field(default=None, repr=False)

    @property
    def settings(self) -> Settings:
        """The resolved options of the run."""
        return self.app.settings

    @property
    def state(self) -> Mapping[str, Any]:
        """The loop state, read only."""
        return self.app.state

    @property
    def candidate(self) -> Candidate | None:
        """The candidate under test, None unless the run has a candidate manifest.

        It is a copy of this ``ctx`` alone: what is changed in its ``settings`` reaches no other attempt or execution.
        """
        if self._candidate is None and self.execution.candidate is not None:
            self._candidate = self.execution.candidate.model_copy(deep=True)
        return self._candidate

    @property
    def variant(self) -> str:
        """The round of the app under test: ``baseline``, ``v1``, ..."""
        return self.settings.variant

    @property
    def model(self) -> str | None:
        """The requested model: the candidate's, else that of ``--hillclimb-model``; None when there is none."""
        candidate = self.execution.candidate
        return self.settings.model if candidate is None else candidate.model

    @property
    def rep(self) -> int:
        """The repetition, from 0."""
        return self.execution.rep

    @property
    def flow(self) -> Path:
        """The flow directory. Nothing but the plugin writes there; keep artifacts with ``attach``."""
        return self.settings.flow_path

    @property
    def seed(self) -> int:
        """An int below 2**32 that depends only on the case and the repetition, so it is the same for all candidates."""
        return trial_seed(self.execution.case.id, self.execution.rep)

    def remaining(self) -> float:
        """Return the seconds to the execution's deadline, never below 0; ``math.inf`` when there is no ceiling."""
        deadline = self.deadline()
        return math.inf if deadline == math.inf else max(0.0, deadline - monotonic())

    def environment(self) -> dict[str, str]:
        """Return the environment for a subprocess: that of this process, with this candidate's credentials alone.

        Left out are variables that other candidates require, and all whose names look like credentials, unless this
        candidate requires them.
        """
        candidate = self.execution.candidate
        own = candidate.qualification.required_env if candidate is not None else ()
        return environment_for(os.environ, own, self.app.required_env)

    @property
    def workspace(self) -> Path:
        """A fresh empty directory for this attempt, made on first use and removed after the trial."""
        if self._workspace is None:
            self._workspace = Path(tempfile.mkdtemp(prefix="hillclimb-"))
        return self._workspace

    def attach(self, name: str, data: bytes | str, *, kind: str = "file", alt: str | None = None) -> Attachment:
        """Keep an artifact of this attempt and return the attachment for a turn.

        It is stored as ``<variant>/out/<id>_rep<k>/<name>`` once the trial has ended; of several attempts only the last
        one's artifacts are kept.

        :param name: file name; made path-safe
        :param data: bytes, or text that is stored as UTF-8 without the secrets in it
        :param kind: image, svg, html, pdf, json, text, code or file
        :param alt: text for those who cannot see it
        :raises AttachmentError: for a name or data that cannot be kept, a name that was used for other content, or
            above 16 MiB for one trial
        """
        if not isinstance(data, (bytes, str)):
            raise AttachmentError(f"attach({name!r}): expected bytes or text, got {type(data).__name__}")
        content = self.app.redactor.text(data).encode("utf-8", "replace") if isinstance(data, str) else data
        safe = path_safe(str(name))
        if not safe.strip("."):
            raise AttachmentError(f"attach({name!r}): expected a file name")
        if self._attached.get(safe, content) != content:
            raise AttachmentError(f"attach({name!r}): this attempt has attached other content under that name")
        total = self.attached_before + len(content) + sum(len(v) for k, v in self._attached.items() if k != safe)
        if total > MAX_ATTACHED_BYTES:
            raise AttachmentError(
                f"attach({name!r}): the artifacts of a trial may hold {MAX_ATTACHED_BYTES} bytes in all"
            )
        self._attached[safe] = content
        ref = f"{self.variant}/out/{self.execution.file_stem}/{safe}"
        return Attachment(kind=kind, ref=ref, alt=alt) if alt is not None else Attachment(kind=kind, ref=ref)

    def artifacts(self) -> dict[str, bytes]:
        """Return what was attached, by file name."""
        return dict(self._attached)

    def clean_up(self) -> None:
        """Let go of artifacts, and remove the workspace if there is one."""
        self._attached.clear()
        if self._workspace is not None:
            shutil.rmtree(self._workspace, ignore_errors=True)
