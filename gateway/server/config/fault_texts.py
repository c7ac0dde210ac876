"""Words the faults of a configuration: what a value must be, and which key may be meant."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta

NUMBERS = {int: "a whole number", float: "a number"}


def wrong_value(hint: Any, value: Any, *, secret: bool) -> str:
    """Return what a value of this type must be, and what it is unless it is `secret`."""
    fault = f"must be {_expected(hint)}"
    return fault if secret else f"{fault}, not {_shown(value)}"


def unknown_key(section: str, key: str, source: str, keys: Mapping[str, Iterable[str]]) -> str:
    """Return the fault of a key that is not in `keys`, a list for each section.

    A key above all sections has an empty one.
    """
    if not section:
        places = [f"[{other}]" for other, its in keys.items() if key in its]
        hint = f"; did you mean {' or '.join(places)}?" if places else ""
        return f"{key}: belongs below the line of a section (from {source}){hint}"
    if section not in keys:
        return unknown_section(key if key == section else f"{section}.{key}", section, source, keys)
    fault = f"{section}.{key}: unknown key (from {source})"
    names = list(keys[section])
    meant = [f"{section}.{name}" for name in difflib.get_close_matches(key, names, n=1)] or [
        f"{other}.{key}" for other, its in keys.items() if key in its
    ]
    if meant:
        return f"{fault}; did you mean {' or '.join(meant)}?"
    return f"{fault}; keys of [{section}]: {', '.join(names) or 'none yet'}"


def unknown_section(name: str, section: str, source: str, sections: Iterable[str]) -> str:
    """Return the fault of a section that is not in `sections`."""
    known = list(sections)
    fault = f"{name}: unknown section (from {source})"
    for meant in difflib.get_close_matches(section, known, n=1):
        return f"{fault}; did you mean [{meant}]?"
    return f"{fault}; known sections: {', '.join(known)}"


def _expected(hint: Any) -> str:
    """Return the values that a type allows, as a noun phrase."""
    meta = hint.__metadata__[0] if hasattr(hint, "__metadata__") else Meta()
    inner = hint.__origin__ if hasattr(hint, "__metadata__") else hint
    if meta.description:
        return str(meta.description)
    if get_origin(inner) is Literal:
        return f"one of {', '.join(get_args(inner))}"
    if get_origin(inner) is tuple:
        most = f"at most {meta.max_length} " if meta.max_length else ""
        return f"a list of {most}entries, each {_expected(get_args(inner)[0])}"
    if inner is bool:
        return "true or false"
    return NUMBERS[inner] + _range(meta) if inner in NUMBERS else "text in quotes"


def _range(meta: Meta) -> str:
    if meta.le is None:
        return "" if meta.ge is None else f" of {meta.ge} or more"
    low = f" above {meta.gt} and up to " if meta.ge is None else f" from {meta.ge} to "
    return f"{low}{meta.le}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'the text "{value}"'
    if isinstance(value, float):
        return str(value)  # JSON has no nan and no inf
    return msgspec.json.encode(value).decode()
