// The words of a command line, as a shell splits them. Nothing is expanded.

/** What a backslash between double quotes takes its meaning from; before others it stays. */
const ESCAPED = ["$", "`", '"', "\\", "\n"];

/** The words; null if a quotation mark has no partner. @param {string} text @returns {string[] | null} */
export function parseWords(text) {
  /** @type {string[]} */
  const words = [];
  let word = "";
  let hasWord = false;
  let quote = "";
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (quote && character === quote) quote = "";
    else if (quote && !(quote === '"' && character === "\\" && ESCAPED.includes(text[at + 1]))) word += character;
    else if (character === "\\" && at + 1 < text.length) {
      at += 1;
      // The end of a line that goes on in the next one is no part of a word.
      if (text[at] === "\n") continue;
      word += text[at];
      hasWord = true;
    } else if (!quote && (character === "'" || character === '"')) {
      quote = character;
      hasWord = true;
    } else if (!quote && /\s/.test(character)) {
      if (hasWord) words.push(word);
      [word, hasWord] = ["", false];
    } else {
      word += character;
      hasWord = true;
    }
  }
  if (hasWord) words.push(word);
  return quote ? null : words;
}
