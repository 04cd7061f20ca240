Scalar.createApiReference("#app", {
  content: window.openApiDocument,
  withDefaultFonts: false,
  telemetry: false,
  proxyUrl: "",
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  hiddenClients: true,
  // The services are elsewhere, and the page may send requests to its own address only.
  hideTestRequestButton: true,
  showDeveloperTools: "never",
});
