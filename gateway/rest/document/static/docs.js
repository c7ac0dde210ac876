// Shows this server's document only: no validator badge, no configuration by URL.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

// The document as it is served; the page gets one without what it would send in vain: examples of
// optional parameters (filters, keys that were used before), and ids that name no record.
let described;
function withoutOptions(spec) {
  const copy = structuredClone(spec);
  for (const item of Object.values(copy.paths))
    for (const entry of Object.values(item)) {
      for (const media of Object.values(entry.requestBody?.content ?? {})) media.example = withoutIds(media.example);
      for (const one of entry.parameters) {
        if (one.in === "path") delete one.example;
        if (one.required) continue;
        if (one.example !== undefined) one.description += ` Example: ${one.example}`;
        delete one.example;
        if (one.schema.default !== undefined) {
          const { default: usual, ...schema } = one.schema;
          one.schema = schema;
          one.description += `. Default: ${usual}`;
        }
      }
    }
  return copy;
}

const simpler = ({ React }) => ({
  wrapComponents: {
    // A link within the button that opens an operation; the address bar gets the link anyway.
    DeepLink: () => ({ text }) => React.createElement("span", null, text),
    // There is one server: this one.
    ServersContainer: () => () => null,
    responses: (Responses) => (props) => {
      const { path, method } = props;
      const entry = described.paths[path]?.[method];
      if (!entry) return React.createElement(Responses, props);
      const samples = samplesOf(method.toUpperCase(), path, entry).map(([language, text], i) =>
        React.createElement("details", { key: language, open: i === 0 },
          React.createElement("summary", null, language),
          React.createElement("pre", { tabIndex: 0 }, text)));
      return React.createElement(React.Fragment, null,
        React.createElement("div", { className: "samples" }, samples),
        React.createElement(Responses, props));
    },
  },
});

// Swagger UI leaves some controls without a name, and what scrolls without a place for the keyboard.
const NAMES = [
  ["textarea", "Request body"],
  [".examples-select-element", "Example"],
  [".close-modal", "Close"],
  ["[aria-label='Apply credentials']", "Authorize: apply credentials"],
  ["[aria-label='Remove authorization']", "Logout: remove authorization"],
];
function name() {
  for (const [controls, text] of NAMES)
    for (const control of document.querySelectorAll(controls)) control.ariaLabel = text;
  for (const text of document.querySelectorAll("pre.microlight:not([tabindex])")) text.tabIndex = 0;
}
let waits = false;
new MutationObserver(() => {
  if (waits) return;
  waits = true;
  requestAnimationFrame(() => { waits = false; name(); });
}).observe(document.getElementById("document"), { childList: true, subtree: true });

fetch("/api/openapi.json").then((response) => response.json()).then((spec) => {
  described = spec;
  const ui = SwaggerUIBundle({
    spec: withoutOptions(spec),
    dom_id: "#document",
    deepLinking: true,
    queryConfigEnabled: false,
    validatorUrl: null,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    persistAuthorization: false,
    tryItOutEnabled: true,
    syntaxHighlight: { theme: "monokai" },
    plugins: [simpler],
  });
  const open = (hash) => ui.getSystem().layoutActions.parseDeepLinkHash(hash);
  indexOf(spec, open);
  addEventListener("hashchange", () => open(location.hash));
});
