// The rows of the table of endpoints in groups that fold: by state, or by the machine that runs the workers.
import { html, useState } from "../dom.js";
import { count } from "../format.js";
import { Icon } from "../icons.js";
import { refresh, useRead } from "../store.js";
import { Failed } from "./card.js";
import { workersOf } from "./endpoint_table.js";
import { endpointState } from "./state.js";
import { TableWindow } from "./table_window.js";

/** @typedef {import("../fleet.js").Row} Row */

const MACHINES = "/v1/machines";
const MACHINES_MS = 15000;
/** Of more endpoints, the groups are folded at first. */
const UNFOLDED_MAX = 100;
/** What to look at comes first. */
const STATES = ["Workers crash", "Impossible", "Waiting for a GPU", "No worker", "Paused", "Starting", "Running", "Ready", "Asleep"];
const ELSEWHERE = "Elsewhere: workers that others start";
const NOWHERE = "No worker runs";

/** @param {{rows: any[], by: "state" | "machine"}} props `rows`: elements with a `row`, in the order of the table */
export function EndpointGroups({ rows, by }) {
  const machines = useRead(by === "machine" ? MACHINES : null, MACHINES_MS);
  /** The groups that were folded or unfolded by hand. */
  const [pressed, setPressed] = useState(/** @type {string[]} */ ([]));
  if (by === "machine" && !machines.data) return html`${machines.error && html`<tr><td colspan="99"><${Failed} error=${machines.error} onRetry=${() => refresh(MACHINES)} /></td></tr>`}${html`<${TableWindow} rows=${rows} />`}`;
  const groups = by === "state" ? byState(rows) : byMachine(rows, machines.data);
  const isFolded = (/** @type {string} */ name) => rows.length > UNFOLDED_MAX !== pressed.includes(name);
  const press = (/** @type {string} */ name) => setPressed(pressed.includes(name) ? pressed.filter((one) => one !== name) : [...pressed, name]);
  const shown = groups.flatMap(([name, members]) => [
    html`<${Head} key=${`group ${name}`} name=${name} rows=${members.map(({ props }) => props.row)} isFolded=${isFolded(name)} onPress=${() => press(name)} />`,
    ...(isFolded(name) ? [] : members.map((member) => html`<${Slot} key=${`${name} ${member.key}`}>${member}<//>`)),
  ]);
  return html`<${TableWindow} rows=${shown} />`;
}

/** @param {{children?: any}} props */
const Slot = ({ children }) => children;

/** @param {any[]} rows @returns {[string, any[]][]} */
function byState(rows) {
  const wordOf = (/** @type {any} */ { props: { row } }) => endpointState(row.endpoint, row.health)?.word ?? "Not read yet";
  const words = [...new Set(rows.map(wordOf))];
  const rank = (/** @type {string} */ word) => (STATES.indexOf(word) + STATES.length + 1) % (STATES.length + 1);
  return words.sort((a, b) => rank(a) - rank(b)).map((word) => [word, rows.filter((row) => wordOf(row) === word)]);
}

/** @param {any[]} rows @param {Machine[]} machines @returns {[string, any[]][]} an endpoint is in the group of each machine that runs workers of it */
function byMachine(rows, machines) {
  const groups = /** @type {[string, any[]][]} */ (machines.map(({ name, endpoints }) => [name, rows.filter(({ props }) => endpoints.includes(props.row.endpoint.id))]));
  const placed = new Set(groups.flatMap(([, members]) => members));
  const others = rows.filter((row) => !placed.has(row));
  const isElsewhere = (/** @type {any} */ { props: { row } }) => row.endpoint.provider === "external" && (workersOf(row.health) ?? 0) > 0;
  groups.push([ELSEWHERE, others.filter(isElsewhere)], [NOWHERE, others.filter((row) => !isElsewhere(row))]);
  return groups.filter(([, members]) => members.length > 0);
}

/** @param {{name: string, rows: Row[], isFolded: boolean, onPress: () => void}} props */
function Head({ name, rows, isFolded, onPress }) {
  const sum = (/** @type {(health: Health) => number} */ of) => count(rows.reduce((total, { health }) => total + (health ? of(health) : 0), 0));
  return html`<tr class="group"><th colspan="99" scope="rowgroup"><button type="button" class="sort" aria-expanded=${!isFolded} onClick=${onPress}><${Icon} name=${isFolded ? "chevron" : "down"} />${name} <b>${count(rows.length)}</b></button>
    <span class="dim">${sum(({ jobs }) => jobs.inQueue)} wait, ${sum(({ jobs }) => jobs.inProgress)} run</span></th></tr>`;
}
