// A change that another one overtook: what is stored now beside what was to be saved.
import { html, useEffect, useRef, useState } from "../dom.js";
import * as api from "../api.js";
import { Alert, Failed } from "./card.js";

/** @typedef {{name: string, title: string, now: string, then: string, isJson?: boolean}} Difference of one field */
/** @typedef {{now: any, then: Record<string, any>}} Overtaken the resource as it is, and the refused change */
/** @typedef {{change: (body: Record<string, any>) => Promise<void>, overtaken: Overtaken | null, unread: api.ApiError | null, readAgain: () => void}} Tagged `unread` is why nothing can be saved */

const UNREAD = "Nothing is saved: what is stored now could not be read, so a change by another one could be lost. Try again.";

/** @param {{what: string}} props */
export const OvertakenAlert = ({ what }) => html`<${Alert} tone="warn" title=${`This ${what} was changed meanwhile`} level=${3}><p>“Now” is what it is at present. Saving changes it to what you entered.</p><//>`;

/** @param {{rows: Difference[]}} props */
export const Differences = ({ rows }) => html`<div class="table-box" tabindex="0"><table class="table"><thead><tr><th scope="col">Field</th><th scope="col">Now</th><th scope="col">Then</th></tr></thead>
  <tbody>${rows.map(({ name, title, now, then, isJson }) => html`<tr key=${name}><th scope="row">${title} <span class="mono dim">${name}</span></th><td class=${isJson ? "tone-failed mono settings-value" : "tone-failed settings-value"}>${now}</td><td class=${isJson ? "tone-completed mono settings-value" : "tone-completed settings-value"}>${then}</td></tr>`)}</tbody></table></div>`;

/**
 * Changes a resource only if it is as the form shows it; after a refusal, the next try changes what was shown.
 * @param {string | null} path of the resource; null while it is being made
 * @param {Record<string, any>} [shown] the resource as the form was made of it
 * @returns {Tagged}
 */
export function useTagged(path, shown = {}) {
  const known = useRef(shown);
  const [unread, setUnread] = useState(/** @type {api.ApiError | null} */ (null));
  const [overtaken, setOvertaken] = useState(/** @type {Overtaken | null} */ (null));
  const stored = useRef(/** @type {Promise<{tag: string, now: any} | null>} */ (Promise.resolve(null)));
  const read = async (/** @type {string} */ from) => {
    try {
      const { text, tag } = await api.tagged("GET", from);
      if (tag === null) throw new api.ApiError("The answer has no ETag.");
      setUnread(null);
      return { tag, now: JSON.parse(text) };
    } catch (failed) {
      setUnread(failed instanceof api.ApiError ? failed : new api.ApiError(String(failed)));
      return null;
    }
  };
  const readAgain = () => void (path && (stored.current = read(path)));
  useEffect(readAgain, [path]);
  const refuse = (/** @type {any} */ now, /** @type {Record<string, any>} */ then) => {
    known.current = now;
    setOvertaken({ now, then });
    throw new Error("Nothing is saved yet.");
  };
  const change = async (/** @type {Record<string, any>} */ body) => {
    if (!path) return;
    const present = await stored.current;
    if (!present) throw new Error(UNREAD);
    // It may have been read later than what the form shows.
    if (Object.keys(body).some((name) => !isSame(known.current[name], present.now[name]))) refuse(present.now, body);
    try {
      await api.json("PATCH", path, { body, headers: { "If-Match": present.tag } });
    } catch (failed) {
      if (/** @type {api.ApiError} */ (failed).status !== 412) throw failed;
      stored.current = read(path);
      const next = await stored.current;
      if (!next) throw new Error(UNREAD);
      refuse(next.now, body);
    }
  };
  return { change, overtaken, unread, readAgain };
}

/** Whether a field has the same value in two answers; one that is not set can be missing. @param {any} one @param {any} other */
const isSame = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);

/**
 * The fields of a refused change that are stored otherwise, or why none can be saved.
 * @param {{what: string, tagged: Tagged, fields: {name: string, title: string, text?: (value: any) => string}[]}} props `text` is a value for people
 */
export function OvertakenChange({ what, tagged, fields }) {
  const { overtaken, unread, readAgain } = tagged;
  if (unread) return html`<${Failed} error=${unread} onRetry=${readAgain} />`;
  if (!overtaken) return null;
  const { now, then } = overtaken;
  const rows = fields.filter(({ name }) => name in then).map(({ name, title, text = String }) => {
    const words = (/** @type {any} */ value) => (value === null || value === undefined ? "none" : text(value) || "none");
    return { name, title, now: words(now[name]), then: words(then[name]) };
  });
  const different = rows.filter((row) => row.now !== row.then);
  return html`<${OvertakenAlert} what=${what} />${different.length > 0 && html`<${Differences} rows=${different} />`}`;
}
