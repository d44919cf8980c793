// Making a key: what it may do, where, until when; then the key, shown once.
import { html, useState } from "../dom.js";
import * as api from "../api.js";
import { Alert } from "./card.js";
import { Button } from "./button.js";
import { CodeLine } from "./copy.js";
import { serverUrl } from "./copy_as.js";
import { Dialog } from "./dialog.js";
import { Field, FormDialog } from "./form_dialog.js";

/** What the scopes of keys allow, in words. */
const MAY_WORDS = /** @type {Record<string, string>} */ ({ manage: "Manage", read: "Look", jobs: "Run jobs" });

/** @typedef {{name: string, scopes: string[], text: string}} Choice */

/** @type {Choice[]} */
const CHOICES = [
  { name: "Run jobs", scopes: ["jobs"], text: "Submit, follow, cancel and retry jobs. For programs that use an endpoint." },
  { name: "Look", scopes: ["read"], text: "Read every page, and change nothing. For dashboards and colleagues." },
  { name: "Everything", scopes: ["manage", "jobs"], text: "Everything that you may, on the endpoints below. For deploying." },
];

/** @typedef {{scopes: {scope: string, endpointIds?: string[]}[]}} Scoped */

/**
 * What a key may, and on which endpoints: one line for the scopes of the same endpoints; `["*"]` is all.
 * @param {Scoped} key @returns {{may: string, ids: string[]}[]}
 */
export function linesOf(key) {
  const ids = /** @type {Map<string, Set<string>>} */ (new Map());
  for (const { scope, endpointIds = ["*"] } of key.scopes) ids.set(scope, new Set([...(ids.get(scope) ?? []), ...endpointIds]));
  const lines = /** @type {Map<string, {scopes: string[], ids: string[]}>} */ (new Map());
  for (const [scope, own] of ids) {
    const on = own.has("*") ? ["*"] : [...own].sort();
    const line = lines.get(on.join());
    if (line) line.scopes.push(scope);
    else lines.set(on.join(), { scopes: [scope], ids: on });
  }
  return [...lines.values()].map(({ scopes, ids: on }) => ({ may: mayOf(scopes, ids.has("jobs")), ids: on }));
}

/** What scopes of the same endpoints allow, in words. @param {string[]} scopes @param {boolean} hasJobs whether the key runs jobs anywhere */
function mayOf(scopes, hasJobs) {
  if (scopes.includes("manage") && scopes.includes("jobs")) return "Everything";
  // `manage` alone is of settings: it neither reads nor runs jobs.
  return scopes.map((scope) => (scope === "manage" && !hasJobs ? "Manage, without jobs" : (MAY_WORDS[scope] ?? scope))).join(", ");
}

const DAY_MS = 86400000;
/** When a key ends; 0 days: never. */
export const ENDS = [
  { days: 30, name: "in 30 days" },
  { days: 90, name: "in 90 days" },
  { days: 365, name: "in a year" },
  { days: 0, name: "never" },
];

/** The end of a key after this many days; null for never. @param {number} days */
export const endIn = (days) => (days > 0 ? new Date(Date.now() + days * DAY_MS).toISOString() : null);

/** A key that never ends is warned about. */
export const Endless = () => html`<p class="tone-queued">A key without an end works until it is revoked, also when it leaks.</p>`;

/** @param {{endpoints: Endpoint[], onClose: () => void}} props */
export function MakeKey({ endpoints, onClose }) {
  const [made, setMade] = useState(/** @type {any} */ (null));
  return made ? html`<${Made} made=${made} endpoints=${endpoints} onClose=${onClose} />` : html`<${Form} endpoints=${endpoints} onMade=${setMade} onClose=${onClose} />`;
}

/** @param {{endpoints: Endpoint[], onMade: (made: any) => void, onClose: () => void}} props */
function Form({ endpoints, onMade, onClose }) {
  const [name, setName] = useState("");
  const [choice, choose] = useState(CHOICES[0]);
  const [ids, setIds] = useState(/** @type {string[]} */ ([]));
  const [days, setDays] = useState(90);
  const [limit, setLimit] = useState("");
  const make = async () => {
    if (!name.trim()) throw new Error("Give it a name by which you will know it later.");
    const body = {
      name: name.trim(),
      scopes: choice.scopes.map((scope) => (ids.length > 0 ? { scope, endpointIds: ids } : { scope })),
      ...(days > 0 && { expiresAt: endIn(days) }),
      ...(limit && { rateLimit: Number(limit) }),
    };
    onMade(await api.json("POST", "/v1/apikeys", { body }));
  };
  const toggle = (/** @type {string} */ id) => setIds(ids.includes(id) ? ids.filter((other) => other !== id) : [...ids, id]);
  const isUnsaved = name !== "" || limit !== "" || ids.length > 0;
  return html`<${FormDialog} title="Make a key" action="Make the key" onSend=${make} onClose=${onClose} isUnsaved=${isUnsaved}>
    <${Field} id="key-name" label="Name" value=${name} onInput=${setName} autofocus placeholder="website" />
    <fieldset><legend>It may</legend>${CHOICES.map((one) => html`<label class="choice" key=${one.name}><input type="radio" name="scope" checked=${one === choice} onChange=${() => choose(one)} /><span><b>${one.name}</b>${one.text}</span></label>`)}</fieldset>
    ${endpoints.length > 0 && html`<fieldset><legend>On ${ids.length === 0 ? "all endpoints, also later ones" : `${ids.length} of ${endpoints.length} endpoints`}</legend><div class="checks">${endpoints.map((endpoint) => html`<label key=${endpoint.id}><input type="checkbox" checked=${ids.includes(endpoint.id)} onChange=${() => toggle(endpoint.id)} />${endpoint.name}</label>`)}</div></fieldset>`}
    <div class="field"><label for="key-ends">It ends</label><select id="key-ends" value=${days} onChange=${(/** @type {any} */ event) => setDays(Number(event.target.value))}>${ENDS.map((end) => html`<option key=${end.days} value=${end.days}>${end.name}</option>`)}</select>
      ${days === 0 && html`<${Endless} />`}</div>
    <${Field} id="key-rate" label="Most requests in 10 s" value=${limit} onInput=${setLimit} type="number" min="1" inputmode="numeric" placeholder="no limit of its own" />
  <//>`;
}

/** @param {{made: any, endpoints: Endpoint[], onClose: () => void}} props */
function Made({ made, endpoints, onClose }) {
  const named = made.scopes[0]?.endpointIds?.[0];
  const first = named && named !== "*" ? named : endpoints[0]?.id;
  const test = made.scopes[0]?.scope === "jobs" ? `curl ${serverUrl()}/v2/${first ?? "ENDPOINT"}/health -H 'Authorization: Bearer ${made.key}'` : `curl ${serverUrl()}/v1/endpoints -H 'Authorization: Bearer ${made.key}'`;
  return html`<${Dialog} title=${`The key “${made.name}”`} isStaying onClose=${onClose} actions=${html`<${Button} kind="primary" onClick=${onClose}>I have kept it<//>`}>
    <${Alert} tone="warn" title="This is the only time that it is shown"><p>Longshore keeps only its hash. Put it where your program reads it now.</p><//>
    <${CodeLine} text=${made.key} />
    <p>Try it:</p><${CodeLine} text=${test} />
  <//>`;
}
