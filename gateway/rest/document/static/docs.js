// Shows this server's document only: no validator badge, no configuration by URL.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

const simpler = ({ React }) => ({
  wrapComponents: {
    // A link within the button that opens an operation; the address bar gets the link anyway.
    DeepLink: () => ({ text }) => React.createElement("span", null, text),
    // There is one server: this one.
    ServersContainer: () => () => null,
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

SwaggerUIBundle({
  url: "/api/openapi.json",
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
