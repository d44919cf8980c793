// The keys of the console: pages add theirs while they are shown. None fires while one types.
import { signal, useLayoutEffect } from "../dom.js";
import { load } from "../load.js";
import { go } from "../router.js";
import { switchTheme } from "../prefs.js";
import { may } from "../session.js";

/** @typedef {{key: string, does: string, act: () => void, isThere?: () => boolean}} Binding `key` is one key or two in a row, such as "g o"; without `isThere`, it is always there */

/** The bindings of what is shown, latest last. @type {Binding[][]} */
const layers = [];

/** Whether the list of keys is open. */
export const helpOpen = signal(false);
/** Whether the palette is open. */
export const paletteOpen = signal(false);

/** The module that goes along the rows of the page's tables, once it was needed. @type {any} */
let rows;

/** Goes to the next row of the page's tables, or to the one before. @param {1 | -1} by */
async function step(by) {
  rows ??= await load("./ui/rows.js");
  rows.step(by);
}

const hasRows = () => document.querySelector("main tbody :is(a, button)") !== null;

const AROUND = /** @type {Binding[]} */ ([
  { key: "g o", does: "Go to the overview", act: () => go("/") },
  { key: "g e", does: "Go to endpoints", act: () => go("/endpoints") },
  { key: "g r", does: "Go to requests", act: () => go("/requests") },
  { key: "g w", does: "Go to workers", act: () => go("/workers"), isThere: () => may.readsAny.value },
  { key: "g k", does: "Go to API keys", act: () => go("/api-keys"), isThere: () => may.everything.value },
  { key: "g a", does: "Go to the audit log", act: () => go("/audit"), isThere: () => may.everything.value },
  { key: "g h", does: "Go to health", act: () => go("/health"), isThere: () => may.everyRead.value },
  { key: "j", does: "The next row: Enter opens it", act: () => step(1), isThere: hasRows },
  { key: "k", does: "The row before", act: () => step(-1), isThere: hasRows },
  { key: "t", does: "Switch between light and dark", act: switchTheme },
  { key: "?", does: "Show the keys", act: () => (helpOpen.value = true) },
]);

/**
 * Adds keys while a component is shown.
 * @param {Binding[]} bindings
 */
export function useKeys(bindings) {
  // With the layout: a key works from the moment that its page is seen.
  useLayoutEffect(() => {
    layers.push(bindings);
    return () => void layers.splice(layers.indexOf(bindings), 1);
  });
}

let first = "";
let firstAt = 0;
let typedAhead = "";

/** Takes what was typed after the palette was asked for and before it was loaded. */
export function takeTypedAhead() {
  const typed = typedAhead;
  typedAhead = "";
  return typed;
}

/** @param {KeyboardEvent} event */
function press(event) {
  const target = event.target instanceof Element ? event.target : null;
  const isTyping = target?.closest("input, textarea, select, [contenteditable]");
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    // A dialog stays until it is closed: it can show what is shown once.
    if (!event.repeat && (paletteOpen.value || !document.querySelector("dialog[open]"))) paletteOpen.value = !paletteOpen.value;
    return;
  }
  const isAside = event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]");
  if (paletteOpen.value && !isAside && event.key.length === 1) {
    event.preventDefault();
    typedAhead += event.key;
  }
  // A key that is held was pressed once: it does not answer the question that it began.
  if (event.repeat && !/^[jk]$/.test(event.key)) {
    if (event.key === "Enter" && target?.closest("button")) event.preventDefault();
    return;
  }
  if (isTyping || isAside || paletteOpen.value || event.defaultPrevented) return;
  const pair = event.timeStamp - firstAt < 1000 ? `${first} ${event.key}` : "";
  const all = bound().reverse();
  const found = all.find((binding) => binding.key === pair) ?? all.find((binding) => binding.key === event.key);
  // Enter and the space bar belong to the button or link that has the focus.
  if (event.key === "Enter" && target?.closest("a, button")) return;
  first = event.key;
  firstAt = event.timeStamp;
  if (!found) return;
  event.preventDefault();
  found.act();
}

/** What is bound now, latest last. */
const bound = () => [...AROUND, ...layers.flat()].filter(({ isThere }) => isThere?.() ?? true);

/** Listens for keys while the frame is shown. */
export function useKeyboard() {
  // With the layout, as in `useKeys`.
  useLayoutEffect(() => {
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

/** The keys that work here: of two for the same, what is shown has its own. @returns {{key: string, does: string}[]} */
export const keysHere = () => [{ key: "Ctrl K", does: "Find anything" }, ...new Map(bound().map((binding) => [binding.key, binding])).values()];
