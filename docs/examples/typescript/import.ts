// Import a list of contacts from a CSV file: first a dry run, then the import.
//
//   CARTEIRO_URL=… CARTEIRO_KEY=… npx tsx import.ts leads.csv Nome:name,E-mail:email
import { readFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { type ImportJob, importContacts, getImport } from "./client/index";
import { client } from "./client/client.gen";

// Send the file and wait for the end of the import.
async function run(path: string, columns: string | undefined, dryRun: boolean): Promise<ImportJob> {
  const sent = await importContacts({
    body: new Blob([readFileSync(path)]), query: { columns, dryRun }, throwOnError: true,
  });
  const id = sent.data.id!;
  for (;;) {
    const { data: job } = await getImport({ path: { id }, throwOnError: true });
    if (job.state !== "running") return job;
    await setTimeout(500);
  }
}

async function main(): Promise<void> {
  client.setConfig({ baseUrl: process.env.CARTEIRO_URL!, auth: process.env.CARTEIRO_KEY! });
  const [path, columns] = process.argv.slice(2) as [string, string | undefined];
  const tried = await run(path, columns, true);
  for (const fault of tried.faults ?? []) {
    console.log(`line ${fault.line}, ${fault.column}: ${fault.error}`);
  }
  const done = await run(path, columns, false);
  console.log(
    `${done.state}: ${done.created} created, ${done.updated} updated, ${done.faulty} left out`,
  );
}

void main();
