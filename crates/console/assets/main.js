// Starts the console: reads the session, then shows the page at this address.
import { html, render, useEffect, useState } from "./dom.js";
import { place, start as startRouter } from "./router.js";
import { begin, me } from "./session.js";
import * as history from "./history.js";
import * as live from "./live.js";
import { load } from "./load.js";
import * as store from "./store.js";
import { Frame } from "./ui/frame.js";

/** The pages that were visited, by the names of their modules. @type {Map<string, any>} */
const loaded = new Map();

/** The page at the present address. Its module is loaded with its first visit. */
function Page() {
  const { page } = place.value;
  const [, setLoads] = useState(0);
  const [failed, setFailed] = useState("");
  useEffect(() => {
    if (loaded.has(page)) return;
    void load(`./pages/${page}.js`, () => setFailed(page)).then((module) => {
      loaded.set(page, module.default);
      setLoads((loads) => loads + 1);
    });
  }, [page]);
  const View = loaded.get(page);
  if (!View && failed === page) return html`<div class="failed-part" role="alert"><p>This page could not be loaded: the server does not answer. It is tried again every 2 s.</p></div>`;
  if (!View) return html`<div class="loading-page" aria-busy="true"></div>`;
  return html`<${View} key=${place.value.path} />`;
}

function App() {
  const isOutside = place.value.page === "sign_in" || !me.value;
  return isOutside ? html`<${Page} />` : html`<${Frame}><${Page} /><//>`;
}

startRouter();
store.start();
history.start();
await begin();
me.subscribe((value) => !value && store.forget());
const begun = live.begun();
live.start(me);
if (me.peek()) await begun;
const root = document.getElementById("app");
if (root) render(html`<${App} />`, root);
