"""Takes the tour of test_generated_clients with a client of openapi-python-client, as generated.

It runs in the environment of the generator, next to the package `carteiro_client`, and reads the
tour from its input: `{"origin", "key", "saved", "steps"}`. It prints its figures.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from datetime import datetime
from typing import Any


def main() -> None:
    tour = json.load(sys.stdin)
    package = importlib.import_module("carteiro_client")
    models = importlib.import_module("carteiro_client.models")
    saved: dict[str, str] = tour["saved"]
    clients = {"key": package.AuthenticatedClient(base_url=tour["origin"], token=tour["key"])}
    for step in tour["steps"]:
        words = {snake(name): put(value, saved) for name, value in step["path"].items()}
        words |= {snake(name): value for name, value in step["query"].items()}
        if step["takes"]:
            words["body"] = getattr(models, step["takes"]).from_dict(put(step["body"], saved))
        module = f"carteiro_client.api.{snake(step['tag'])}.{snake(step['operation'])}"
        reply = importlib.import_module(module).sync_detailed(client=clients[step["by"]], **words)
        assert reply.status_code == step["status"], (step, reply.status_code, reply.content)
        parsed = reply.parsed
        if step["model"]:
            assert type(parsed).__name__ == step["model"], (step, parsed)
            assert same(parsed.to_dict(), json.loads(reply.content)), (step, reply.content)
        if step["operation"] == "createToken":
            token = parsed.token
            clients["token"] = package.AuthenticatedClient(base_url=tour["origin"], token=token)
        elif step["saves"]:
            saved[step["saves"]] = parsed.id
    print(json.dumps({"calls": len(tour["steps"]), "models": len(models.__all__)}))


def put(value: Any, saved: dict[str, str]) -> Any:
    """Return a value of a step with the saved ids in their places."""
    if isinstance(value, str) and value.startswith("$"):
        return saved[value[1:]]
    if isinstance(value, list):
        return [put(one, saved) for one in value]
    if isinstance(value, dict):
        return {name: put(one, saved) for name, one in value.items()}
    return value


def same(one: Any, other: Any) -> bool:
    """Return whether two values of JSON say the same; an instant has several spellings."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, str) and one != other:
        return datetime.fromisoformat(one) == datetime.fromisoformat(other)
    return bool(one == other)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W", "_", name).lower()


if __name__ == "__main__":
    main()
