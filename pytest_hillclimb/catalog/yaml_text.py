"""YAML without surprises: ids, tags and keys are the text as typed, and few other scalars are anything but text.

Typed are true, false and null (in the spellings of YAML 1.2) and plain decimal numbers. Dates, ``no``, ``010``,
``0x1F``, ``1_000``, ``12:30:00`` and ``.inf`` stay text. Aliases and merge keys (``<<``) work; a tag other than
``!!str`` is refused, and so are aliases that unfold into too much.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import ReaderError

from pytest_hillclimb.catalog.entry import FormatError, Record
from pytest_hillclimb.catalog.located import AsText, Located, Steps
from pytest_hillclimb.catalog.wording import CASES_WANTED, quoted

_PLAIN = "plain"
_STANDARD = "tag:yaml.org,2002:"
_TEXT = _STANDARD + "str"
_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_MAX_REPEATED = 250_000

# The parser takes these for ends of lines, as YAML 1.1 did, and would fold them into spaces.
_SEPARATORS = "\x85\u2028\u2029"
_STAND_INS = "\U0010fff1\U0010fff2\U0010fff3"
_HIDE = str.maketrans(_SEPARATORS, _STAND_INS)
_SHOW = str.maketrans(_STAND_INS, _SEPARATORS)


def parse_yaml(text: str) -> list[Record]:
    """Return the records of a YAML text: a list of cases, or a mapping whose key ``cases`` holds one.

    :raises FormatError: for a text that is no YAML, has another shape, or uses what is not allowed here
    """
    root = _compose(text.translate(_HIDE))
    return _Builder(_text_of_a_case).records(root) if root is not None else []


def parse_yaml_value(text: str, as_text: AsText) -> Located:
    """Return the value of a YAML text, None for an empty one.

    :param as_text: says of a path whether its scalar is the text as typed
    :raises FormatError: for a text that is no YAML, or uses what is not allowed here
    """
    root = _compose(text.translate(_HIDE))
    return _Builder(as_text).located(root) if root is not None else Located(None)


def _text_of_a_case(path: Steps) -> bool:
    return path[:1] in (("id",), ("tags",))


class _Loader(yaml.BaseLoader):
    """Composes nodes whose tag tells a plain scalar from a quoted one and from one with a tag of its own."""

    def resolve(self, kind: type[Node], value: Any, implicit: Any) -> str:
        """Return the tag of a node that has none."""
        return _PLAIN if kind is not ScalarNode or implicit[0] else _TEXT


def _compose(text: str) -> Node | None:
    loader = None
    try:
        loader = _Loader(text)
        root: Node | None = loader.get_single_node()
        return root
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problem = f"the character U+{error.character:04X} must be written as an escape"
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        problem = ", ".join(part for part in (error.context, error.problem) if part)
    except (ValueError, OverflowError) as error:  # an escape beyond the end of Unicode
        line = loader.line + 1 if loader else 1
        problem = str(error)
    raise FormatError(f"not valid YAML: {problem}", f"line {line}")


class _Builder:
    """Turns nodes into records, and counts what aliases repeat, so that a small file cannot fill the memory."""

    def __init__(self, as_text: AsText) -> None:
        self._as_text = as_text
        self._seen: set[int] = set()
        self._repeated = 0

    def located(self, root: Node) -> Located:
        """Return the value of a node, and the lines of its parts."""
        lines: dict[Steps, int] = {}
        return Located(self._build(root, (), lines), lines)

    def records(self, root: Node) -> list[Record]:
        """Return the records of the document."""
        cases = self._pairs(root).get("cases", (root, root))[1] if isinstance(root, MappingNode) else root
        if isinstance(cases, SequenceNode):
            _refuse_tag(cases, _PLAIN)
            return [self._record(node) for node in cases.value]
        if isinstance(cases, ScalarNode) and self._text(cases) is None:
            return []
        found = "a mapping" if isinstance(cases, MappingNode) else "a text or a number"
        raise FormatError(f"{CASES_WANTED}; got {found}", _line(cases))

    def _record(self, node: Node) -> Record:
        built = self.located(node)
        lines = {str(path[0]): line for path, line in built.lines.items() if len(path) == 1}
        return Record(_line(node), built.value, lines if isinstance(node, MappingNode) else {})

    def _build(self, node: Node, path: Steps, lines: dict[Steps, int]) -> Any:
        if isinstance(node, ScalarNode):
            self._charge(node, 1)
            return self._text(node) if self._as_text(path) else self._typed(node)
        if isinstance(node, MappingNode):
            pairs = self._pairs(node)
            lines |= {(*path, name): key.start_mark.line + 1 for name, (key, _) in pairs.items()}
            return {name: self._build(value, (*path, name), lines) for name, (_, value) in pairs.items()}
        self._charge(node, 1)
        _refuse_tag(node, _PLAIN)
        lines |= {(*path, i): member.start_mark.line + 1 for i, member in enumerate(node.value)}
        return [self._build(member, (*path, i), lines) for i, member in enumerate(node.value)]

    def _pairs(self, node: MappingNode) -> dict[str, tuple[Node, Node]]:
        self._charge(node, 1 + len(node.value))
        _refuse_tag(node, _PLAIN)
        pairs: dict[str, tuple[Node, Node]] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise FormatError("a key must be a text, not a list or a mapping", _line(key))
            name = _as_typed(key)
            if name in pairs:
                raise FormatError(f"the key {quoted(name)} appears twice in one mapping", _line(key))
            pairs[name] = key, value
        if "<<" not in pairs or pairs["<<"][0].tag != _PLAIN:
            return pairs
        return self._merged(pairs.pop("<<")[1]) | pairs

    def _merged(self, node: Node) -> dict[str, tuple[Node, Node]]:
        pairs: dict[str, tuple[Node, Node]] = {}
        for source in node.value if isinstance(node, SequenceNode) else [node]:
            if not isinstance(source, MappingNode):
                raise FormatError("'<<' takes a mapping, or a list of mappings", _line(source))
            pairs = self._pairs(source) | pairs
        return pairs

    def _charge(self, node: Node, size: int) -> None:
        if id(node) in self._seen:
            self._repeated += size
        self._seen.add(id(node))
        if self._repeated > _MAX_REPEATED:
            raise FormatError(f"the aliases repeat more than {_MAX_REPEATED} values; write less by alias", _line(node))

    def _text(self, node: ScalarNode) -> str | None:
        text = _as_typed(node)
        return None if node.tag == _PLAIN and text in _NULLS else text

    def _typed(self, node: ScalarNode) -> str | int | float | bool | None:
        text = self._text(node)
        if text is None or node.tag != _PLAIN:
            return text
        if match := _NUMBER.fullmatch(text):
            return _number(text, whole=not (match[1] or match[2]))
        return _BOOLS.get(text, text)


def _as_typed(node: ScalarNode) -> str:
    _refuse_tag(node, _PLAIN, _TEXT)
    text: str = node.value.translate(_SHOW)
    # An escaped pair, as JSON writes it, is one character.
    return _PAIR.sub(lambda m: m[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)


def _number(text: str, *, whole: bool) -> int | float:
    try:
        return int(text) if whole else float(text)
    except ValueError:  # Python reads no more than some thousands of digits
        return float(text)


def _refuse_tag(node: Node, *allowed: str) -> None:
    if node.tag not in allowed:
        tag = quoted(node.tag.replace(_STANDARD, "!!"))
        raise FormatError(f"the tag {tag} is not allowed; leave it out, or quote the text", _line(node))


def _line(node: Node) -> str:
    return f"line {node.start_mark.line + 1}"
