"""The choice of mutants, their changes, and the report on them."""

import ast

import pytest

from tests.support.mutants import ROOT, changed_text, changed_tree, mutants, places, sample, table

POLICY = "outbox/queue/state/policy.py"


def test_a_sample_is_the_same_for_the_same_seed_and_has_every_room() -> None:
    paths = ["outbox/queue/state", "outbox/webhooks", "outbox/worker/certification"]
    drawn = sample(90, 1, paths)
    assert drawn == sample(90, 1, paths) != sample(90, 2, paths)
    assert {"outbox/queue", "outbox/webhooks", "outbox/worker"} == {one.room for one in drawn}


def test_each_mutant_changes_its_module_in_one_place() -> None:
    before = ast.unparse(ast.parse((ROOT / POLICY).read_text()))
    texts = {ast.unparse(changed_tree(one)) for one in mutants(POLICY) if one.number >= 0}
    assert before not in texts
    assert len(texts) > 20


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ("return a < 1", ["return", "comparison", "number"]),
        ("log(f'{a} is', x='y')", ["statement", "text"]),
        ("'''Says.'''\n assert a\n x: 'int' = not a", ["not"]),
        ("return None", []),
    ],
)
def test_what_can_be_changed(code: str, kinds: list[str]) -> None:
    tree = ast.parse(f"@cached(9)\ndef f(a: 'A' = 3):\n {code}")
    assert [one.kind for one in places(tree)] == kinds


def test_sql_is_changed_by_its_operators() -> None:
    module = "outbox/events/event_index.py"
    one = next(one for one in mutants(module) if one.number < 0)
    before, after = changed_text(one)
    assert before != after
    assert len(one.lines) >= 1


def test_the_report_counts_what_no_test_enters_as_unnoticed() -> None:
    results = [{"room": "a", "result": one} for one in ("killed", "survived", "not entered")]
    assert next(table(results)).startswith(" 33.3% of     3  a (1 survived, 1 not entered)")
