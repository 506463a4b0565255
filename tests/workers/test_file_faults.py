"""What is wrong with a file of ours is told in our words, with its line, and with the nearest key that there is."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from counterfoil.workers import yaml_lines
from counterfoil.workers.file_faults import described


class Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    secret: str
    ports: dict[str, int] = Field(min_length=1)


def faults(folder: Path, text: str) -> list[tuple[int, str]]:
    file = folder / "it.yaml"
    file.write_text(text)
    document = yaml_lines.read(file)
    try:
        Entry.model_validate(document.value)
    except ValidationError as error:
        return list(described(document, (), error, lambda _: Entry.model_fields, {"too_short": "names no port."}))
    return []


def test_each_fault_has_its_line_and_our_words(tmp_path: Path) -> None:
    assert faults(tmp_path, "secret: x\nports: {a: 1}\n") == []
    assert faults(tmp_path, "sekret: x\nports: {}\n") == [
        (1, "secret: is missing."),
        (2, "ports: names no port."),
        (1, "sekret: there is no such setting; did you mean secret?"),
    ]
    assert faults(tmp_path, "secret: x\nports: 7\n") == [
        (2, "ports: must be a mapping: indented lines of `key: value`.")
    ]
    assert faults(tmp_path, "secret: x\nports:\n  a: b\n") == [(3, "ports.a: should be a valid integer.")]
