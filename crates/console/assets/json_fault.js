// Where a text stops being JSON, in the same words in every browser.

const SPACE = /[ \t\n\r]*/y;
const SCALAR = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\d.eE+-])|(?:true|false|null)(?!\w)/y;

/** What is wrong with the text of an input, as a sentence, or "". @param {string} text */
export function faultOf(text) {
  if (text.trim() === "") return "The input is empty. It must be a JSON object, such as {\"prompt\": \"a harbour\"}.";
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? "" : "The input must be a JSON object, such as {\"prompt\": \"a harbour\"}.";
  } catch {
    const { at, wanted } = firstFault(text);
    const before = text.slice(0, at).split("\n");
    return `This is not JSON: line ${before.length}, column ${before[before.length - 1].length + 1} must have ${wanted}.`;
  }
}

/** The first place that is no JSON, and what JSON has there. @param {string} text @returns {{at: number, wanted: string}} */
export function firstFault(text) {
  /** The brackets that are open. @type {string[]} */
  const open = [];
  let at = 0;
  /** What may come next. @type {"value" | "first" | "name" | "firstName" | "after"} */
  let state = "value";
  for (;;) {
    SPACE.lastIndex = at;
    SPACE.exec(text);
    at = SPACE.lastIndex;
    const character = text[at] ?? "";
    const inside = open[open.length - 1];
    if (state === "after") {
      if (!inside) return { at, wanted: "nothing more" };
      if (character === inside) open.pop();
      else if (character === ",") state = inside === "}" ? "name" : "value";
      else return { at, wanted: `a comma or ${inside}` };
      at += 1;
      continue;
    }
    if (character === inside && (state === "first" || state === "firstName")) {
      open.pop();
      at += 1;
      state = "after";
      continue;
    }
    const isName = state === "name" || state === "firstName";
    if (!isName && (character === "{" || character === "[")) {
      open.push(character === "{" ? "}" : "]");
      state = character === "{" ? "firstName" : "first";
      at += 1;
      continue;
    }
    SCALAR.lastIndex = at;
    const scalar = SCALAR.exec(text)?.[0];
    if (scalar === undefined || (isName && !scalar.startsWith('"'))) {
      return { at, wanted: character === '"' ? "a text that ends, without line breaks" : isName ? `a name between quotes${state === "firstName" ? " or }" : ""}` : "a value" };
    }
    at += scalar.length;
    state = "after";
    if (!isName) continue;
    SPACE.lastIndex = at;
    SPACE.exec(text);
    at = SPACE.lastIndex;
    if (text[at] !== ":") return { at, wanted: "a colon" };
    at += 1;
    state = "value";
  }
}
