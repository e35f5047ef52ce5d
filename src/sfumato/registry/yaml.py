"""An entry as YAML: nested mappings, lists of texts, texts and numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

# Characters that JSON leaves as they are and YAML does not allow, or reads as the end of a line.
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def as_yaml(content: Mapping[str, Any]) -> str:
    r"""Write nested mappings as YAML that every reader reads alike: texts are quoted, or blocks of lines.

    Examples
    --------
    >>> print(as_yaml({"a": {"b": "yes", "c": 1e-6, "d": ["x"]}, "e": "two\nlines"}), end="")
    a:
      b: "yes"
      c: 1.0e-06
      d:
        - "x"
    e: |-
      two
      lines
    """
    return "".join(f"{line}\n" for line in _lines(content, ""))


def _lines(content: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, value in content.items():
        inner = f"{indent}  "
        if isinstance(value, Mapping):
            yield f"{indent}{name}:"
            yield from _lines(value, inner)
        elif isinstance(value, list):
            yield f"{indent}{name}:"
            yield from (f"{inner}- {_scalar(one)}" for one in value)
        elif isinstance(value, str) and _is_block(value):
            yield f"{indent}{name}: |-"
            yield from (f"{inner}{line}" for line in value.split("\n"))
        else:
            yield f"{indent}{name}: {_scalar(value)}"


def _is_block(text: str) -> bool:
    """Whether a text has several lines that can stand as they are."""
    lines = text.split("\n")
    return len(lines) > 1 and all(line and line == line.strip() and line.isprintable() for line in lines)


def _scalar(value: str | float) -> str:
    if isinstance(value, str):
        return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
    text = repr(value)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text  # 1e-06 would be a text
