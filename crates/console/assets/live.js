// What the server tells this tab: events of the one stream that all tabs of the browser share.
import * as api from "./api.js";
import { signal } from "./dom.js";
import { EventStream } from "./event_stream.js";
import { parseExact } from "./json_exact.js";
import { base } from "./router.js";

/** A tab listens for this long after it was hidden. */
const HIDDEN_MS = 20000;

/** @typedef {{state: "connecting" | "live" | "lost", lastAt: number}} Connection */

/** Whether the stream of events is there, and when something came last. */
export const connection = signal(/** @type {Connection} */ ({ state: "connecting", lastAt: Date.now() }));

/** How long a page waits for the events before it reads what it shows. */
const BEGIN_MS = 250;

/** @type {Set<(name: string, data: any) => void>} */
const listeners = new Set();

/**
 * Calls `listener` with each event. `again` is one of them: everything that is shown has to be read again.
 * @param {(name: string, data: any) => void} listener
 * @returns {() => void} ends it
 */
export function whenTold(listener) {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** @param {string} name @param {any} data */
function tell(name, data) {
  for (const listener of listeners) listener(name, data);
}

/** @param {string} name @param {string} text the data as JSON */
function onEvent(name, text) {
  const data = parseExact(text);
  if (name === "gap" || (name === "hello" && !data.resumed)) tell("again", null);
  else tell(name, data);
}

/** @param {import("./event_stream.js").StreamState} state */
function onState(state) {
  const before = connection.peek();
  if (state === "signedOut") void api.checkSession();
  if (state === "off" || state === "signedOut") return;
  const lastAt = state === "live" ? Date.now() : before.lastAt;
  if (state !== before.state || lastAt - before.lastAt > 1000) connection.value = { state, lastAt };
}

/** @param {import("./event_stream.js").StreamState} state */
function onJoined(state) {
  // A stream that is not there yet tells its state when it begins.
  if (state === "off" || state === "signedOut") return;
  onState(state);
  // This tab got no `hello`: what it has read until now may be older than its first event.
  if (state === "live") tell("again", null);
}

/** @type {MessagePort | null} */
let port = null;
/** The stream of a tab in a browser without shared workers. @type {EventStream | null} */
let own = null;
let hiddenTimer = 0;
/** The tab is hidden, and no longer listens. */
let isPaused = false;

/** What `start.js` has begun. `joined`: the token with which the worker tells this tab, "" if it does not. @type {{joined: string, hasNoWorker: boolean, eventsWorker: () => SharedWorker | null}} */
const early = /** @type {any} */ (window).longshore;

/** The shared worker's port; null in a browser without shared workers. */
function openPort() {
  const worker = early.hasNoWorker ? null : early.eventsWorker();
  if (!worker) return null;
  worker.onerror = () => useOwn();
  worker.port.onmessage = ({ data }) => {
    if (data.joined) onJoined(data.joined);
    else if (data.state) onState(data.state);
    else if (data.name) onEvent(data.name, data.data);
    else if (data.turn !== undefined) onTurn(data.turn, data.isOn);
  };
  return worker.port;
}

/** Reads the stream in this tab. */
function useOwn() {
  if (own) return;
  port = null;
  own = new EventStream(onEvent, onState);
  own.start(base, api.token());
  for (const number of turns.keys()) onTurn(number, true);
}

/**
 * Waits until the events have begun, but not for long: what is read before they have has to be read again.
 * @returns {Promise<void>}
 */
export function begun() {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, BEGIN_MS);
    const end = whenTold((name) => {
      if (name !== "again") return;
      clearTimeout(timer);
      end();
      resolve();
    });
  });
}

/** Begins to listen, for the present session. */
function join() {
  // This tab was not told what came meanwhile.
  if (isPaused) tell("again", null);
  isPaused = false;
  port ??= own ? null : openPort();
  const token = api.token();
  if (!port) {
    if (own) own.start(base, token);
    else useOwn();
    return;
  }
  // `start.js` joins while the modules are loaded.
  if (early.joined !== token) port.postMessage({ join: { base, token } });
  early.joined = token;
}

/** Stops listening: for good, or while the tab is hidden. @param {"leave" | "pause"} how */
function stop(how) {
  isPaused = how === "pause";
  if (port) {
    early.joined = "";
    port.postMessage({ [how]: true });
  }
  own?.stop();
  connection.value = { ...connection.peek(), state: "connecting" };
}

/** Starts to listen while `isSignedIn`. @param {import("./vendor/signals.js").Signal<any>} session */
export function start(session) {
  window.addEventListener("pageshow", (event) => event.persisted && session.peek() && join());
  const onVisibility = () => {
    clearTimeout(hiddenTimer);
    if (!session.peek()) return;
    if (document.hidden) hiddenTimer = window.setTimeout(() => stop("pause"), HIDDEN_MS);
    else if (isPaused) join();
  };
  document.addEventListener("visibilitychange", onVisibility);
  session.subscribe((value) => {
    if (value) join();
    else stop("leave");
    onVisibility();
  });
}

/** What is called when a long response may begin, and when it has to end. @type {Map<number, (isOn: boolean) => void>} */
const turns = new Map();
let lastTurn = 0;

/** @param {number} number @param {boolean} isOn */
const onTurn = (number, isOn) => turns.get(number)?.(isOn);

/**
 * Asks for a turn of a long response, such as the stream of a job. The tabs that asked last have one.
 * @param {(isOn: boolean) => void} onChange called with true when the response may begin, and with false when it has to end
 * @param {{isLow?: boolean}} [options] `isLow`: all others come first
 * @returns {() => void} gives the turn back
 */
export function takeTurn(onChange, { isLow = false } = {}) {
  lastTurn += 1;
  const number = lastTurn;
  turns.set(number, onChange);
  if (port) port.postMessage({ want: number, isLow });
  else onChange(true);
  return () => {
    turns.delete(number);
    port?.postMessage({ give: number });
  };
}
