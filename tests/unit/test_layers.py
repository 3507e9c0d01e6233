"""The layers of the package, its boundary to pytest, and the size of its files and functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import pytest_hillclimb

PACKAGE = Path(pytest_hillclimb.__file__).parent
NAME = PACKAGE.name
LAYERS = (
    "errors",
    "options",
    "model",
    "catalog",
    "schedule",
    "engine",
    "flow",
    "stats",
    "report",
    "claude",
    "chaos",
    "hookspecs",
    "wiring",
    "cli",
    "plugin",
)
FACADE = "__init__"  # re-exports the public names on first use, and may be imported by the outermost layers alone
MAY_IMPORT_FACADE = ("hookspecs", "wiring", "cli", "plugin")
MAY_IMPORT_PYTEST = ("hookspecs", "wiring", "plugin")
MAX_FILE, MAX_FUNCTION = 300, 40


class Import(NamedTuple):
    file: str
    line: int
    module: str
    for_types_only: bool

    @property
    def source(self) -> str:
        return layer_of(self.file)

    @property
    def target(self) -> str:
        """The imported layer of the package, the façade for the package itself, empty for another package."""
        top, _, rest = self.module.partition(".")
        return (rest.partition(".")[0] or FACADE) if top == NAME else ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def layer_of(file: str) -> str:
    return Path(file).parts[0].removesuffix(".py")


def files() -> list[str]:
    return sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))


def parsed(file: str) -> ast.Module:
    return ast.parse((PACKAGE / file).read_text(encoding="utf-8"))


def imports(file: str) -> Iterator[Import]:
    for node, for_types_only in _walk(parsed(file), False):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name, for_types_only)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: a relative import"
            for alias in node.names:
                yield Import(file, node.lineno, f"{node.module}.{alias.name}", for_types_only)


def _walk(node: ast.AST, for_types_only: bool) -> Iterator[tuple[ast.AST, bool]]:
    yield node, for_types_only
    guarded = isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, for_types_only or (guarded and name == "body"))


ALL = [each for file in files() for each in imports(file)]
AT_RUN_TIME = [each for each in ALL if not each.for_types_only]
FOR_TYPES = [each for each in ALL if each.for_types_only]


def names_facade(each: Import) -> bool:
    """Return whether a public name is taken from the package itself, which is no layer."""
    return each.target == FACADE or each.target not in {layer_of(file) for file in files()}


def upward(found: list[Import]) -> list[str]:
    bad = []
    for each in found:
        if not each.target or each.source == FACADE:
            continue
        if names_facade(each):
            allowed = each.source in MAY_IMPORT_FACADE
        else:
            allowed = LAYERS.index(each.target) <= LAYERS.index(each.source)
        if not allowed:
            bad.append(str(each))
    return bad


def test_every_module_belongs_to_a_layer() -> None:
    assert {layer_of(file) for file in files()} <= {FACADE, *LAYERS}


def test_the_walk_sees_the_imports_inside_functions_and_those_for_types() -> None:
    assert any(each.source == "plugin" and each.target == "wiring" for each in AT_RUN_TIME)
    assert any(each.source == FACADE and each.target == "engine" for each in FOR_TYPES)


def test_every_layer_imports_only_what_stands_before_it() -> None:
    assert upward(AT_RUN_TIME) == []


def test_imports_for_types_keep_the_layers_too() -> None:
    assert upward(FOR_TYPES) == []


def test_the_facade_imports_nothing_of_the_package_until_it_is_asked() -> None:
    assert [str(each) for each in AT_RUN_TIME if each.source == FACADE and each.target] == []


def test_only_the_boundary_imports_pytest() -> None:
    strangers = [
        each for each in ALL if each.module.partition(".")[0] == "pytest" and each.source not in MAY_IMPORT_PYTEST
    ]
    assert [str(each) for each in strangers] == []


def test_the_private_modules_of_pytest_are_never_imported() -> None:
    assert [str(each) for each in ALL if each.module.partition(".")[0] == "_pytest"] == []


def test_the_engine_knows_no_sdk_and_the_core_no_worker_library() -> None:
    tops = {"anthropic", "xdist", "execnet", "pluggy"}
    core = [each for each in ALL if each.source not in ("claude", *MAY_IMPORT_PYTEST, "cli")]
    assert [str(each) for each in core if each.module.partition(".")[0] in tops] == []


def test_files_stay_small() -> None:
    lengths = {file: len((PACKAGE / file).read_text(encoding="utf-8").splitlines()) for file in files()}
    assert {file: length for file, length in lengths.items() if length > MAX_FILE} == {}


@pytest.mark.parametrize("file", files())
def test_functions_stay_small(file: str) -> None:
    functions = (node for node in ast.walk(parsed(file)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    sizes = {f"{node.name}, line {node.lineno}": (node.end_lineno or 0) - node.lineno + 1 for node in functions}
    assert {place: size for place, size in sizes.items() if size > MAX_FUNCTION} == {}
