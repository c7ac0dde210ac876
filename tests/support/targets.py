"""Which target runs a test: `make test` shows that the code is right, `make proof` all else.

What shows the same once more in another environment, or at full size, is marked `proof`, by hand or
by its place:

- Folders whose subject is a process, a machine or another program: faults, deployment, benchmarks.
- Tests of other languages, frameworks, generated clients, and pictures.
- Doors and the browser on PostgreSQL: `make test` runs them on SQLite, the engine and the records
  on both, but for a list of tests in which neither SQL nor transactions decide.

`slow` is another matter: it keeps a test out of `make test-fast` alone.
"""

from __future__ import annotations

import pytest

PLACES = (
    "tests/benchmarks/",
    "tests/browser/test_pictures.py",
    "tests/dashboards/test_live.py",
    "tests/dashboards/test_pictures.py",
    "tests/deploy/",
    "tests/docs/test_examples.py",
    "tests/docs/test_generated_clients.py",
    "tests/docs/test_receivers.py",
    "tests/docs/test_recipes.py",
    "tests/docs/test_typed_clients.py",
    "tests/system/",
)
"""All tests here are proofs."""

DOORS = (
    "tests/browser/",
    "tests/gateway/cli/",
    "tests/gateway/console/",
    "tests/gateway/graphql/",
    "tests/gateway/rest/",
    "tests/gateway/server/",
)
"""On PostgreSQL these are proofs."""

ALIKE = (
    "tests/gateway/domain/contacts/test_tasks.py::test_a_returned_day_stays_a_day",
    "tests/gateway/domain/contacts/test_tasks.py::test_a_verb_reads_no_body",
    "tests/gateway/domain/reports/test_reports.py::test_an_invalid_query_is_refused",
    "tests/gateway/domain/reports/test_reports.py::test_reports_need_the_scope_read",
    "tests/gateway/domain/sales/test_coupons.py::test_a_change_is_judged_with_what_it_leaves",
    "tests/gateway/domain/sales/test_coupons.py::test_a_coupon_of_a_bare_date",
    "tests/gateway/domain/sales/test_coupons.py::test_faults_of_a_coupon",
    "tests/gateway/domain/sales/test_deals.py::test_an_invalid_pipeline",
    "tests/gateway/domain/sales/test_invoices.py::test_a_line_is_rounded_half_up",
    "tests/gateway/domain/sales/test_order_batches.py",
    "tests/gateway/domain/sales/test_products.py::test_every_fault_is_reported_at_once",
    "tests/gateway/domain/sales/test_quotes.py::test_every_move_by_put_and_by_verb",
    "tests/gateway/domain/storefront/catalogue/test_reviews.py::test_only_a_customer",
    "tests/gateway/domain/storefront/catalogue/test_reviews.py::test_too_much_text",
    "tests/gateway/domain/storefront/stores/test_host_proofs.py::test_the_console",
    "tests/gateway/domain/test_import_costs.py::test_a_file_is_parsed_beside_the_event_loop",
    "tests/gateway/domain/webhooks/test_files.py",
    "tests/outbox/queue/proof/test_checkpoints.py::test_it_accepts_a_hundred",
    "tests/outbox/queue/proof/test_checkpoints.py::test_it_finds_a_hundred",
    "tests/outbox/worker/test_access_tokens.py",
    "tests/outbox/worker/test_cloud_events.py",
    "tests/outbox/worker/test_public_signatures.py",
    "tests/outbox/worker/test_thin.py",
    "tests/outbox/worker/test_tokens_and_handshakes.py",
    "tests/outbox/worker/test_ways.py",
)
"""On PostgreSQL these are proofs too: neither SQL nor transactions decide what they show."""


def is_proof(path: str, *, on_postgres: bool) -> bool:
    """Return whether the place of a test leaves it out of `make test`."""
    return path.startswith(PLACES) or (on_postgres and path.startswith(DOORS + ALIKE))


def leaves_out(wanted: str, path: str) -> bool:
    """Return whether a run with this expression of marks takes no test of a file.

    Such a file is not even collected, which takes a second of each worker for all of them.
    """
    return wanted.startswith("not proof") and path.startswith(PLACES)


def mark_proofs(items: list[pytest.Item]) -> None:
    """Mark the tests that `make test` leaves out because of their place."""
    for item in items:
        case = getattr(item, "callspec", None)
        on_postgres = case is not None and "postgres" in map(str, case.params.values())
        if is_proof(item.nodeid, on_postgres=on_postgres):
            item.add_marker(pytest.mark.proof)
