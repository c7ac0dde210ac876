// Receive webhooks in Next.js: verify the signature, take each event once.
//
// Save it as app/carteiro/route.js, beside verify.mjs (docs/examples/receivers/node), and set
// WEBHOOK_SECRET. It needs the Node.js runtime, which is the usual one, not Edge.
import { refusal } from "./verify.mjs";

const seen = new Set(); // use a table with a unique column instead: instances share no memory

export async function POST(request) {
  // The bytes as they came: request.json() has lost them.
  const body = Buffer.from(await request.arrayBuffer());
  const [id, sentAt, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(
    (name) => request.headers.get(name) ?? "",
  );
  const secret = process.env.WEBHOOK_SECRET;
  const reason = refusal(secret, id, sentAt, signatures, body, Date.now() / 1000);
  if (reason) return new Response(reason, { status: 401 });
  if (!seen.has(id)) {
    seen.add(id);
    console.log(JSON.parse(body.toString()).event, id);
  }
  return new Response(null, { status: 204 });
}
