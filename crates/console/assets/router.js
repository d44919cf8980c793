// The address of a page holds all of its view: which page, of which endpoint, with which filters.
import { signal } from "./dom.js";

/** @typedef {{page: string, params: Record<string, string>, query: URLSearchParams, path: string}} Place */

/** The base path of the server, such as "/longshore", or empty. */
export const base = document.querySelector('meta[name="longshore-base"]')?.getAttribute("content") ?? "";

const ROOT = `${base}/console`;

/** The patterns of addresses, each with the module in pages/ that shows it. */
const ROUTES = [
  ["/", "overview"],
  ["/sign-in", "sign_in"],
  ["/endpoints", "endpoints"],
  ["/new-endpoint", "new_endpoint"],
  ["/endpoints/:endpoint", "endpoint"],
  ["/endpoints/:endpoint/requests", "requests"],
  ["/endpoints/:endpoint/requests/:job", "request"],
  ["/endpoints/:endpoint/workers", "workers"],
  ["/endpoints/:endpoint/workers/:worker", "worker"],
  ["/endpoints/:endpoint/logs", "logs"],
  ["/endpoints/:endpoint/metrics", "metrics"],
  ["/endpoints/:endpoint/playground", "playground"],
  ["/endpoints/:endpoint/settings", "settings"],
  ["/workers", "workers"],
  ["/requests", "requests"],
  ["/api-keys", "api_keys"],
  ["/audit", "audit"],
  ["/webhooks", "webhooks"],
  ["/endpoints/:endpoint/webhooks", "webhooks"],
  ["/machines", "machines"],
  ["/usage", "usage"],
  ["/health", "health"],
  ["/templates", "templates"],
  ["/volumes", "volumes"],
  ["/registries", "registries"],
];

/** Where one is. @type {import("./vendor/signals.js").Signal<Place>} */
export const place = signal(read());

/** The place of an address of the console, such as that of a link. @param {{pathname: string, search: string}} [address] @returns {Place} */
export function read({ pathname, search } = location) {
  const path = pathname.slice(ROOT.length).replace(/\/$/, "") || "/";
  const query = new URLSearchParams(search);
  for (const [pattern, page] of ROUTES) {
    const params = match(pattern, path);
    if (params) return { page, params, query, path };
  }
  return { page: "not_found", params: {}, query, path };
}

/**
 * The parameters of a path that has the form of a pattern, or null.
 * @param {string} pattern
 * @param {string} path
 */
function match(pattern, path) {
  const names = pattern.split("/");
  const parts = path.split("/");
  if (names.length !== parts.length) return null;
  /** @type {Record<string, string>} */
  const params = {};
  for (let at = 0; at < names.length; at += 1) {
    if (names[at].startsWith(":")) params[names[at].slice(1)] = decoded(parts[at]);
    else if (names[at] !== parts[at]) return null;
  }
  return params;
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * The address of a page, for links.
 * @param {string} path below the console, such as "/endpoints"
 */
export const href = (path) => ROOT + path;

/** @param {{slug?: string | null, id: string}} endpoint */
export const endpointPath = (endpoint) => `/endpoints/${encodeURIComponent(endpoint.slug || endpoint.id)}`;

/** Called with where one goes and what goes there; true keeps one here. The last one is asked. @type {((path: string, leave: () => void) => boolean)[]} */
const asking = [];

/** Lets a page, or a dialog over it, ask before the page is left, until what this answers is called. @param {typeof asking[0]} ask */
export function askFirst(ask) {
  asking.push(ask);
  return () => void (asking.includes(ask) && asking.splice(asking.indexOf(ask), 1));
}

/** Leaves the page in another way than by going to one, such as by signing out. @param {() => void} leave */
export const leaveBy = (leave) => void (asking.at(-1)?.("", leave) || leave());

/**
 * Goes to a page. Pages start at their top; going back returns to where one was.
 * @param {string} path below the console
 * @param {{replace?: boolean}} [options]
 */
export function go(path, { replace = false } = {}) {
  if (!replace && asking.at(-1)?.(path, () => go(path))) return;
  history[replace ? "replaceState" : "pushState"](null, "", href(path));
  const before = place.peek().path;
  place.value = read();
  if (place.peek().path !== before) window.scrollTo(0, 0);
}

/**
 * Changes the query of the address, in place if nothing else is said; null removes a name.
 * @param {Record<string, string | null>} changes
 * @param {{replace?: boolean}} [options]
 */
export function setQuery(changes, { replace = true } = {}) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  go(place.peek().path + (text ? `?${text}` : ""), { replace });
}

/** Follows links without loading the page again, and the browser's back and forward. */
export function start() {
  window.addEventListener("popstate", () => {
    const there = read();
    const { path, query } = place.peek();
    if (asking.at(-1)?.(there.path, () => history.back())) history.pushState(null, "", href(path) + (query.size > 0 ? `?${query}` : ""));
    else place.value = there;
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
    if (link.origin !== location.origin || !`${link.pathname}/`.startsWith(`${ROOT}/`)) return;
    if (link.hash && link.pathname === location.pathname) return;
    event.preventDefault();
    go(link.pathname.slice(ROOT.length) + link.search);
  });
}
