const isDark = getComputedStyle(document.documentElement).colorScheme.trim() === "dark";
// A wide diagram is scrolled, not made too small to read.
const wide = { useMaxWidth: false };
mermaid.initialize({
  startOnLoad: false,
  securityLevel: "strict",
  theme: isDark ? "dark" : "neutral",
  flowchart: wide,
  sequence: wide,
  state: wide,
});
mermaid.run({ querySelector: "pre.mermaid" }).then(() => {
  document.documentElement.dataset.diagrams = "drawn";
});
