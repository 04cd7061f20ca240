const isDark = getComputedStyle(document.documentElement).colorScheme.trim() === "dark";
mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme: isDark ? "dark" : "neutral" });
mermaid.run({ querySelector: "pre.mermaid" }).then(() => {
  document.documentElement.dataset.diagrams = "drawn";
});
