// Keep a copy of all contacts in a file of your own; run it as often as you like.
//
// Each run asks only for what has changed since the last one: `updatedSince` gives new and changed
// contacts, and the events feed tells which were deleted. The client is that of client.ts.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { type Contact, listContacts, listEvents } from "./client/index";
import { client } from "./client/client.gen";

type Copy = { since: string; place?: string; contacts: Record<string, Contact> };

const file = process.env.COPY ?? "copy.json";
const copy: Copy = existsSync(file)
  ? (JSON.parse(readFileSync(file, "utf8")) as Copy)
  : { since: "1970-01-01T00:00:00Z", contacts: {} };

// Contacts and places are stored together, and whole: a rename is all or nothing.
function save(): void {
  writeFileSync(`${file}.new`, JSON.stringify(copy));
  renameSync(`${file}.new`, file);
}

// Store what is new or changed, in the order of the changes.
async function storeChanges(): Promise<number> {
  // A change that waits for others has the time at which it began, which may be read by then.
  const updatedSince = new Date(Date.parse(copy.since) - 60_000).toISOString();
  let count = 0;
  let cursor: string | undefined;
  do {
    const { data: page } = await listContacts({
      query: { updatedSince, cursor, limit: 100 }, throwOnError: true,
    });
    // Without `fields` each contact is whole.
    const whole = page.data as Contact[];
    for (const one of whole) copy.contacts[one.id] = one;
    const last = whole.at(-1);
    if (last) copy.since = last.updatedAt ?? last.createdAt;
    save();
    count += whole.length;
    cursor = page.nextCursor;
  } while (cursor);
  return count;
}

async function removeDeleted(): Promise<number> {
  let count = 0;
  for (let more = true; more; ) {
    const { data: page } = await listEvents({
      query: { types: "contact.deleted", after: copy.place, limit: 100 }, throwOnError: true,
    });
    for (const event of page.data) {
      if (event.recordId in copy.contacts) count += 1;
      delete copy.contacts[event.recordId];
    }
    copy.place = page.nextCursor ?? copy.place;
    save();
    more = page.hasMore;
  }
  return count;
}

async function main(): Promise<void> {
  client.setConfig({ baseUrl: process.env.CARTEIRO_URL!, auth: process.env.CARTEIRO_KEY! });
  const stored = await storeChanges();
  // Afterwards, so that a contact that is deleted meanwhile does not stay.
  console.log(`stored ${stored}, removed ${await removeDeleted()}`);
}

void main();
