// Starts the console: reads the session, then shows the page at this address.
import { html, render, signal, useEffect, useState } from "./dom.js";
import { place, read, start as startRouter } from "./router.js";
import { begin, me } from "./session.js";
import * as history from "./history.js";
import * as live from "./live.js";
import { load, loadStyle, readImports } from "./load.js";
import * as store from "./store.js";
import { Frame } from "./ui/frame.js";

/** The pages that were visited, by the names of their modules; null for one that is loaded ahead. @type {Map<string, any>} */
const loaded = new Map();

/** The pages that need no more than the first style sheet and the modules that are named in the first page. */
const FIRST = ["overview", "sign_in", "not_found"];

/** The other style sheet, once a page has needed it. @type {Promise<void> | undefined} */
let style;

/** What a page reads before the events have begun would have to be read again. */
const isReady = signal(false);

/** @param {string} page @param {() => void} [onFailure] */
async function loadPage(page, onFailure) {
  if (!FIRST.includes(page)) {
    style ??= loadStyle("./pages.css");
    readImports();
  }
  const [module] = await Promise.all([load(`./pages/${page}.js`, onFailure), style]);
  loaded.set(page, module.default);
}

/** Loads the page of a link that is pointed at, or has the focus, before it is followed. @param {any} event */
function loadAhead({ target }) {
  const link = target.closest?.("a");
  const page = link && read(link).page;
  if (!page || loaded.has(page)) return;
  loaded.set(page, null);
  void loadPage(page);
}

/** The page at the present address. Its module is loaded with its first visit. */
function Page() {
  const { page } = place.value;
  const [, setLoads] = useState(0);
  const [failed, setFailed] = useState("");
  const View = loaded.get(page);
  useEffect(() => {
    if (View) return;
    void loadPage(page, () => setFailed(page)).then(() => setLoads((loads) => loads + 1));
  }, [page]);
  if (!View && failed === page) return html`<div class="failed-part" role="alert"><p>This page could not be loaded: the server does not answer. It is tried again every 2 s.</p></div>`;
  if (!View || !isReady.value) return html`<div class="loading-page" aria-busy="true"></div>`;
  return html`<${View} key=${place.value.path} />`;
}

function App() {
  const isOutside = place.value.page === "sign_in" || !me.value;
  return isOutside ? html`<${Page} />` : html`<${Frame}><${Page} /><//>`;
}

startRouter();
addEventListener("pointerover", loadAhead);
addEventListener("focusin", loadAhead);
// While the session is read: most who come have one.
void loadPage(place.peek().page);
store.start();
history.start();
await begin();
me.subscribe((value) => !value && store.forget());
const begun = live.begun();
live.start(me);
if (me.peek()) store.waitFor(begun);
const root = document.getElementById("app");
// In place of the frame that stood there while the modules were loaded.
root?.replaceChildren();
if (root) render(html`<${App} />`, root);
if (me.peek()) await begun;
isReady.value = true;
