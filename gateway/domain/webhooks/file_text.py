"""Reads and writes files of webhooks: TOML with a table `[[webhook]]` for each.

A file has no secrets. In place of a text it may have where the text is: `{ env = "NAME" }` or
`{ file = "/path" }`; only who may read both of them looks them up. gateway.domain.webhooks.settings
has the settings, file_plan compares a file with the webhooks of an account.
It is one module because each kind of setting has its two forms, read and written, side by side.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from typing import Any

from gateway.domain.webhooks import settings
from gateway.domain.webhooks.settings import EMPTY, SETTINGS, Setting, Typed
from gateway.records.errors import Fault, Refusal
from gateway.records.values.formats import Wrong
from outbox.ids import ID_LENGTH, is_id
from outbox.sending.request import key_of

MOST_BYTES = 512 * 1024
MOST = 500
"""Webhooks of a file."""
TABLE = "webhook"
BESIDE = ("id", "secret")
"""Keys of a webhook that are no settings."""
KEYS = (*BESIDE, *(one.name for one in SETTINGS))
PLACES = ("env", "file")
PLACES_ONLY = frozenset(PLACES)
SECRET_SIZES = range(24, 65)
"""Bytes of a secret, as the Standard Webhooks specification has them."""
MOST_FAULTS = 100
"""Unknown keys are told up to this number of faults."""
LARGEST = 10**9
HEADING = re.compile(r"\s*\[\[\s*webhook\s*\]\]")
MOST_PARTS = 8
"""Parts of a key such as `a.b.c`. The parser of the standard library takes time by their square,
and by the parts of a table's heading for each key below it: most of a minute for 32 KiB."""
_SKIPPED = re.compile(
    r'"""(?:[^\\"]|\\(?:.|\Z)|"(?!""))*+(?:"{3,5}|\Z)'
    r"|'''(?:[^']|'(?!''))*+(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\(?:.|\Z))*+(?:"|\n|\Z)'
    r"|'[^'\n]*+(?:'|\n|\Z)|(?P<comment>#[^\n]*+)",
    re.DOTALL,
)
"""Texts and comments of TOML. One that does not end goes on to where the parser gives up too."""
_PART = r"\.[ \t]*+[\w-]++[ \t]*+"
_LONG_KEY = re.compile(f"(?:{_PART}){{{MOST_PARTS}}}")
BARE = re.compile(r"[A-Za-z0-9_-]+")
KEY = re.compile(r"\s*([A-Za-z][\w-]*)\s*=")
WRITE: Mapping[settings.Kind, str] = {
    "text": 'Write {name} as a text in quotes, such as {name} = "…".',
    "number": "Write {name} as a whole number without quotes.",
    "flag": "Write {name} as true or false, without quotes.",
    "words": 'Write {name} as a list of texts, such as {name} = ["…", "…"].',
    "lines": 'Write {name} as a list of texts, such as {name} = ["…", "…"].',
    "pairs": 'Write {name} as a table of texts, such as {name} = {{ "X-Team" = "…" }}.',
    "parts": 'Write {name} as a table of texts, such as {name} = {{ tokenUrl = "…", … }}.',
}

Lookup = Callable[[str, str], str]
"""(`env` or `file`, its name or path) → the text there. Raises Wrong."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a webhook stands: what it is called in faults, and the lines of its keys."""

    label: str
    lines: Mapping[str, int]

    def at(self, key: str = "") -> str:
        """Return the place of a key, or of the whole."""
        line = self.lines.get(key.partition(".")[0]) or self.lines.get("")
        return ", ".join(filter(None, (f"line {line}" if line else "", self.label, key)))


@dataclass(frozen=True, slots=True)
class Entry:
    """A webhook of a file; `secret` is given for its creation only."""

    place: Place
    id: str | None
    typed: Mapping[str, Typed]
    secret: str | None

    @property
    def name(self) -> str:
        return str(self.typed["name"])


def no_lookup(place: str, name: str) -> str:
    """Look nothing up: for a file from somebody who may not read what the server reads."""
    raise Wrong(
        "file_reference",
        "Only the command `carteiro webhooks` reads from the environment and from files.",
    )


def read(text: str, lookup: Lookup = no_lookup) -> list[Entry]:
    """Return the webhooks of a file. Raises validation_error with every fault and its line."""
    if _has_long_key(text):
        message = f"A key has more than {MOST_PARTS} parts between dots."
        raise _refused([Fault("file", "file_toml", message)])
    try:
        document = tomllib.loads(text)
    except ValueError as error:
        # Not TOMLDecodeError alone: a number of thousands of digits raises another one.
        raise _refused([Fault("file", "file_toml", f"This is no valid TOML: {error}.")]) from None
    except RecursionError:
        raise _refused([Fault("file", "file_toml", "The file is nested too deep.")]) from None
    faults = [
        Fault(key[:80], "file_key", f"A file has only tables [[{TABLE}]].")
        for key in document
        if key != TABLE
    ][:MOST_FAULTS]
    tables = document.get(TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise _refused([Fault(TABLE, "file_type", f"Write each webhook below [[{TABLE}]].")])
    if len(tables) > MOST:
        text = "A file has at most {most} webhooks."
        raise _refused([Fault(TABLE, "too_many", text, {"most": MOST})])
    lines = _lines(text)
    entries = [
        _entry(table, lines[place] if place < len(lines) else {}, place, lookup, faults)
        for place, table in enumerate(tables)
    ]
    for key in ("id", "name"):
        _must_differ(entries, key, faults)
    if faults:
        raise _refused(faults)
    return entries


def written(webhooks: Sequence[tuple[str, Mapping[str, Typed]]], heading: str = "") -> str:
    """Return the file of these webhooks: their ids and what would be typed for their settings."""
    parts = [f"# {line}\n" for line in heading.splitlines()]
    for webhook_id, typed in webhooks:
        parts.append(f"\n[[{TABLE}]]\nid = {_quoted(webhook_id)}\n")
        parts += [
            f"{setting.name} = {_value(setting, typed[setting.name])}\n"
            for setting in SETTINGS
            if typed[setting.name] != EMPTY[setting.kind]
        ]
    return "".join(parts).lstrip("\n")


def _refused(faults: Sequence[Fault]) -> Refusal:
    return Refusal("validation_error", "Nothing was changed.", faults=faults)


def _entry(
    table: Mapping[str, Any], lines: Mapping[str, int], place: int, lookup: Lookup,
    faults: list[Fault],
) -> Entry:  # fmt: skip
    named = next((table[key] for key in ("name", "id") if isinstance(table.get(key), str)), "")
    label = f"{TABLE} {str(named)[:80]!r}" if named else f"{TABLE} {place + 1}"

    where = Place(label, lines)

    def fault(key: str, wrong: Wrong) -> None:
        faults.extend(wrong.faults(where.at(key)))

    for key in table:
        if key not in KEYS and len(faults) < MOST_FAULTS:
            near = difflib.get_close_matches(key[:80], KEYS, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Its keys are {', '.join(KEYS)}."
            fault(key[:80], Wrong("file_key", f"A webhook has no {key[:80]!r}. {hint}"))
    typed: dict[str, Typed] = dict(settings.NOTHING)
    for setting in SETTINGS:
        if setting.name in table:
            try:
                typed[setting.name] = _typed(setting, table[setting.name], lookup)
            except Wrong as wrong:
                fault(setting.name, wrong)
    webhook_id, secret = table.get("id"), None
    if webhook_id is not None and not (isinstance(webhook_id, str) and is_id(webhook_id)):
        text = "An id has {size} hexadecimal digits; leave it out for a new one."
        fault("id", Wrong("file_id", text, size=ID_LENGTH))
        webhook_id = None
    if "secret" in table:
        try:
            secret = _secret(table["secret"], lookup)
        except Wrong as wrong:
            fault("secret", wrong)
    if webhook_id is None and "id" not in table and not typed["name"] and "name" not in table:
        message = "Give it a name, by which the next plan finds it, or the id of one that exists."
        fault("name", Wrong("file_identity", message))
    return Entry(where, webhook_id and webhook_id.lower(), typed, secret)


def _must_differ(entries: Sequence[Entry], key: str, faults: list[Fault]) -> None:
    seen: set[str] = set()
    for entry in entries:
        value = getattr(entry, key)
        if value and value in seen:
            message = f"Another webhook of the file has this {key}."
            faults.append(Fault(entry.place.at(key), "file_twice", message))
        seen.add(value)


def _typed(setting: Setting, value: Any, lookup: Lookup) -> Typed:
    wrong = Wrong("file_type", WRITE[setting.kind].format(name=setting.name))
    match setting.kind:
        case "text":
            return _text(value, lookup, wrong)
        case "number" if isinstance(value, int) and not isinstance(value, bool):
            # A hexadecimal number may have more digits than Python writes.
            if abs(value) > LARGEST:
                raise wrong
            return str(value)
        case "flag" if isinstance(value, bool):
            return value
        case "words" if isinstance(value, list):
            return tuple(dict.fromkeys(_text(item, lookup, wrong) for item in value))
        case "lines" if isinstance(value, list):
            return "".join(f"{_line(_text(item, lookup, wrong), wrong)}\n" for item in value)
        case "pairs" if isinstance(value, dict):
            pairs = ((name, _text(item, lookup, wrong)) for name, item in value.items())
            return "".join(f"{_key(name)}: {_line(item, wrong)}\n" for name, item in pairs)
        case "parts" if isinstance(value, dict):
            pairs = ((name, _text(item, lookup, wrong)) for name, item in _flat(value))
            return "".join(f"{_key(name)}: {_line(item, wrong)}\n" for name, item in pairs)
    raise wrong


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values of a table and of the tables in it, which are no places of a value."""
    for name, value in table.items():
        if isinstance(value, dict) and not PLACES_ONLY.issuperset(value):
            yield from ((f"{name}.{inner}", one) for inner, one in value.items())
        else:
            yield name, value


def _text(value: Any, lookup: Lookup, wrong: Wrong) -> str:
    """Return a text, or that of the place which stands for it."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and len(value) == 1:
        [(place, name)] = value.items()
        if place in PLACES and isinstance(name, str):
            return lookup(place, name)
    raise wrong


def _line(text: str, wrong: Wrong) -> str:
    if len(text.splitlines()) > 1:
        raise wrong
    return text.strip()


def _key(name: str) -> str:
    if ":" in name or len(name.splitlines()) != 1:
        raise Wrong("invalid", "Header names can contain only letters, digits and hyphens.")
    return name.strip()


def _secret(value: Any, lookup: Lookup) -> str:
    wrong = Wrong(
        "file_secret",
        'Say where the secret is: secret = { env = "NAME" } or { file = "/path" }; without it, '
        "one is made.",
    )
    if not isinstance(value, dict):
        raise wrong
    secret = _text(value, lookup, wrong).strip()
    try:
        size = len(key_of(secret))
    except ValueError:
        size = 0
    if size not in SECRET_SIZES:
        text = "A secret is whsec_ and the base64 of {least} to {most} bytes."
        raise Wrong("file_secret_form", text, least=SECRET_SIZES[0], most=SECRET_SIZES[-1])
    return secret


def _lines(text: str) -> list[dict[str, int]]:
    """Return the line of each webhook, by an empty text, and of its keys."""
    found: list[dict[str, int]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if HEADING.match(line):
            found.append({"": number})
        elif found and (key := KEY.match(line)):
            found[-1].setdefault(key[1], number)
    return found


def _value(setting: Setting, typed: Typed) -> str:
    match setting.kind:
        case "text":
            return _quoted(str(typed))
        case "number":
            return str(typed)
        case "flag":
            return "true" if typed else "false"
        case "words":
            assert isinstance(typed, tuple)
            return _list(typed)
        case "lines":
            return _list(str(typed).splitlines())
        case "pairs":
            pairs = (line.partition(": ") for line in str(typed).splitlines())
            inner = ", ".join(f"{_quoted(name)} = {_quoted(value)}" for name, _, value in pairs)
            return f"{{ {inner} }}"
        case "parts":
            pairs = (line.partition(": ") for line in str(typed).splitlines())
            inner = ", ".join(
                f"{'.'.join(map(_bare, name.split('.', 1)))} = {_quoted(value)}"
                for name, _, value in pairs
            )
            return f"{{ {inner} }}"


def _bare(key: str) -> str:
    """Return a key of TOML, in quotes if it needs them."""
    return key if BARE.fullmatch(key) else _quoted(key)


def _list(texts: Sequence[str]) -> str:
    if len(texts) < 2:
        return f"[{', '.join(map(_quoted, texts))}]"
    return "".join(("[\n", *(f"  {_quoted(text)},\n" for text in texts), "]"))


def _quoted(text: str) -> str:
    """Return a basic string of TOML: that of JSON, which leaves DEL as it is."""
    return dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _has_long_key(text: str) -> bool:
    """Return whether a key has more than MOST_PARTS parts, up to where a parser gives up."""
    outside = _SKIPPED.sub(lambda match: "" if match["comment"] else "s", text)
    return _LONG_KEY.search(outside) is not None
