"""The files and variables that a configuration comes from, by their names alone: values may be
secrets."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_type_hints

from gateway.server.config import FILES, PREFIX, SECTIONS, environment_name

FILE_ENDING = "_FILE"


def files(named: str | None) -> list[Path]:
    """Return the files to read, each overriding those before it.

    A named file replaces the usual ones; of these, those count that exist.
    """
    if named:
        return [Path(named)]
    return [file for file in map(Path, FILES) if file.exists()]


def told(named: str | None, env: Mapping[str, str]) -> Iterator[str]:
    """Yield lines that name what is read, what is overridden, and what looks like a setting."""
    read = [str(file.absolute()) for file in files(named)]
    nothing = f"none; {Path.cwd()} has no {' and no '.join(FILES)}"
    yield f"Files: {', '.join(read) or nothing}."
    settings = sorted(name for name in env if name.startswith(PREFIX) and "__" in name)
    over = {name for name in settings if f"{name}{FILE_ENDING}" in settings}
    used = [
        f"{name} (reads {env[name].strip()})" if _is_file(name) else name
        for name in settings
        if name not in over
    ]
    yield f"Variables: {', '.join(used) or 'none'}."
    for name in sorted(over):
        yield f"Not used: {name}, because {name}{FILE_ENDING} is set."
    meant = {
        environment_name(section, key).replace("__", "_"): environment_name(section, key)
        for section, kind in SECTIONS.items()
        for key in get_type_hints(kind)
    }
    for name in sorted(meant.keys() & env.keys()):
        yield f"Not used: {name}, which is no setting; did you mean {meant[name]}?"


def _is_file(name: str) -> bool:
    """Return whether a variable names a secret's file; `CARTEIRO_SECRETS__KEY_FILE` is a key."""
    section, _, key = name.removeprefix(PREFIX).lower().partition("__")
    return key.endswith("_file") and key not in get_type_hints(SECTIONS[section])
