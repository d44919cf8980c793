// API keys: what each may do, when it was used, making and revoking them, and the sessions of browsers.
import { html, useEffect, useState } from "../dom.js";
import * as api from "../api.js";
import { place, setQuery } from "../router.js";
import { count } from "../format.js";
import { useEndpointList } from "../fleet.js";
import { may, me } from "../session.js";
import { refresh, useRead } from "../store.js";
import { Icon } from "../icons.js";
import { Button } from "../ui/button.js";
import { Card, Empty, Failed, Loading } from "../ui/card.js";
import { ChangeKey } from "../ui/change_key.js";
import { useListSearch } from "../ui/list_search.js";
import { linesOf, MakeKey } from "../ui/make_key.js";
import { RevokeKey } from "../ui/revoke_key.js";
import { browser } from "../ui/session.js";
import { SureButton } from "../ui/sure_button.js";
import { TableWindow } from "../ui/table_window.js";
import { Age, Moment } from "../ui/time.js";
import { attempt, toast } from "../ui/toast.js";

const READ_MS = 10000;
/** Of the beginning of a key, by which one knows it. */
const PREFIX_CHARS = 11;

export default function ApiKeys() {
  const { data, error } = useRead(may.everything.value ? "/v1/apikeys" : null, READ_MS);
  const endpoints = useEndpointList(READ_MS).data ?? [];
  const search = useListSearch(data, "keys", "Name, beginning, id or endpoint", (/** @type {any} */ key) => `${key.name} ${key.prefix ?? ""} ${key.id} ${allWords(key, endpoints)}`);
  // The palette asks for it by the address, from this page, too.
  const isAsked = place.value.query.get("make") === "1";
  const [isMaking, setMaking] = useState(isAsked);
  useEffect(() => {
    if (isAsked) setMaking(true);
  }, [isAsked]);
  const close = () => {
    setMaking(false);
    setQuery({ make: null });
    refresh("/v1/apikeys");
  };
  if (!may.everything.value) return html`<div class="head"><h1>API keys</h1></div><${Empty}><p>The keys are shown to a key that manages all endpoints.</p><//>`;
  return html`<div class="head"><h1>API keys</h1><p class="dim">A key is shown once, when it is made. Longshore keeps only its hash.</p>
      <div class="acts">${may.everything.value && html`<${Button} kind="primary" icon="plus" onClick=${() => setMaking(true)}>Make a key<//>`}</div></div>
    <${Card} title="Keys" note=${search.note} flush>${error && !data ? html`<${Failed} error=${error} onRetry=${() => refresh("/v1/apikeys")} />` : !data ? html`<${Loading} rows=${4} />` : html`<${Keys} keys=${data} search=${search} endpoints=${endpoints} />`}<//>
    <${Sessions} />
    ${isMaking && html`<${MakeKey} endpoints=${endpoints} onClose=${close} />`}`;
}

/** @param {{keys: any[], search: ReturnType<typeof useListSearch>, endpoints: Endpoint[]}} props */
function Keys({ keys, search, endpoints }) {
  const [asked, ask] = useState(/** @type {{record: ApiKey, what: "change" | "revoke"} | null} */ (null));
  if (keys.length === 0) return html`<${Empty}><p>No key is here: you signed in with the operator's key. A program needs one of its own.</p><//>`;
  const full = keys.filter((key) => isFull(key) && !hasEnded(key));
  const close = () => ask(null);
  const done = (/** @type {string} */ text) => {
    close();
    refresh("/v1/apikeys");
    refresh("/v1/sessions");
    toast(text);
  };
  const row = (/** @type {any} */ key) => html`<${KeyRow} key=${key.id} record=${key} endpoints=${endpoints} isLast=${full.length === 1 && full[0].id === key.id} onAsk=${(/** @type {"change" | "revoke"} */ what) => ask({ record: key, what })} />`;
  return html`${search.field}${search.shown.length === 0 ? search.none : html`<div class="table-box"><table class="table">
      <thead><tr><th scope="col">Name</th><th scope="col" class="opt">Starts with</th><th scope="col" class="opt2">May</th><th scope="col" class="opt">On</th><th scope="col" class="num opt">Rate</th><th scope="col" class="opt2">Last used</th><th scope="col" class="opt">Made</th><th scope="col" class="opt2">Ends</th><th scope="col"><span class="offscreen">Actions</span></th></tr></thead>
      <tbody><${TableWindow} rows=${search.shown.map(row)} /></tbody>
    </table></div>`}
    ${asked?.what === "change" && html`<${ChangeKey} record=${asked.record} onClose=${close} onDone=${() => done("The key is changed.")} />`}
    ${asked?.what === "revoke" && html`<${RevokeKey} record=${asked.record} onClose=${close} onDone=${() => done(`${asked.record.name} is revoked.`)} />`}`;
}

/** @param {any} key */
const isFull = (key) => key.scopes.some((/** @type {any} */ { scope, endpointIds }) => scope === "manage" && (!endpointIds || endpointIds.includes("*")));

/** @param {any} key */
const hasEnded = (key) => key.disabled || (key.expiresAt && Date.parse(key.expiresAt) < Date.now());

/** The names of endpoints, in words. @param {string[]} ids @param {Endpoint[]} endpoints */
function onWords(ids, endpoints) {
  if (ids.includes("*")) return "all endpoints";
  return ids.map((id) => endpoints.find((endpoint) => endpoint.id === id || endpoint.slug === id)?.name ?? id).join(", ");
}

/** What a key may, and where, in one line. @param {any} key @param {Endpoint[]} endpoints */
const allWords = (key, endpoints) => linesOf(key).map(({ may: does, ids }) => `${does} on ${onWords(ids, endpoints)}`).join("; ");

/** @param {{record: ApiKey, endpoints: Endpoint[], isLast: boolean, onAsk: (what: "change" | "revoke") => void}} props */
function KeyRow({ record, endpoints, isLast, onAsk }) {
  const lines = linesOf(record);
  const isOwn = me.value?.key.id === record.id;
  return html`<tr class=${hasEnded(record) ? "dim" : ""}>
    <th scope="row"><span class="row-link">${record.name}</span>${isOwn && html` <span class="dim">yours</span>`}${record.disabled && html` <span class="tone-timedout">disabled</span>`}<span class="audit-who dim">${lines.length === 1 ? lines[0].may : allWords(record, endpoints)}</span></th>
    <td class="mono dim opt" title=${record.prefix}>${record.prefix ? `${record.prefix.slice(0, PREFIX_CHARS)}…` : "–"}</td>
    <td class="opt2">${lines.map(({ may: does }) => html`<div key=${does}>${does}</div>`)}</td>
    <td class="opt">${lines.map(({ ids }) => html`<div key=${ids.join()}>${onWords(ids, endpoints)}</div>`)}</td>
    <td class="num opt">${record.rateLimit ? `${count(record.rateLimit)} in 10 s` : "–"}</td>
    <td class="opt2"><${Age} at=${record.lastUsedAt} none="never" />${record.lastUsedFrom && html`<div class="mono dim">${record.lastUsedFrom}</div>`}</td>
    <td class="dim opt"><${Age} at=${record.createdAt} /></td>
    <td class="opt2">${record.expiresAt ? html`<${Moment} at=${record.expiresAt} />` : html`<span class="dim">never</span>`}</td>
    <td class="acts">${may.everything.value && html`<${KeyActions} record=${record} isLast=${isLast} onAsk=${onAsk} />`}</td>
  </tr>`;
}

/** @param {{record: ApiKey, isLast: boolean, onAsk: (what: "change" | "revoke") => void}} props */
function KeyActions({ record, isLast, onAsk }) {
  const { id, name, disabled } = record;
  const why = "This is the last key that may do everything: without it, nothing could manage this server.";
  const toggle = () => attempt(async () => {
    await api.json("PATCH", `/v1/apikeys/${encodeURIComponent(id)}`, { body: { disabled: !disabled } });
    refresh("/v1/apikeys");
  }, disabled ? `${name} works again.` : `${name} is disabled.`);
  return html`<${Button} kind="quiet small" onClick=${() => onAsk("change")}>Change<//>
    <${Button} kind="quiet small" disabled=${isLast} why=${why} onClick=${toggle}>${disabled ? "Enable" : "Disable"}<//>
    <${Button} kind="quiet small danger" disabled=${isLast} why=${why} onClick=${() => onAsk("revoke")}>Revoke<//>`;
}

/** The sessions of browsers that are signed in to the console. */
function Sessions() {
  const { data, error } = useRead("/v1/sessions", READ_MS);
  const end = (/** @type {string} */ id) => attempt(async () => {
    await api.json("DELETE", `/v1/sessions/${encodeURIComponent(id)}`);
    refresh("/v1/sessions");
  }, "The session has ended.");
  return html`<${Card} title="Sessions" note="signed in to the console" flush>${error && !data ? html`<${Failed} error=${error} onRetry=${() => refresh("/v1/sessions")} />` : !data ? html`<${Loading} rows=${2} />` : data.length === 0 ? html`<${Empty}><p>No session is open.</p><//>` : html`<div class="table-box"><table class="table">
    <thead><tr><th scope="col">Key</th><th scope="col" class="opt2">Address</th><th scope="col" class="opt">Browser</th><th scope="col">Opened</th><th scope="col" class="opt2">Last used</th><th scope="col"><span class="offscreen">Actions</span></th></tr></thead>
    <tbody>${data.map((/** @type {any} */ session) => html`<tr key=${session.id}>
      <th scope="row"><${Icon} name="user" /> ${session.key.name}${session.current && html` <span class="dim">this one</span>`}</th>
      <td class="mono dim opt2">${session.address ?? "–"}</td><td class="dim opt">${browser(session.agent)}</td>
      <td><${Age} at=${session.openedAt} /></td><td class="opt2"><${Age} at=${session.lastUsedAt} none="never" /></td>
      <td class="acts"><${SureButton} kind="quiet small danger" onClick=${() => end(session.id)}>End<//></td></tr>`)}</tbody></table></div>`}<//>`;
}
