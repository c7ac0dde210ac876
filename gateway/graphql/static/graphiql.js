// Calls this server only, with the cookies of this hostname.
const fetcher = async (body, options) => {
  const headers = { "Content-Type": "application/json", ...(options && options.headers) };
  const sent = { method: "POST", headers, credentials: "same-origin", body: JSON.stringify(body) };
  return (await fetch("/graphql", sent)).json();
};
const first = `# The storefront of this hostname.
query Store($hostname: String!) {
  store(hostname: $hostname) {
    id
    name
  }
}
`;
ReactDOM.createRoot(document.getElementById("graphiql")).render(
  React.createElement(GraphiQL, {
    fetcher,
    defaultQuery: first,
    variables: JSON.stringify({ hostname: location.hostname }, null, 2),
    isHeadersEditorEnabled: true,
  }),
);
