// Generates a typed client from a schema and documents: node generate.mjs SCHEMA_URL FOLDER OUT
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { codegen } from "@graphql-codegen/core";
import * as operations from "@graphql-codegen/typescript-operations";
import * as sdk from "@graphql-codegen/typescript-generic-sdk";
import { parse } from "graphql";

const [url, folder, out] = process.argv.slice(2);
const response = await fetch(url);
if (!response.ok) throw new Error(`${url}: ${response.status}`);
const documents = readdirSync(folder)
  .filter((name) => name.endsWith(".graphql"))
  .map((name) => ({ location: name, document: parse(readFileSync(join(folder, name), "utf8")) }));
const code = await codegen({
  schema: parse(await response.text()),
  documents,
  filename: out,
  // No configuration of scalars: the schema has built-in ones only.
  config: { documentMode: "documentNode", enumsAsTypes: true, useTypeImports: true },
  plugins: [{ operations: {} }, { sdk: {} }],
  pluginMap: { operations, sdk },
});
writeFileSync(out, code);
console.log(JSON.stringify({ documents: documents.length, lines: code.split("\n").length }));
