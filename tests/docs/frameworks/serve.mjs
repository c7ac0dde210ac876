// Serves docs/examples/nextjs: hands each request to the route handler as Next.js does, as a Request.
import { createServer } from "node:http";

import { POST } from "./route.mjs";

createServer(async (incoming, outgoing) => {
  const chunks = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const { method, headers } = incoming;
  const request = new Request("http://127.0.0.1/", { method, headers, body: Buffer.concat(chunks) });
  const response = await POST(request);
  outgoing.writeHead(response.status).end(Buffer.from(await response.arrayBuffer()));
}).listen(Number(process.env.PORT), "127.0.0.1");
