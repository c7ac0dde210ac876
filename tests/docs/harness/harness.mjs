// Give each line of requests to the function of docs/how-to/verify-signatures.md, and print what it says.
import { readFileSync } from "node:fs";

import { refusal } from "./verify.mjs";

for (const line of readFileSync(0, "ascii").trim().split("\n")) {
  const fields = line.split(" ").map((field) => Buffer.from(field === "-" ? "" : field, "base64"));
  const [secret, id, sentAt, signatures, , now] = fields.map(String);
  console.log(refusal(secret, id, sentAt, signatures, fields[4], Number(now)) || "accepted");
}
