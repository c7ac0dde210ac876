// Examples of a request in three languages, from the entry of its operation.
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const indented = (value) => JSON.stringify(value, null, 2);
const WORDS = { true: "True", false: "False", null: "None" };

function python(value, indent = "") {
  const inner = `${indent}    `;
  const lines = (open, all, close) => (all.length ? `${open}\n${all.map((one) => `${inner}${one},\n`).join("")}${indent}${close}` : open + close);
  if (Array.isArray(value)) return lines("[", value.map((one) => python(one, inner)), "]");
  if (value === null || typeof value !== "object") return WORDS[value] ?? JSON.stringify(value);
  const members = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${python(one, inner)}`);
  return lines("{", members, "}");
}

// A body with names in capitals for ids, which name no record of the reader: `storeId` is STORE_ID.
const withoutIds = (body) => JSON.parse(JSON.stringify(body, (name, value) => {
  if (name === "ids") return ["ID"];
  return name && /^[0-9a-f]{24}$/.test(value) ? name.replaceAll(/[A-Z]/g, "_$&").toUpperCase() : value;
}));

// Returns [language, text] of each example. A name in capitals stands for a value of the reader's.
function samplesOf(method, path, entry) {
  const url = location.origin + path.replaceAll(/\{(\w+)\}/g, (_, name) => name.toUpperCase());
  const headers = {};
  const [scheme] = entry.security.map((one) => Object.keys(one)[0]);
  if (scheme === "apiKeyAuth") headers["X-API-Key"] = "KEY";
  if (scheme === "bearerAuth") headers.Authorization = "Bearer TOKEN";
  const [kind, media] = Object.entries(entry.requestBody?.content ?? {})[0] ?? [];
  const body = kind && withoutIds(media.example);
  if (kind) headers["Content-Type"] = kind;
  const raw = typeof body === "string";
  const told = raw ? body : JSON.stringify(body);
  const curl = [`curl -X ${method} ${quoted(url)}`];
  for (const [name, value] of Object.entries(headers)) curl.push(`-H ${quoted(`${name}: ${value}`)}`);
  const file = body === "";
  if (kind) curl.push(`--data-binary ${file ? "@FILE" : quoted(told)}`);
  const given = [JSON.stringify(method), JSON.stringify(url), `headers=${python(headers, "    ")}`];
  if (kind) given.push(raw ? `data=${file ? 'open("FILE", "rb")' : JSON.stringify(body)}` : `json=${python(body, "    ")}`);
  const options = [`method: ${JSON.stringify(method)}`, `headers: ${indented(headers).replaceAll("\n", "\n  ")}`];
  if (kind) options.push(raw ? `body: ${file ? "FILE" : JSON.stringify(body)}` : `body: JSON.stringify(${indented(body).replaceAll("\n", "\n  ")})`);
  return [
    ["curl", curl.join(" \\\n  ")],
    ["Python", `import requests\n\nresponse = requests.request(\n    ${given.join(",\n    ")},\n)\nprint(response.status_code, response.text)`],
    ["JavaScript", `const response = await fetch(${JSON.stringify(url)}, {\n  ${options.join(",\n  ")},\n});\nconsole.log(response.status, await response.text());`],
  ];
}
