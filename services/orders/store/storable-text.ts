/** Bounds a text from outside. A broker's message must not grow the table. */
const textMax = 2_000;

/** Cuts the text and replaces the characters that PostgreSQL rejects, so that storing a reason never fails. */
export const toStorableText = (text: string, max = textMax): string =>
  text.slice(0, max).toWellFormed().replaceAll("\0", "\uFFFD");
