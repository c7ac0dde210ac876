"""The schema of the Helm chart's values: its part `config` comes from the program's configuration.

`python -m tests.deploy.chart` writes it again after a change of the configuration.
"""

import json
from typing import Any

import msgspec

from gateway.server.config import SECRET_KEYS, Config
from tests.docs.test_deploy_files import DEPLOY

CHART = DEPLOY / "helm" / "carteiro"
SCHEMA = CHART / "values.schema.json"
OF_THE_CHART = {"database.url", "secrets.key_file", "secrets.keys", "server.host"}
"""Keys that the chart sets."""
WIDTH = 100


def config_schema() -> dict[str, Any]:
    """Return the schema of `config`: every key but secrets and those of the chart."""
    document = msgspec.json.schema(Config)
    parts = document["$defs"]
    sections = {}
    for section, reference in parts["Config"]["properties"].items():
        keys = parts[reference["$ref"].rpartition("/")[2]]["properties"]
        given = {
            key: _plain(schema, parts)
            for key, schema in keys.items()
            if f"{section}.{key}" not in SECRET_KEYS | OF_THE_CHART
        }
        if given:
            sections[section] = _closed(given)
    return _closed(sections)


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    # A section that is null has the defaults of the program.
    return {
        "type": ["object", "null"], "additionalProperties": False, "properties": properties,
    }  # fmt: skip


def _plain(schema: Any, parts: dict[str, Any]) -> Any:
    """Return a schema without defaults, texts and references, with patterns as Helm reads them."""
    if isinstance(schema, list):
        return [_plain(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(parts[schema["$ref"].rpartition("/")[2]], parts)
    left_out = ("default", "description", "title", "pattern")
    plain = {
        key: {name: _plain(each, parts) for name, each in value.items()}
        if key == "properties"
        else _plain(value, parts)
        for key, value in schema.items()
        if key not in left_out
    }
    if "pattern" in schema:
        plain["pattern"] = schema["pattern"].replace(r"\A", "^").replace(r"\Z", "$")
    return plain


def text() -> str:
    """Return the file with the part `config` and the secret settings of today."""
    schema = json.loads(SCHEMA.read_text())
    secret = schema["properties"]["secrets"]["items"]["properties"]["setting"]
    secret["enum"] = sorted(SECRET_KEYS - OF_THE_CHART)
    schema["properties"]["config"] = config_schema()
    return _written(schema, "") + "\n"


def _written(value: Any, indent: str) -> str:
    """Return JSON whose objects are in one line where they fit."""
    line = json.dumps(value)
    if not isinstance(value, dict) or len(indent) + len(line) <= WIDTH:
        return line
    deeper = indent + "  "
    lines = [f"{deeper}{json.dumps(key)}: {_written(each, deeper)}" for key, each in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


if __name__ == "__main__":
    SCHEMA.write_text(text())
