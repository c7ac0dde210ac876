// The index beside the page: each operation by tag, with a filter over all its words.
// A browser's search finds the words too (hidden=until-found), and opens the operation.

// Returns the words of what a schema names: its fields, values and descriptions, each component once.
function words(node, components, seen = new Set()) {
  if (node === null || typeof node !== "object") return [];
  const found = [];
  for (const [name, value] of Object.entries(node)) {
    if (name === "example" || name === "examples") continue;
    if (name === "$ref") {
      if (seen.has(value)) continue;
      seen.add(value);
      const [, , kind, part] = value.split("/");
      if (kind !== "headers") found.push(...words(components[kind][part], components, seen));
    } else if (name === "properties") {
      for (const [field, schema] of Object.entries(value)) found.push(field, ...words(schema, components, seen));
    } else if (typeof value === "string" && ["name", "description", "operationId"].includes(name)) found.push(value);
    else if (name === "enum") found.push(...value);
    else if (typeof value === "object") found.push(...words(value, components, seen));
  }
  return found;
}

function indexOf(spec, open) {
  const list = document.getElementById("index");
  const entries = [];
  const add = (method, path, entry, hash) => {
    const tag = entry.tags[0];
    let group = entries.find((one) => one.tag === tag)?.group;
    if (!group) {
      group = document.createElement("section");
      const heading = document.createElement("h2");
      heading.textContent = tag;
      group.append(heading);
      list.append(group);
    }
    const item = document.createElement("div");
    const link = document.createElement("a");
    link.href = hash;
    link.title = `${method} ${path}`;
    const verb = document.createElement("b");
    verb.textContent = method;
    link.append(verb, ` ${entry.summary}`);
    const found = document.createElement("div");
    found.hidden = "until-found";
    found.textContent = [path, ...new Set(words(entry, spec.components))].join(" ");
    found.addEventListener("beforematch", () => open(hash));
    item.append(link, found);
    group.append(item);
    link.addEventListener("click", () => open(hash));
    entries.push({ tag, group, item, text: `${tag} ${method} ${entry.summary} ${found.textContent}`.toLowerCase() });
  };
  for (const [path, item] of Object.entries(spec.paths))
    for (const [method, entry] of Object.entries(item))
      add(method.toUpperCase(), path, entry, `#/${encodeURIComponent(entry.tags[0])}/${entry.operationId}`);
  for (const [event, item] of Object.entries(spec.webhooks))
    add("EVENT", event, { ...item.post, summary: event }, `#/webhooks/${item.post.operationId}`);
  document.getElementById("filter").addEventListener("input", ({ target }) => {
    const asked = target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const entry of entries) entry.item.hidden = !asked.every((word) => entry.text.includes(word));
    for (const { group } of entries) group.hidden = !group.querySelector(":scope > div:not([hidden])");
  });
}
