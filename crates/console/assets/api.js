// All requests of the console: at most four are in flight, each carries the session's token, and errors are sentences.
import { base } from "./router.js";

const IN_FLIGHT_MAX = 4;

/** What a failed request says. `message` is the server's sentence. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {{status?: number, code?: string, requestId?: string | null}} [more]
   */
  constructor(message, { status = 0, code = "", requestId = null } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
  }
}

/** What is shown of a failure: the sentence, and the number of the request. @param {any} error */
export const said = ({ message, requestId }) => (requestId ? `${message} Request ${requestId}` : message);

/**
 * @typedef {{body?: unknown, rawBody?: string, signal?: AbortSignal, headers?: Record<string, string>}} Options
 *   `rawBody` is JSON text that must arrive as it is
 */

let csrf = "";
let onSignedOut = () => {};
/** @type {(answer: any) => void} */
let onRenewed = () => {};

/** @param {string} token what the session's answer named `csrf` */
export function setCsrf(token) {
  csrf = token;
}

/** The token that requests of this session carry. */
export const token = () => csrf || "new";

/** @param {() => void} callback called when the server no longer knows the session */
export function whenSignedOut(callback) {
  onSignedOut = callback;
}

/** @param {(answer: any) => void} callback called with the session's answer when another tab has signed in anew */
export function whenRenewed(callback) {
  onRenewed = callback;
}

let inFlight = 0;
/** @type {(() => void)[]} */
const waiting = [];

/** Waits for one of the places of requests in flight; the answer gives it back. */
async function takePlace() {
  if (inFlight >= IN_FLIGHT_MAX) await new Promise((resolve) => waiting.push(() => resolve(undefined)));
  inFlight += 1;
  return () => {
    inFlight -= 1;
    waiting.shift()?.();
  };
}

/**
 * The answer that `start.js` has asked for, once: the session.
 * @param {string} method
 * @param {string} path
 * @returns {Promise<Response> | null}
 */
function asked(method, path) {
  if (method !== "GET" || path !== "/console/session") return null;
  const begun = /** @type {any} */ (window).longshore;
  const { session } = begun;
  begun.session = null;
  return session;
}

/**
 * Sends a request; the answer's body is not read yet.
 * @param {string} method
 * @param {string} path such as "/v1/endpoints"
 * @param {Options} [options]
 * @returns {Promise<Response>}
 */
async function send(method, path, { body, rawBody, signal, headers = {} } = {}) {
  /** @type {Record<string, string>} */
  const sent = { "X-Longshore-Console": token(), ...headers };
  const content = rawBody ?? (body === undefined ? undefined : JSON.stringify(body));
  if (content !== undefined) sent["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await (asked(method, path) ?? fetch(base + path, { method, headers: sent, signal, body: content, credentials: "same-origin", cache: "no-store" }));
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("The server does not answer.");
  }
  if (answer.ok) return answer;
  throw await failure(answer, path);
}

/**
 * @param {Response} answer
 * @param {string} path
 */
async function failure(answer, path) {
  const text = await answer.text();
  let fields = /** @type {{error?: unknown, code?: string}} */ ({});
  try {
    fields = JSON.parse(text);
  } catch {
    // A proxy between the browser and the server can answer with text.
  }
  if (answer.status === 401 && !path.startsWith("/console/session") && csrf) void checkSession();
  const said = messageOf(fields.error);
  const message = said ? sentence(said) : `The server answered ${answer.status}.`;
  return new ApiError(message, {
    status: answer.status,
    code: fields.code,
    requestId: answer.headers.get("x-request-id"),
  });
}

/** The text of an error: the routes of OpenAI's clients have it in an object. @param {any} error @returns {string} */
const messageOf = (error) => (typeof error === "string" ? error : typeof error?.message === "string" ? error.message : "");

/** Between two questions after the session, in ms: another tab that signs in has ended this one a moment before it has the new one. */
const ASK_AGAIN_MS = 500;

let isChecking = false;

/** A 401 can mean that the key may not do this one thing, that the session ended, or that another tab began one: the session itself knows. */
export async function checkSession() {
  if (isChecking) return;
  isChecking = true;
  const isThere = (await askSession()) || (await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS)).then(askSession));
  isChecking = false;
  if (!isThere) onSignedOut();
}

/** Whether the server knows the session of the browser, or does not answer. */
async function askSession() {
  try {
    const answer = await (await send("GET", "/console/session", { headers: { "X-Longshore-Console": "new" } })).json();
    if (answer.csrf !== csrf) onRenewed(answer);
    return true;
  } catch (error) {
    return !(error instanceof ApiError && error.status === 401);
  }
}

/** @param {string} text the server's error: lower case, without a full stop */
export function sentence(text) {
  const trimmed = text.trim();
  const begun = /^[a-z]+[\s,]/.test(trimmed) ? trimmed[0].toUpperCase() + trimmed.slice(1) : trimmed;
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

/**
 * The text of an answer.
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 */
export async function text(method, path, options) {
  const giveBack = await takePlace();
  try {
    return await (await send(method, path, options)).text();
  } finally {
    giveBack();
  }
}

/**
 * The text of an answer with its `ETag`, which a change names so that it overtakes no other.
 * @param {string} method
 * @param {string} path
 * @returns {Promise<{text: string, tag: string | null}>}
 */
export async function tagged(method, path) {
  const giveBack = await takePlace();
  try {
    const answer = await send(method, path);
    return { text: await answer.text(), tag: answer.headers.get("etag") };
  } finally {
    giveBack();
  }
}

/**
 * The JSON of an answer; null for an answer without a body.
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function json(method, path, options) {
  const body = await text(method, path, options);
  return body ? JSON.parse(body) : null;
}

/**
 * A response of events that stays open, beside the places of other requests.
 * @param {string} path
 * @param {{signal: AbortSignal, headers?: Record<string, string>, method?: string, body?: unknown}} options
 */
export const open = (path, { signal, headers, method = "GET", body }) =>
  send(method, path, { signal, body, headers: { Accept: "text/event-stream", ...headers } });
