import { createServer } from "node:http";

import { refusal } from "./verify.mjs";

const seen = new Set(); // use a table with a unique column instead

createServer(async (request, response) => {
  const chunks = [];
  try {
    for await (const chunk of request) chunks.push(chunk);
  } catch {
    return; // the client has gone away
  }
  const body = Buffer.concat(chunks);
  const { "webhook-id": id, "webhook-timestamp": sentAt } = request.headers;
  const signatures = request.headers["webhook-signature"];
  const secret = process.env.WEBHOOK_SECRET;
  const reason = refusal(secret, id, sentAt, signatures, body, Date.now() / 1000);
  if (reason) return response.writeHead(401).end(reason);
  response.writeHead(204).end();
  if (!seen.has(id)) {
    seen.add(id);
    console.log(JSON.parse(body).event, id);
  }
}).listen(9000, "127.0.0.1");
