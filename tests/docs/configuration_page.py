"""Writes docs/reference/configuration.md from config.toml and its comments."""

import os
import re
from collections.abc import Iterator

from tests.architecture.tree import ROOT

HERE = "docs/reference"
KEY = re.compile(r"(\w+) = (.*)")
PAGE = re.compile(r"docs/[\w/-]+\.md(#[\w-]+)?")
INTRO = """\
# Configuration

`config.toml` holds every key with its default. Leave it unchanged. Write the keys that you change
to `config.local.toml` beside it (git ignores this file), to a file that `--config` or
`CARTEIRO_CONFIG` names, or to the environment:

```toml
[server]
port = 8081
public_url = "https://crm.example.com"
```

```sh
CARTEIRO_SERVER__PORT=8081 carteiro check-config
```

<!-- prints -->
```text
The configuration is valid.
```

- The environment wins over the files. `[section] key` is `CARTEIRO_SECTION__KEY`. Lists are
  separated by commas there: `CARTEIRO_EGRESS__ALLOW=10.1.2.3/32:8443,10.1.2.4/32`.
- `config.local.toml` wins over `config.toml`. A file that you name replaces both.
- Six secrets may come from files: `CARTEIRO_DATABASE__URL_FILE`,
  `CARTEIRO_DATABASE__DIRECT_URL_FILE`, `CARTEIRO_EGRESS__PROXIES_FILE`,
  `CARTEIRO_METRICS__TOKEN_FILE`, `CARTEIRO_MAIL__PASSWORD_FILE` and
  `CARTEIRO_TRACING__HEADERS_FILE`.
- Carteiro refuses to start on an unknown key or a wrong value. `carteiro check-config` lists all
  faults at once.
- Every command uses the same configuration as `serve`. A change needs a restart.
"""
TABLE = "\n| key | default | meaning |\n| --- | --- | --- |"


def lines() -> Iterator[str]:
    """Yield the page."""
    yield INTRO.rstrip()
    yield from _sections((ROOT / "config.toml").read_text())


def _sections(text: str) -> Iterator[str]:
    said: list[str] = []
    # The first paragraph is about the file.
    for line in text.partition("\n\n")[2].splitlines():
        if line.startswith("["):
            yield f"\n## {line.strip('[]')}\n{TABLE}"
        elif line.startswith("#"):
            said.append(line.removeprefix("#").strip())
        elif (key := KEY.match(line)) is not None:
            meaning = PAGE.sub(_link, " ".join(said)).replace("|", "\\|")
            yield f"| `{key[1]}` | `{key[2]}` | {meaning} |"
            said.clear()


def _link(found: re.Match[str]) -> str:
    path, _, anchor = found[0].partition("#")
    name = anchor or os.path.basename(path)
    return f"[{name}]({os.path.relpath(path, HERE)}{found[1] or ''})"
