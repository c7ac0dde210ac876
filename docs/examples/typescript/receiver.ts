// Receive webhooks in Express: verify the signature, accept each event once.
//
//   WEBHOOK_SECRET=whsec_… PORT=9000 npx tsx receiver.ts
import { createHmac, timingSafeEqual } from "node:crypto";
import express from "express";

const secret = process.env.WEBHOOK_SECRET!;
const seen = new Set<string>(); // use a table with a unique column instead: a set is empty after a restart

// Return why a request is not from Carteiro, or an empty text.
function refusal(id: string, sentAt: string, signatures: string, body: Buffer, now: number): string {
  if (!id || !sentAt || !signatures) return "missing_header";
  if (!/^[0-9]{1,12}$/.test(sentAt)) return "malformed_timestamp";
  if (now - Number(sentAt) > 300) return "timestamp_too_old";
  if (Number(sentAt) - now > 300) return "timestamp_too_new";
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const hmac = createHmac("sha256", key).update(`${id}.${sentAt}.`).update(body);
  const right = Buffer.from(`v1,${hmac.digest("base64")}`);
  // During a rotation of the secret there are two signatures.
  const genuine = signatures.split(" ").some((one) => {
    const bytes = Buffer.from(one);
    return bytes.length === right.length && timingSafeEqual(bytes, right);
  });
  return genuine ? "" : "wrong_signature";
}

const app = express();
// The bytes as they came: express.json() has lost them.
app.post("/", express.raw({ type: () => true, limit: "2mb" }), (request, response) => {
  const body: Buffer = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  const [id, sentAt, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(
    (name) => request.get(name) ?? "",
  ) as [string, string, string];
  const reason = refusal(id, sentAt, signatures, body, Date.now() / 1000);
  if (reason) {
    response.status(401).send(reason);
    return;
  }
  if (!seen.has(id)) {
    seen.add(id);
    console.log((JSON.parse(body.toString()) as { event: string }).event, id);
  }
  response.status(204).end();
});
app.listen(Number(process.env.PORT ?? 9000), "127.0.0.1");
