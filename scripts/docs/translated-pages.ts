/** Each Japanese page and the English page that it translates. */
export const translatedPages = [
  { english: "README.md", japanese: "README.ja.md" },
  ...[
    "architecture.md",
    "guides/first-ten-minutes.md",
    "guides/let-players-in.md",
    "guides/orders.md",
    "guides/points.md",
  ].map((path) => ({
    english: `docs/${path}`,
    japanese: `docs/ja/${path}`,
  })),
];
