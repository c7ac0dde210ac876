"""Create, read, change and list with a generated client.

    openapi-python-client generate --url $CARTEIRO_URL/api/openapi.json --meta none \\
        --output-path carteiro_client
    CARTEIRO_URL=http://127.0.0.1:8080 CARTEIRO_KEY=crt_… python client.py
"""

import os

from carteiro_client import AuthenticatedClient
from carteiro_client.api.contacts import create_contact, get_contact, update_contact
from carteiro_client.api.deals import create_deal, list_deals
from carteiro_client.models import (
    Contact,
    ContactCreate,
    ContactUpdate,
    Deal,
    DealCreate,
    DealPage,
    Error,
)

client = AuthenticatedClient(base_url=os.environ["CARTEIRO_URL"], token=os.environ["CARTEIRO_KEY"])

# A repeat with the same Idempotency-Key creates nothing, so it is safe after a timeout.
made = create_contact.sync(
    client=client,
    body=ContactCreate(name="Ana Lima", email="ana@example.com"),
    idempotency_key="example-contact-1",
)
assert isinstance(made, Contact), made

# If-Match refuses the change when somebody else has changed the contact since we read it.
read = get_contact.sync_detailed(client=client, id=made.id)
changed = update_contact.sync_detailed(
    client=client,
    id=made.id,
    body=ContactUpdate(position="Buyer"),
    if_match=read.headers["ETag"],
)
assert isinstance(changed.parsed, Contact), changed.parsed
late = update_contact.sync(
    client=client, id=made.id, body=ContactUpdate(position="CEO"), if_match=read.headers["ETag"]
)
assert isinstance(late, Error)
print("too late:", late.code)

deal = create_deal.sync(
    client=client, body=DealCreate(title="Coffee machines", value=12500.5, contact_ids=[made.id])
)
assert isinstance(deal, Deal), deal
page = list_deals.sync(client=client, contact_id=made.id, include="contacts")
assert isinstance(page, DealPage), page
people = {one.id: one.name for one in page.included.contacts}
for one in page.data:
    print(one.title, one.value, [people[contact] for contact in one.contact_ids])
