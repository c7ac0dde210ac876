"""Import a list of contacts from a CSV file: first a dry run, then the import.

CARTEIRO_URL=… CARTEIRO_KEY=… python import_contacts.py leads.csv Nome:name,E-mail:email
"""

import os
import sys
import time

from carteiro_client import AuthenticatedClient
from carteiro_client.api.contacts import import_contacts
from carteiro_client.api.imports import get_import
from carteiro_client.models import ImportJob
from carteiro_client.types import UNSET, File

client = AuthenticatedClient(base_url=os.environ["CARTEIRO_URL"], token=os.environ["CARTEIRO_KEY"])


def run(path: str, columns: str, *, dry_run: bool) -> ImportJob:
    """Send the file and wait for the end of the import."""
    with open(path, "rb") as file:
        job = import_contacts.sync(
            client=client, body=File(payload=file), columns=columns or UNSET, dry_run=dry_run
        )
    assert isinstance(job, ImportJob), job
    while job.state == "running":
        time.sleep(0.5)
        job = get_import.sync(client=client, id=job.id)
        assert isinstance(job, ImportJob), job
    return job


path, columns = sys.argv[1], (sys.argv[2:] or [""])[0]
tried = run(path, columns, dry_run=True)
for fault in tried.faults or []:
    print(f"line {fault.line}, {fault.column}: {fault.error}")
done = run(path, columns, dry_run=False)
print(f"{done.state}: {done.created} created, {done.updated} updated, {done.faulty} left out")
