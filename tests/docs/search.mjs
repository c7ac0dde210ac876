// Searches a built site with the worker that its pages run: node search.mjs SITE WORD …
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

const [site, ...words] = process.argv.slice(2);
const folder = join(site, "assets/javascripts/workers");
const hears = [];
const worker = vm.createContext({
  console, setTimeout, performance,
  addEventListener: (_, listener) => hears.push(listener),
  importScripts: (...paths) => paths.forEach((path) => run(join(folder, path))),
  postMessage: (message) => answered(message),
});
worker.self = worker;
let answered;
const run = (path) => vm.runInContext(readFileSync(path, "utf8"), worker, { filename: path });
const ask = (message) =>
  new Promise((resolve) => {
    answered = resolve;
    hears.forEach((listener) => listener({ data: message }));
  });

run(join(folder, readdirSync(folder).find((name) => /^search\..*\.js$/.test(name))));
const index = JSON.parse(readFileSync(join(site, "search/search_index.json"), "utf8"));
await ask({ type: 0, data: { ...index, options: { suggest: false } } });
for (const word of words) {
  const { data } = await ask({ type: 2, data: word });
  const pages = data.items.map((group) => group[0].location.split("#")[0]);
  console.log(JSON.stringify({ word, pages: [...new Set(pages)] }));
}
