// Loads modules, the components in them and style sheets, and tries again while the server does not answer.
import { html, useEffect, useState } from "./dom.js";

const AGAIN_MS = 2000;

/** Which modules each module needs that is loaded later, by its path: made from the files when they are served. @type {Promise<Record<string, string[]>> | null} */
let imports = null;

/**
 * A module. While the server does not answer, it is loaded again every 2 s.
 * @param {string} address relative to this file
 * @param {() => void} [onFailure] called after each failure
 * @returns {Promise<any>}
 */
export async function load(address, onFailure) {
  void preload(address.slice(2));
  for (let failures = 0; ; failures += 1) {
    try {
      // Browsers may remember that an address could not be loaded.
      return await import(address + (failures > 0 ? `?again=${failures}` : ""));
    } catch {
      onFailure?.();
      await again();
    }
  }
}

/** The modules that were asked for by the table; browsers list the first loads of a page only. @type {Set<string>} */
const asked = new Set();

/** Reads the table of imports, for what is loaded from now on. */
export function readImports() {
  const address = "./imports.js";
  imports ??= import(address).then((module) => module.default, () => ((imports = null), {}));
}

/** Has the imports of a module asked for beside it: otherwise each is found when the module that imports it is there. @param {string} path */
async function preload(path) {
  const needed = ((await imports)?.[path] ?? []).map((one) => new URL(one, import.meta.url).href);
  // Into the browser's cache, from where the imports take them: browsers remember for ever that a preloaded module failed, and warn
  // of other preloads that are not used soon. What the page has is not asked for again.
  for (const address of needed.filter((one) => !asked.has(one) && performance.getEntriesByName(one).length === 0)) {
    asked.add(address);
    void fetch(address).then((answer) => answer.arrayBuffer()).catch(() => asked.delete(address));
  }
}

/** Adds a style sheet to the page. @param {string} address relative to this file */
export async function loadStyle(address) {
  while (!(await added(new URL(address, import.meta.url).href))) await again();
}

const again = () => new Promise((resolve) => setTimeout(resolve, AGAIN_MS));

/** Whether the browser could load the style sheet. @param {string} address @returns {Promise<boolean>} */
function added(address) {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = address;
  return new Promise((resolve) => {
    link.onload = () => resolve(true);
    link.onerror = () => (link.remove(), resolve(false));
    // After the first style sheet, whose rules it changes.
    document.body.append(link);
  });
}

/** The components that were loaded, by their addresses. @type {Map<string, any>} */
const loaded = new Map();

/** The time from when a page is shown to when `Ahead` loads a component, in ms. */
const AHEAD_MS = 500;

/** Loads a component, once. @param {string} address relative to this file */
async function component(address) {
  if (!loaded.has(address)) loaded.set(address, (await load(address)).default);
}

/** Loads a component before it is shown by `Later`, when the page has what it shows itself. @param {{address: string}} props */
export function Ahead({ address }) {
  useEffect(() => {
    const timer = setTimeout(() => component(address), AHEAD_MS);
    return () => clearTimeout(timer);
  }, [address]);
  return null;
}

/** A component whose module is loaded when it is shown first: what most visits do not open. @param {{address: string, props?: Record<string, any>}} props `address`: that of the module, relative to this file */
export function Later({ address, props }) {
  const [, setLoads] = useState(0);
  const View = loaded.get(address);
  useEffect(() => {
    let isShown = true;
    // Also if it has been loaded since this was rendered.
    if (!View) void component(address).then(() => isShown && setLoads((loads) => loads + 1));
    return () => void (isShown = false);
  }, [address]);
  return View ? html`<${View} ...${props} />` : null;
}
