// What does not wait for the modules: the theme, the session of this browser, the frame for those who have one, and the events.
//
// The page has this text itself, and browsers run it before the first paint. The modules go on with what `window.longshore` has.
(() => {
  const root = document.documentElement;
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  // The code is of one use, and must not stay in the address or the history.
  if (code) history.replaceState(null, "", location.pathname + location.search);
  const theme = localStorage.getItem("longshore.theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;

  const base = document.querySelector('meta[name="longshore-base"]')?.getAttribute("content") ?? "";
  const folder = document.querySelector('meta[name="longshore-assets"]')?.getAttribute("content") ?? "";

  /** What the overview needs beside the modules that every page needs: most visits begin there. */
  const OVERVIEW = ["pages/overview", "ui/card", "ui/endpoint_table", "ui/state", "ui/history_charts", "ui/chart", "ui/plot"];

  /** @type {SharedWorker | null} */
  let worker = null;

  /** The worker that holds the stream of events of this browser; null in a browser without shared workers. */
  function eventsWorker() {
    if (worker || typeof SharedWorker === "undefined") return worker;
    const address = `${folder}/events_worker.js`;
    const policy = /** @type {any} */ (window).trustedTypes?.createPolicy("longshore-worker", { createScriptURL: () => address });
    worker = new SharedWorker(policy ? policy.createScriptURL("") : address, { type: "module", name: "longshore" });
    worker.onerror = () => (begun.hasNoWorker = true);
    const { port } = worker;
    window.addEventListener("pagehide", () => {
      begun.joined = "";
      port.postMessage({ leave: true });
    });
    return worker;
  }

  /** Shows the frame and begins to listen, if the browser has a session. @param {Response} answer */
  async function enter(answer) {
    if (!answer.ok) return;
    root.dataset.frame = "";
    const { csrf } = await answer.json();
    const joined = eventsWorker();
    // The modules may have been there first.
    if (!joined || begun.joined) return;
    begun.joined = csrf;
    joined.port.postMessage({ join: { base, token: csrf } });
  }

  /** Asks for the session. */
  async function ask() {
    const answer = await fetch(`${base}/console/session`, { headers: { "X-Longshore-Console": "new" }, credentials: "same-origin", cache: "no-store" });
    void enter(answer.clone()).catch(() => {});
    return answer;
  }

  /** Calls after the first frame, which requests would hold up; in a tab that is not shown, soon. @param {() => void} callback */
  function painted(callback) {
    const later = () => setTimeout(callback);
    if (document.hidden) later();
    else requestAnimationFrame(later);
  }

  /** Has a file loaded before anything names it. @param {Record<string, string>} properties */
  function ahead(properties) {
    document.head.append(Object.assign(document.createElement("link"), { fetchPriority: "low", ...properties }));
  }

  /** Has modules loaded before a module names them. @param {string[]} names */
  function preload(names) {
    for (const name of names) ahead({ rel: "modulepreload", href: `${folder}/${name}.js` });
  }

  // A code in the address opens another session.
  const session = code ? null : new Promise((resolve) => painted(() => resolve(ask())));
  // The modules show a failure.
  session?.catch(() => {});
  if (code) root.dataset.frame = "";
  const isOverview = location.pathname.slice(base.length).replace(/\/$/, "") === "/console";
  // The other pages are in the table of imports.
  painted(() => preload(isOverview ? OVERVIEW : ["imports"]));
  // Browsers paint nothing before the fonts that the page has them preload, and print a warning if a preloaded one is not used within 3 s.
  painted(() => void document.fonts.load('1em "JetBrains Mono"').catch(() => {}));

  /** `code`: the one in the address · `session`: the answer of `/console/session` · `joined`: the token with which the events have begun. @type {any} */
  const begun = { code, session, joined: "", hasNoWorker: false, eventsWorker };
  /** @type {any} */ (window).longshore = begun;
})();
