// The servers that share the database: which one decides, and which would take over.
import { html } from "../dom.js";
import { count } from "../format.js";
import { Icon } from "../icons.js";
import { useRead } from "../store.js";
import { Card } from "./card.js";
import { Age } from "./time.js";

const READ_MS = 5000;

/** What the states of nodes mean. @type {Record<string, {word: string, icon: string, tone: string}>} */
const STATES = {
  OWNER: { word: "Decides about jobs", icon: "completed", tone: "completed" },
  STANDBY: { word: "Stands by", icon: "queued", tone: "queued" },
  AWAY: { word: "Away", icon: "warn", tone: "timedout" },
  GONE: { word: "Gone", icon: "cancelled", tone: "cancelled" },
};

/** Nothing for a server that shares its database with no other. */
export function Nodes() {
  const nodes = /** @type {any[]} */ (useRead("/v1/nodes", READ_MS).data ?? []);
  if (nodes.length === 0) return null;
  return html`<${Card} title="Nodes" note=${count(nodes.length)} flush><div class="table-box"><table class="table">
    <thead><tr><th scope="col">Node</th><th scope="col">State</th><th scope="col" class="opt2">Address</th><th scope="col" class="opt">Version</th><th scope="col">Since</th></tr></thead>
    <tbody>${nodes.map(({ id, name, state, address, version, joinedAt }) => {
      const { word, icon, tone } = STATES[state] ?? { word: state, icon: "warn", tone: "cancelled" };
      return html`<tr key=${id}><th scope="row">${name}</th><td><span class=${`state tone-${tone}`}><${Icon} name=${icon} />${word}</span></td><td class="mono dim opt2">${address}</td><td class="opt">${version}</td><td class="dim"><${Age} at=${joinedAt} /></td></tr>`;
    })}</tbody>
  </table></div><//>`;
}
