// The session of this browser: its key, what the key may do, and signing in and out.
import { computed, signal } from "./dom.js";
import * as api from "./api.js";
import { load } from "./load.js";
import { go, place } from "./router.js";

/**
 * @typedef {{
 *   key: {id: string, name: string, prefix?: string, scopes: {scope: string, endpointIds?: string[]}[], expiresAt?: string | null},
 *   session: {openedAt: string, expiresAt: string} | null,
 *   server: {version: string, publicUrl?: string | null, basePath?: string, currency?: string},
 *   endpoints: {id: string, slug: string | null}[],
 *   may: {manage: boolean, endpoints: "*" | string[], jobs: "*" | string[], read: "*" | string[], requests: "*" | string[]},
 * }} Me
 */

/** The answer of `/v1/me`; null while signed out. @type {import("./vendor/signals.js").Signal<Me | null>} */
export const me = signal(/** @type {Me | null} */ (null));

/** Why the page of signing in is shown, if the reader did not ask for it. */
export const notice = signal("");

const has = (/** @type {"*" | string[] | undefined} */ list, /** @type {string} */ id) =>
  list === "*" || (list ?? []).includes(id);

/** What the key may do. A button of what it may not do is not shown. */
export const may = {
  /** Everything, such as making keys. */
  everything: computed(() => me.value?.may.manage === true),
  /** Whether it reads the settings of any endpoint. */
  readsAny: computed(() => me.value !== null && me.value.may.read.length > 0),
  /** Whether it reads the jobs of any endpoint. */
  requestsAny: computed(() => me.value !== null && me.value.may.requests.length > 0),
  /** Whether it reads every endpoint, and so the server's own pages. */
  everyRead: computed(() => me.value?.may.read === "*"),
  /** Whether it reads the templates: they belong to those who read or change endpoints' settings. */
  readsTemplates: computed(() => me.value !== null && (me.value.may.read === "*" || me.value.may.endpoints.length > 0)),
  /** Changes the settings of an endpoint. @param {string} id */
  change: (id) => has(me.value?.may.endpoints, id),
  /** Submits, cancels and retries jobs of an endpoint. @param {string} id */
  jobs: (id) => has(me.value?.may.jobs, id),
  /** Reads jobs and their counts of an endpoint. @param {string} id */
  requests: (id) => has(me.value?.may.requests, id),
  /** Reads settings, workers and logs of an endpoint. @param {string} id */
  read: (id) => has(me.value?.may.read, id),
};

/** @param {{csrf: string, me: Me}} answer */
function enter(answer) {
  api.setCsrf(answer.csrf);
  me.value = answer.me;
  notice.value = "";
}

/**
 * Signs in with an API key or with the code of `longshore console`.
 * @param {{key: string} | {code: string}} proof
 */
export async function signIn(proof) {
  enter(await api.json("POST", "/console/session", { body: proof }));
  goOn();
}

/** Goes where the person wanted to go before signing in. */
function goOn() {
  const wanted = place.peek().query.get("to") ?? "/";
  go(wanted.startsWith("/") && !wanted.startsWith("/sign-in") ? wanted : "/", { replace: true });
}

/** Ends the session, here and on the server. */
export async function signOut() {
  await api.json("DELETE", "/console/session");
  leave("");
}

/** @param {string} reason a sentence for the page of signing in */
function leave(reason) {
  api.setCsrf("");
  me.value = null;
  notice.value = reason;
  const { path, query } = place.peek();
  const text = query.toString();
  const wanted = path === "/sign-in" ? query.get("to") : path === "/" ? null : path + (text ? `?${text}` : "");
  go(`/sign-in${wanted ? `?to=${encodeURIComponent(wanted)}` : ""}`, { replace: true });
}

/** Whether the server knows no such session, key or code. @param {any} error */
const isRefused = (error) => error.status === 401;

/** Whether another key has signed in since, with this page left as it was. */
let isOfAnother = false;

/** Continues the session of an earlier page, or trades the code in the address, or asks to sign in. */
export async function begin() {
  api.whenSignedOut(() => me.peek() && leave("Your session has ended: it was ended elsewhere, its key was revoked, or its time was over."));
  api.whenRenewed((answer) => {
    const key = me.peek()?.key.id;
    if (key === answer.me.key.id) enter(answer);
    // What is shown belongs to the key of before.
    else if (key && !isOfAnother) {
      isOfAnother = true;
      void load("./another_key.js").then((module) => module.default());
    }
  });
  const { code } = /** @type {any} */ (window).longshore;
  if (code) {
    try {
      return await signIn({ code });
    } catch (error) {
      return leave(isRefused(error) ? "This code was used, or is older than a minute. Run `longshore console` again." : api.said(error));
    }
  }
  try {
    enter(await api.json("GET", "/console/session"));
    if (place.peek().page === "sign_in") goOn();
  } catch (error) {
    leave(isRefused(error) ? "" : api.said(error));
  }
}

/** An amount of money, in the currency of the server's settings. @param {number} amount */
export function money(amount) {
  const currency = me.value?.server.currency;
  const text = amount === 0 ? "0" : amount < 0.01 ? "< 0.01" : amount.toFixed(2).replace(/\B(?=(\d{3})+\.)/g, "\u2009");
  return currency ? `${text} ${currency}` : text;
}
