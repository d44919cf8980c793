// The changes of an endpoint, newest first, how its versions ran, and the way back to an earlier one.
import { html, useState } from "../dom.js";
import * as api from "../api.js";
import { count, duration, percent } from "../format.js";
import { may } from "../session.js";
import { refresh, useRead } from "../store.js";
import { differences, useRan } from "../versions.js";
import { Button } from "./button.js";
import { Card, Empty, Failed, Loading } from "./card.js";
import { Dialog } from "./dialog.js";
import { SureButton } from "./sure_button.js";
import { Age } from "./time.js";
import { attempt } from "./toast.js";

/** @typedef {import("../versions.js").Entry} Entry */

const READ_MS = 10000;
const HASH_CHARS = 12;

/** @param {{endpoint: Endpoint}} props */
export function Versions({ endpoint }) {
  const path = `/v1/endpoints/${encodeURIComponent(endpoint.id)}/versions`;
  const { data, error } = useRead(path, READ_MS);
  const note = data && `version ${endpoint.version} is the present one`;
  return html`<${Card} title="Versions" note=${note} flush>
    ${error && !data ? html`<${Failed} error=${error} onRetry=${() => refresh(path)} />` : !data ? html`<${Loading} rows=${4} />` : html`<${Entries} endpoint=${endpoint} entries=${data} path=${path} />`}
  <//>`;
}

/** @param {{endpoint: Endpoint, entries: Entry[], path: string}} props */
function Entries({ endpoint, entries, path }) {
  const [compared, setCompared] = useState(0);
  const ran = useRan(endpoint, entries);
  if (entries.length === 0) return html`<${Empty}><p>No change is kept.</p><//>`;
  const restore = (/** @type {number} */ version) => attempt(async () => {
    await api.json("POST", `${path}/${version}/restore`);
    refresh("/v1/endpoints");
  }, `Version ${version} is back, as a new version.`);
  // A version is listed once for each change of it; its newest entry is what a return brings back.
  const isNewest = (/** @type {Entry} */ entry, /** @type {number} */ at) => entries.findIndex(({ version }) => version === entry.version) === at;
  return html`<div class="table-box"><table class="table">
    <thead><tr><th scope="col" class="num">Version</th><th scope="col">When</th><th scope="col" class="opt2">Who</th><th scope="col">Changed</th><th scope="col" class="num opt2" title="Of the jobs that ended while it was the present version">Failed</th><th scope="col" class="num opt" title="Of the jobs that started while it was the present version">Delay p95</th><th scope="col" class="opt">Code</th><th scope="col"><span class="offscreen">Actions</span></th></tr></thead>
    <tbody>${entries.map((entry, at) => {
      const isShown = isNewest(entry, at);
      const isOther = isShown && entry.version !== endpoint.version;
      const figures = isShown ? ran.get(entry.version) : undefined;
      return html`<tr key=${`${entry.version} ${entry.at} ${at}`}>
        <th scope="row" class="num">${count(entry.version)}</th>
        <td><${Age} at=${entry.at} /></td>
        <td class="opt2">${entry.byName ?? entry.by}</td>
        <td><${Fields} fields=${entry.fields} isFirst=${at === entries.length - 1} /></td>
        <td class="num opt2">${isShown ? failedOf(figures) : ""}</td>
        <td class="num opt">${isShown ? duration(figures?.delayP95Ms) : ""}</td>
        <td class="mono dim opt">${entry.codeHash ? entry.codeHash.slice(0, HASH_CHARS) : "–"}</td>
        <td class="acts">${isOther && html`<${Button} kind="quiet small" label=${`Compare version ${entry.version}`} onClick=${() => setCompared(entry.version)}>Compare<//>`}${isOther && may.change(endpoint.id) && html`<${SureButton} kind="quiet small" onClick=${() => restore(entry.version)}>Restore<//>`}</td>
      </tr>`;
    })}</tbody>
  </table></div>
  ${compared > 0 && html`<${Compare} entries=${entries} ran=${ran} first=${compared} second=${endpoint.version} onClose=${() => setCompared(0)} />`}`;
}

/** @param {import("../versions.js").Ran | undefined} figures */
const failedOf = (figures) => (figures?.failedRatio === null || figures === undefined ? html`<span class="dim">–</span>` : html`<span class=${figures.failedRatio > 0 ? "tone-failed" : ""}>${percent(figures.failedRatio)} %</span>`);

/**
 * Two versions beside each other: the fields that differ, and how their jobs ran.
 * @param {{entries: Entry[], ran: Map<number, import("../versions.js").Ran>, first: number, second: number, onClose: () => void}} props
 */
function Compare({ entries, ran, first, second, onClose }) {
  const [[left, right], setSides] = useState([first, second]);
  const versions = [...new Set(entries.map(({ version }) => version))];
  const [older, newer] = [Math.min(left, right), Math.max(left, right)];
  const changes = differences(entries, older, newer);
  const choose = (/** @type {string} */ label, /** @type {number} */ value, /** @type {(version: number) => void} */ onSet) => html`<div class="field"><label for=${`compare-${label}`}>${label}</label><select id=${`compare-${label}`} value=${value} onChange=${(/** @type {any} */ event) => onSet(Number(event.target.value))}>${versions.map((version) => html`<option key=${version} value=${version}>Version ${version}</option>`)}</select></div>`;
  const [was, is] = [ran.get(older), ran.get(newer)];
  const figures = /** @type {[string, any, any][]} */ ([
    ["Jobs that ended", count(was?.ended), count(is?.ended)],
    ["Failed of them", failedOf(was), failedOf(is)],
    ["Delay p95", duration(was?.delayP95Ms), duration(is?.delayP95Ms)],
    ["Run time p95", duration(was?.runP95Ms), duration(is?.runP95Ms)],
  ]);
  return html`<${Dialog} title="Compare two versions" wide onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>Close<//>`}>
    <div class="play-policy">${choose("One", left, (version) => setSides([version, right]))}${choose("Other", right, (version) => setSides([left, version]))}</div>
    <div class="table-box" tabindex="0"><table class="table">
      <thead><tr><th scope="col">While it was the present one</th><th scope="col">Version ${older}</th><th scope="col">Version ${newer}</th></tr></thead>
      <tbody>${figures.map(([name, before, after]) => html`<tr key=${name}><th scope="row">${name}</th><td>${before}</td><td>${after}</td></tr>`)}</tbody>
      ${changes.length > 0 && html`<thead><tr><th scope="col">Field</th><th scope="col">Version ${older}</th><th scope="col">Version ${newer}</th></tr></thead>
      <tbody>${changes.map(({ name, from, to }) => html`<tr key=${name}><th scope="row" class="mono">${name}</th>${to === "changed" ? html`<td class="dim" colspan="2">changed; the values are not shown</td>` : html`<td class="mono wraps">${short(from)}</td><td class="mono wraps">${short(to)}</td>`}</tr>`)}</tbody>`}
    </table></div>
    ${changes.length === 0 && html`<p>${older === newer ? "This is the same version twice." : "No field differs."}</p>`}
  <//>`;
}

/** @param {any} value */
const short = (value) => (value === null ? "none" : typeof value === "string" ? value : JSON.stringify(value));

/** @param {{fields: any[], isFirst: boolean}} props */
function Fields({ fields, isFirst }) {
  if (fields.length === 0) return html`<span class="dim">${isFirst ? "created" : "nothing"}</span>`;
  return html`<ul class="plain">${fields.map(({ name, from, to }) => html`<li key=${name}><span class="mono">${name}</span> ${to === "changed" ? "changed" : html`${short(from)} → ${short(to)}`}</li>`)}</ul>`;
}
