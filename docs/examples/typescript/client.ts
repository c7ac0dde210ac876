// Create, read, change and list with a generated client.
//
//   npx @hey-api/openapi-ts -i $CARTEIRO_URL/api/openapi.json -o client -c @hey-api/client-fetch
//   CARTEIRO_URL=http://127.0.0.1:8080 CARTEIRO_KEY=crt_… npx tsx client.ts
import { createContact, createDeal, getContact, listDeals, updateContact } from "./client/index";
import { client } from "./client/client.gen";

async function main(): Promise<void> {
  client.setConfig({ baseUrl: process.env.CARTEIRO_URL!, auth: process.env.CARTEIRO_KEY! });

  // A repeat with the same Idempotency-Key creates nothing, so it is safe after a timeout.
  const made = await createContact({
    body: { name: "Ana Lima", email: "ana@example.com" },
    headers: { "Idempotency-Key": "example-contact-1" },
    throwOnError: true,
  });
  const id = made.data.id!;

  // If-Match refuses the change when somebody else has changed the contact since we read it.
  const read = await getContact({ path: { id }, throwOnError: true });
  const headers = { "If-Match": read.response.headers.get("ETag")! };
  await updateContact({ path: { id }, headers, body: { position: "Buyer" }, throwOnError: true });
  const late = await updateContact({ path: { id }, headers, body: { position: "CEO" } });
  console.log("too late:", late.error?.code);

  await createDeal({
    body: { title: "Coffee machines", value: 12500.5, contactIds: [id] },
    throwOnError: true,
  });
  const page = await listDeals({
    query: { contactId: id, include: "contacts" },
    throwOnError: true,
  });
  const people = new Map(page.data.included?.contacts?.map((one) => [one.id, one.name]));
  for (const deal of page.data.data) {
    console.log(deal.title, deal.value, deal.contactIds?.map((one) => people.get(one)));
  }
}

void main();
