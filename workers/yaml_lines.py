"""A YAML file as plain JSON-like values, with the line of every key: configuration whose faults can be pointed at.

The node tree is read instead of the loader's objects: it keeps both of two equal keys, all faults are found in one
pass, no tag builds an object, and an alias costs what it says (a cap on parts ends a "billion laughs" and a loop).
"""

from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_BYTES = 1024 * 1024
MAX_PARTS = 20_000
MAX_DEPTH = 64

KeyPath = tuple[str | int, ...]
Problem = tuple[int, str]
"""Line (from 1) and what is wrong there."""

_TEXT = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp")
_CONSTRUCTED = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "bool", "null"))


@dataclass
class Document:
    """What was read: the value, the line of each key, and the faults of the YAML itself."""

    value: object = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: KeyPath) -> int:
        """The line of a key, or of the nearest one above it that was written."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read(file: Path) -> Document:
    """Read one file. Faults of its content are in `problems`. Raises OSError."""
    document = Document()
    content = file.read_bytes()
    if len(content) > MAX_BYTES:
        document.problems.append((1, f"the file has {len(content)} bytes; the cap is {MAX_BYTES}."))
        return document
    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(content.decode())
        if root is not None:
            document.value = _Reader(yaml, document).value(root, (), 0)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        document.problems.append((line, _yaml_fault(error)))
    except UnicodeDecodeError as error:
        document.problems.append((content[: error.start].count(b"\n") + 1, "the text is not UTF-8."))
    except (YAMLError, RecursionError):
        document.problems.append((1, "the file is not YAML: it holds control characters or is nested too deep."))
    except _TooLargeError as error:
        document.problems.append((error.line, f"the file has more than {MAX_PARTS} parts, or is nested too deep."))
    return document


def _yaml_fault(error: MarkedYAMLError) -> str:
    if "'\\t'" in str(error.problem):
        return "a tab can't indent YAML; use spaces."
    return f"the YAML can't be read: {error.problem}."


class _TooLargeError(Exception):
    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class _Reader:
    def __init__(self, yaml: YAML, document: Document) -> None:
        self._yaml = yaml
        self._document = document
        self._parts = 0

    def value(self, node: Node, path: KeyPath, depth: int) -> object:
        self._parts += 1
        if self._parts > MAX_PARTS or depth > MAX_DEPTH:
            raise _TooLargeError(_line(node))
        if isinstance(node, MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, SequenceNode):
            items = []
            for index, child in enumerate(node.value):
                self._document.lines[*path, index] = _line(child)
                items.append(self.value(child, (*path, index), depth + 1))
            return items
        return self._scalar(node)

    def _mapping(self, node: MappingNode, path: KeyPath, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        for key_node, child in node.value:
            if not isinstance(key_node, ScalarNode) or key_node.tag not in _TEXT:
                self._fault(key_node, "a key must be a word; put it in quotes if it is meant as one.")
                continue
            key = str(key_node.value)
            if key in found:
                first = self._document.lines[*path, key]
                self._fault(key_node, f"{_dotted((*path, key))} stands here a second time (first on line {first}).")
                continue
            self._document.lines[*path, key] = _line(key_node)
            found[key] = self.value(child, (*path, key), depth + 1)
        return found

    def _scalar(self, node: Node) -> object:
        if node.tag in _TEXT:
            return str(node.value)
        if node.tag not in _CONSTRUCTED:
            self._fault(node, "tags (!…) are not read.")
            return None
        try:
            return self._yaml.constructor.construct_object(node)
        except (ValueError, OverflowError):
            self._fault(node, "this number can't be read.")
            return None

    def _fault(self, node: Node, message: str) -> None:
        self._document.problems.append((_line(node), message))


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _dotted(path: KeyPath) -> str:
    return ".".join(str(part) for part in path)
