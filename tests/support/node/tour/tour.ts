// Takes the tour of tests/docs/test_generated_clients.py with a client of @hey-api/openapi-ts, as it was generated.
// It reads the tour from its input, and prints its figures; the compiler has checked what is typed.
import { createClient, createConfig } from "./client/client";
import * as sdk from "./client/index";
import type { Contact, DealStatus, Error as Refused, EventDealUpdated } from "./client/index";

declare function require(name: "node:fs"): { readFileSync(from: number, as: string): string };

type Step = {
  operation: string;
  path: Record<string, string>;
  query: Record<string, unknown>;
  body: unknown;
  saves: string;
  by: "key" | "token";
  status: number;
  model: string;
};
type Reply = { data?: unknown; error?: unknown; response: Response };
type Call = (options: object) => Promise<Reply>;

const tour = JSON.parse(require("node:fs").readFileSync(0, "utf8")) as {
  origin: string; key: string; saved: Record<string, string>; steps: Step[];
};
const secrets = { key: tour.key, token: "" };
const calls = sdk as unknown as Record<string, Call>;

function put(value: unknown): unknown {
  if (typeof value === "string" && value.startsWith("$")) return tour.saved[value.slice(1)];
  if (Array.isArray(value)) return value.map(put);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, put(one)]));
}

function clientOf(by: "key" | "token") {
  return createClient(createConfig({ baseUrl: tour.origin, auth: (scheme) =>
    scheme.type === "http" ? secrets[by] : undefined }));
}

async function everything(): Promise<void> {
  for (const step of tour.steps) {
    const call = calls[step.operation];
    if (call === undefined) throw new Error(`the client has no ${step.operation}`);
    const { data, error, response } = await call({
      client: clientOf(step.by), path: put(step.path), query: step.query,
      ...(step.body === null ? {} : { body: put(step.body) }),
    });
    if (response.status !== step.status) {
      throw new Error(`${step.operation}: ${response.status} ${JSON.stringify(error)}`);
    }
    const record = data as { id: string; token: string };
    if (step.operation === "createToken") secrets.token = record.token;
    else if (step.saves) tour.saved[step.saves] = record.id;
  }
}

// What the types promise: a refusal has a code, choices are closed lists, events have their fields.
async function typed(): Promise<string[]> {
  const client = clientOf("key");
  const made = await sdk.createContact({ client, body: { name: "Bruno", source: "web" } });
  if (!made.data) throw new Error(made.error.code);
  const read = await sdk.getContact({ client, path: { id: made.data.id! } });
  // Without `fields` a response has the whole record.
  const contact = read.data as Contact;
  const status: DealStatus = "open";
  const deals = await sdk.listDeals({ client, query: { status, include: "company" } });
  const first: string | undefined = deals.data!.included?.companies?.[0]?.name;
  const gone = await sdk.getContact({ client, path: { id: "0".repeat(24) } });
  const refused: Refused = gone.error!;
  const told = (event: EventDealUpdated): string => event.data.title;
  return [contact.name, String(first), refused.code, typeof told];
}

async function main(): Promise<void> {
  const seen = await typed();
  await everything();
  console.log(JSON.stringify({ calls: tour.steps.length, seen }));
}

void main();
