// Delivering failed webhook calls again, of one endpoint or of all, with the effect in numbers.
import { html, useState } from "../dom.js";
import * as api from "../api.js";
import { count } from "../format.js";
import { may, me } from "../session.js";
import { refresh, useRead } from "../store.js";
import { Failed, Loading } from "./card.js";
import { Menu } from "./menu.js";
import { SureDialog } from "./sure_dialog.js";
import { Moment } from "./time.js";
import { toast } from "./toast.js";
import { noteAgain } from "./webhook_call.js";

/** The server lists no more; of more calls, their number alone is known. */
const LISTED_MAX = 1000;
/** Which failed calls are delivered again: those that were tried in this time, in ms. */
const SINCE = /** @type {[string, number | null][]} */ ([["Of the last 15 min …", 900000], ["Of the last hour …", 3600000], ["Of the last 24 h …", 86400000], ["All …", null]]);

/** @param {number} number @param {string} noun */
const of = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** Whether the key may deliver calls of some endpoint again. */
export const mayRedeliver = () => (me.value?.may.jobs.length ?? 0) > 0;

/** @param {{path: string, name: string}} props `path` is that of the calls, `name` is whose they are */
export function RedeliverMenu({ path, name }) {
  const [since, setSince] = useState(/** @type {{at: string | null} | null} */ (null));
  const items = SINCE.map(([title, ms]) => ({ name: title, act: () => setSince({ at: ms === null ? null : new Date(Date.now() - ms).toISOString() }) }));
  return html`<${Menu} kind="small" icon="retry" label="Deliver failed ones again" items=${items} />
    ${since && html`<${Sure} path=${path} name=${name} since=${since.at} onClose=${() => setSince(null)} />`}`;
}

/** @param {{path: string, name: string, since: string | null, onClose: () => void}} props */
function Sure({ path, name, since, onClose }) {
  const query = since ? `&since=${since}` : "";
  const { data, error } = useRead(`${path}?state=FAILED&limit=${LISTED_MAX}${query}`, Infinity);
  const calls = /** @type {any[]} */ (data?.webhooks ?? []).filter(({ endpoint }) => !endpoint || may.jobs(endpoint));
  const send = async () => {
    const { redelivered, gone, unread } = await api.json("POST", `${path}/redeliver${since ? `?since=${since}` : ""}`);
    // Which ones are not called again is not said.
    if (!gone && !unread) noteAgain(calls, "PENDING");
    refresh(path);
    const notGone = gone > 0 ? `; ${count(gone)} cannot be, because their jobs are gone` : "";
    const notRead = unread > 0 ? ` Those of ${of(unread, "endpoint")} could not be read in time: try again.` : "";
    toast(`${of(redelivered, "call")} ${redelivered === 1 ? "is" : "are"} delivered again${notGone}.${notRead}`, unread > 0 ? "bad" : "good");
    onClose();
  };
  const isPart = Boolean(data?.cursor) || (data?.of ?? 0) > (data?.webhooks.length ?? 0);
  const number = `${isPart ? "at least " : ""}${of(calls.length, "failed call")}`;
  const title = data ? `Deliver ${number} of ${name} again?` : "Deliver failed calls again?";
  return html`<${SureDialog} title=${title} keep="Leave them" action="Deliver again" kind="primary" disabled=${calls.length === 0} why="No call has failed in this time." onAct=${send} onClose=${onClose}>
    ${error && !data ? html`<${Failed} error=${error} onRetry=${() => refresh(path)} />` : !data ? html`<${Loading} rows=${2} />` : html`<p>${effect(calls, isPart)}</p>`}
    ${since && html`<p class="dim">Tried since <${Moment} at=${since} />.</p>`}
  <//>`;
}

/** What is called how often, in a sentence. @param {any[]} calls @param {boolean} isPart whether there are more */
function effect(calls, isPart) {
  if (calls.length === 0) return "No call has failed in this time.";
  const number = (/** @type {string} */ member) => new Set(calls.map((call) => call[member])).size;
  const endpoints = calls[0].endpoint ? `, of ${of(number("endpoint"), "endpoint")}` : "";
  const them = isPart ? `The newest ${count(calls.length)} are` : calls.length === 1 ? "It is" : "They are";
  const each = calls.length === 1 ? "It gets all its attempts again. If its job is gone, it cannot be repeated." : "Each gets all its attempts again. A call whose job is gone cannot be repeated.";
  return `${them} to ${of(number("receiver"), "receiver")}${endpoints}. ${each}`;
}
