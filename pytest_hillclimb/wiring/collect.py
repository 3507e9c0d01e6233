"""The nodes of an eval: a file of cases, a case, and its executions as items."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hillclimb.catalog import CatalogEntry
from pytest_hillclimb.engine.outcome import SKIPPED
from pytest_hillclimb.errors import OptionError
from pytest_hillclimb.model.settings import Settings
from pytest_hillclimb.report.terminal import one_line
from pytest_hillclimb.schedule.plan import Execution
from pytest_hillclimb.wiring.activation import Activation, usage_error
from pytest_hillclimb.wiring.cases import LoadedCases, is_hook_file
from pytest_hillclimb.wiring.failures import TrialFailure, TrialRepr

if TYPE_CHECKING:
    from pytest_hillclimb.engine.outcome import Outcome
    from pytest_hillclimb.engine.trial import Trial

RUN_ITEM = pytest.StashKey[Callable[["TrialItem"], None]]()
LOADED = pytest.StashKey[LoadedCases]()

_LINE = re.compile(r"line (\d+)")


def trial() -> None:
    """Stand for the trial as the function of an item; the item itself runs it."""


class CaseFile(pytest.Module):
    """A file that holds cases: a catalog, or a conftest whose hook gives them.

    A module, so that fixtures of every scope find the node they belong to; without an object, as nothing is imported.
    """

    obj = None

    def collect(self) -> Iterator[CaseNode]:
        """Yield the cases of the file in its author's order."""
        for entry, executions in self.config.stash[LOADED].by_file[self.path]:
            yield CaseNode.from_parent(self, name=entry.case.safe_id, entry=entry, executions=executions)


class CaseNode(pytest.Collector):
    """A case; its items are its executions."""

    def __init__(self, *, entry: CatalogEntry, executions: list[Execution], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.entry = entry
        self.executions = executions

    def collect(self) -> Iterator[TrialItem]:
        """Yield one item for each execution."""
        for execution in self.executions:
            item: TrialItem = TrialItem.from_parent(self, name=execution.name, callobj=trial)
            item.prepare(execution, self.entry)
            yield item


class TrialItem(pytest.Function):
    """One execution of a case as a test item. Fixtures work around it as around any function."""

    execution: Execution
    position: int = -1
    trial: Trial | None = None
    outcome: Outcome | None = None
    missed: bool = False
    identity: tuple[tuple[str, object], ...] = ()
    wire: str | None = None

    def prepare(self, execution: Execution, entry: CatalogEntry) -> None:
        """Bind the item to its execution."""
        self.execution = execution
        line = _LINE.search(entry.position)
        self._line = int(line[1]) - 1 if line else 0
        self.extra_keyword_matches.update((execution.case.id, *execution.case.tags))
        if (candidate := execution.candidate) is not None:
            self.extra_keyword_matches.update((candidate.id, candidate.slot_id, candidate.tier or candidate.id))
        self.identity = _identity(execution)
        self.user_properties += [*self.identity, ("hillclimb.classification", SKIPPED)]  # until it has an outcome
        self.add_marker("hillclimb")

    def runtest(self) -> None:
        """Wait for the trial and report what it ended as."""
        if (cancel := getattr(self.config.hook, "pytest_timeout_cancel_timer", None)) is not None:
            # The wait is for a trial that has a ceiling of its own; pytest-timeout has bounded the set-up.
            cancel(item=self)
        self.config.stash[RUN_ITEM](self)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the place of the case in its file, and the name that headlines use."""
        return self.path, self._line, f"{self.execution.case.safe_id} {self.name}"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the details of the execution; no traceback for what is a result."""
        if isinstance(excinfo.value, TrialFailure):
            return TrialRepr(excinfo.value.gist, excinfo.value.lines)
        return super().repr_failure(excinfo)  # Function takes no style


def _identity(execution: Execution) -> tuple[tuple[str, object], ...]:
    """Return the properties that say where in the matrix an execution stands; none without candidates."""
    candidate = execution.candidate
    if candidate is None:
        return ()
    found = (("case_id", execution.case.safe_id), ("candidate_id", candidate.id), ("slot_id", candidate.slot_id))
    return tuple((f"hillclimb.{name}", value) for name, value in (*found, ("execution_id", execution.execution_id)))


class Collection:
    """Collects the cases of the session, and applies what the user selected.

    :param names: node ids of the files, where they must not depend on this process's rootdir
    """

    def __init__(self, settings: Settings, loaded: LoadedCases, names: Mapping[Path, str] | None = None) -> None:
        self._settings = settings
        self._loaded = loaded
        self._names = names or {}

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """Collect a file of cases, unless pytest's own hook already made it one."""
        nodes = yield
        if file_path not in self._loaded.by_file or any(isinstance(node, CaseFile) for node in _flat(nodes)):
            return nodes
        return [*nodes, self._file(parent, file_path)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makemodule(self, module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
        """Let a conftest that gives cases be collected for these, also when it is named on the command line."""
        if module_path in self._loaded.by_file and is_hook_file(module_path):
            return self._file(parent, module_path)
        return None

    def _file(self, parent: pytest.Collector, path: Path) -> CaseFile:
        name = self._names.get(path)
        if name is None:
            return CaseFile.from_parent(parent, path=path)
        structured: Any = getattr(parent, "id", None)  # since pytest 9.2 a node id is an object
        return CaseFile.from_parent(parent, path=path, nodeid=type(structured).parse(name) if structured else name)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep only the selected executions; pytest's own selection has been applied before."""
        mine = [item for item in items if isinstance(item, TrialItem)]
        selected, limit = self._loaded.selected, self._settings.limit
        kept = [item for item in mine if selected is None or item.execution.key in selected]
        if limit is not None:
            kept = sorted(kept, key=lambda item: item.execution.order)[:limit]
        dropped = set(mine) - set(kept)
        if dropped:
            config.hook.pytest_deselected(items=[item for item in mine if item in dropped])
            items[:] = [item for item in items if item not in dropped]


class EmptyRun:
    """Refuses a run that was asked for by an option and collects no execution."""

    def __init__(self, activation: Activation) -> None:
        self._activation = activation

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Look before anything is deselected."""
        if any(isinstance(item, TrialItem) for item in items) or session.testsfailed:
            return
        if self._activation.by_option:
            looked = ", ".join(one_line(path) for path in self._activation.searched)
            raise usage_error(OptionError(f"no execution of the eval lies below {looked}"))


def _flat(nodes: Iterable[object]) -> Iterator[object]:
    for node in nodes:
        if isinstance(node, (list, tuple)):
            yield from _flat(node)
        else:
            yield node
