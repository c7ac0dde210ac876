// Shows this server's document only: no validator badge, no configuration by URL.
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
});
