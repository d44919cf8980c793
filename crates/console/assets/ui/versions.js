// The changes of an endpoint, newest first, and the way back to an earlier version.
import { html } from "../dom.js";
import * as api from "../api.js";
import { count } from "../format.js";
import { may } from "../session.js";
import { refresh, useRead } from "../store.js";
import { SureButton } from "./button.js";
import { Card, Empty, Failed, Loading } from "./card.js";
import { Age } from "./time.js";
import { attempt } from "./toast.js";

const READ_MS = 10000;
const HASH_CHARS = 12;

/** @param {{endpoint: any}} props */
export function Versions({ endpoint }) {
  const path = `/v1/endpoints/${encodeURIComponent(endpoint.id)}/versions`;
  const { data, error } = useRead(path, READ_MS);
  const note = data && `version ${endpoint.version} is the present one`;
  return html`<${Card} title="Versions" note=${note} flush>
    ${error && !data ? html`<${Failed} error=${error} onRetry=${() => refresh(path)} />` : !data ? html`<${Loading} rows=${4} />` : html`<${Entries} endpoint=${endpoint} entries=${data} path=${path} />`}
  <//>`;
}

/** @param {{endpoint: any, entries: any[], path: string}} props */
function Entries({ endpoint, entries, path }) {
  if (entries.length === 0) return html`<${Empty}><p>No change is kept.</p><//>`;
  const restore = (/** @type {number} */ version) => attempt(async () => {
    await api.json("POST", `${path}/${version}/restore`);
    refresh("/v1/endpoints");
  }, `Version ${version} is back, as a new version.`);
  // A version is listed once for each change of it; its newest entry is what a return brings back.
  const isNewest = (/** @type {any} */ entry, /** @type {number} */ at) => entries.findIndex(({ version }) => version === entry.version) === at;
  return html`<div class="table-box"><table class="table">
    <thead><tr><th scope="col" class="num">Version</th><th scope="col">When</th><th scope="col" class="opt2">Who</th><th scope="col">Changed</th><th scope="col" class="opt">Code</th><th scope="col"><span class="offscreen">Actions</span></th></tr></thead>
    <tbody>${entries.map((entry, at) => html`<tr key=${`${entry.version} ${entry.at} ${at}`}>
      <th scope="row" class="num">${count(entry.version)}</th>
      <td><${Age} at=${entry.at} /></td>
      <td class="opt2">${entry.byName ?? entry.by}</td>
      <td><${Fields} fields=${entry.fields} isFirst=${at === entries.length - 1} /></td>
      <td class="mono dim opt">${entry.codeHash ? entry.codeHash.slice(0, HASH_CHARS) : "–"}</td>
      <td class="acts">${may.change(endpoint.id) && entry.version !== endpoint.version && isNewest(entry, at) && html`<${SureButton} kind="quiet small" onClick=${() => restore(entry.version)}>Restore<//>`}</td>
    </tr>`)}</tbody>
  </table></div>`;
}

/** @param {any} value */
const short = (value) => (value === null ? "none" : typeof value === "string" ? value : JSON.stringify(value));

/** @param {{fields: any[], isFirst: boolean}} props */
function Fields({ fields, isFirst }) {
  if (fields.length === 0) return html`<span class="dim">${isFirst ? "created" : "nothing"}</span>`;
  return html`<ul class="plain">${fields.map(({ name, from, to }) => html`<li key=${name}><span class="mono">${name}</span> ${to === "changed" ? "changed" : html`${short(from)} → ${short(to)}`}</li>`)}</ul>`;
}
