// A change that another one overtook: what is stored now beside what was to be saved.
import { html, useEffect, useState } from "../dom.js";
import * as api from "../api.js";
import { Alert } from "./card.js";

/** @typedef {{name: string, title: string, now: string, then: string, isJson?: boolean}} Difference of one field */
/** @typedef {{now: any, then: Record<string, any>}} Overtaken the resource as it is, and the refused change */

/** @param {{what: string}} props */
export const OvertakenAlert = ({ what }) => html`<${Alert} tone="warn" title=${`This ${what} was changed meanwhile`} level=${3}><p>“Now” is what it is at present. Saving changes it to what you entered.</p><//>`;

/** @param {{rows: Difference[]}} props */
export const Differences = ({ rows }) => html`<div class="table-box" tabindex="0"><table class="table"><thead><tr><th scope="col">Field</th><th scope="col">Now</th><th scope="col">Then</th></tr></thead>
  <tbody>${rows.map(({ name, title, now, then, isJson }) => html`<tr key=${name}><th scope="row">${title} <span class="mono dim">${name}</span></th><td class=${isJson ? "tone-failed mono settings-value" : "tone-failed settings-value"}>${now}</td><td class=${isJson ? "tone-completed mono settings-value" : "tone-completed settings-value"}>${then}</td></tr>`)}</tbody></table></div>`;

/**
 * Changes a resource only if it is as it was read; after a refusal, the next try changes what was shown.
 * @param {string | null} path of the resource; null while it is being made
 * @returns {{change: (body: Record<string, any>) => Promise<void>, overtaken: Overtaken | null}}
 */
export function useTagged(path) {
  const [tag, setTag] = useState(/** @type {string | null} */ (null));
  const [overtaken, setOvertaken] = useState(/** @type {Overtaken | null} */ (null));
  useEffect(() => void (path && api.tagged("GET", path).then((answer) => setTag(answer.tag), () => {})), [path]);
  const change = async (/** @type {Record<string, any>} */ body) => {
    try {
      await api.json("PATCH", path ?? "", { body, headers: tag ? { "If-Match": tag } : {} });
    } catch (failed) {
      if (!path || /** @type {api.ApiError} */ (failed).status !== 412) throw failed;
      const { text, tag: present } = await api.tagged("GET", path);
      setTag(present);
      setOvertaken({ now: JSON.parse(text), then: body });
      throw new Error("Nothing is saved yet.");
    }
  };
  return { change, overtaken };
}

/**
 * The fields of a refused change that are stored otherwise.
 * @param {{what: string, overtaken: Overtaken | null, fields: {name: string, title: string, text?: (value: any) => string}[]}} props `text` is a value for people
 */
export function OvertakenChange({ what, overtaken, fields }) {
  if (!overtaken) return null;
  const { now, then } = overtaken;
  const rows = fields.filter(({ name }) => name in then).map(({ name, title, text = String }) => {
    const words = (/** @type {any} */ value) => (value === null || value === undefined ? "none" : text(value) || "none");
    return { name, title, now: words(now[name]), then: words(then[name]) };
  });
  const different = rows.filter((row) => row.now !== row.then);
  return html`<${OvertakenAlert} what=${what} />${different.length > 0 && html`<${Differences} rows=${different} />`}`;
}
