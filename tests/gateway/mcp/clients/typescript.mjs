// Calls tools by the official TypeScript SDK: URL or `stdio`, steps on standard input.
import { readFileSync } from "node:fs";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [where, mode] = process.argv.slice(2);
const steps = JSON.parse(readFileSync(0, "utf8"));
const env = process.env;
const client = new Client({ name: "typescript", version: "1" }, { versionNegotiation: { mode } });
const [command, ...args] = JSON.parse(env.COMMAND);
const transport = where === "stdio"
  ? new StdioClientTransport({ command, args, env })
  : new StreamableHTTPClientTransport(new URL(where), {
      requestInit: { headers: { Authorization: `Bearer ${env.KEY}` } },
    });
await client.connect(transport);
const found = { revision: client.getNegotiatedProtocolVersion() };
found.tools = (await client.listTools()).tools.map((tool) => tool.name);
const left = new AbortController();
const search = client.callTool({ name: "search", arguments: { query: "a" } }, { signal: left.signal });
left.abort();
await search.catch(() => {});
found.results = [];
for (const [name, values] of steps) {
  const result = await client.callTool({ name, arguments: values });
  found.results.push([result.isError ?? false, JSON.parse(result.content[0].text)]);
}
await client.callTool({ name: "serch", arguments: {} }).catch((error) => {
  found.unknown = error.message;
});
console.log(JSON.stringify(found));
await client.close();
