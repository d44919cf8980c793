// All endpoints: by name, by state, sorted by any figure.
import { html, useState } from "../dom.js";
import { href, place, setQuery } from "../router.js";
import { Icon } from "../icons.js";
import { may } from "../session.js";
import { count } from "../format.js";
import { useFleet } from "../fleet.js";
import { refresh } from "../store.js";
import { Card, Empty, Failed, Loading } from "../ui/card.js";
import { EndpointGroups } from "../ui/endpoint_groups.js";
import { EndpointTable } from "../ui/endpoint_table.js";
import { useKeys } from "../ui/keys.js";
import { Later } from "../load.js";
import { Menu } from "../ui/menu.js";
import { PauseMany } from "../ui/pause_many.js";
import { TableWindow } from "../ui/table_window.js";
import { endpointState } from "../ui/state.js";

/** What the list is grouped by. A key for some endpoints may not know the machines. @returns {[string, string][]} */
const groupings = () => [["", "Not grouped"], ["state", "By state"], ...(may.everyRead.value ? /** @type {[string, string][]} */ ([["machine", "By machine"]]) : [])];

export default function Endpoints() {
  const { rows, error } = useFleet();
  useKeys([{ key: "/", does: "Search", act: () => document.getElementById("search")?.focus() }]);
  return html`<div class="head"><h1>Endpoints</h1><p class="dim">Each is a queue of jobs with the workers that run them.</p>${may.everything.value && html`<div class="acts"><a class="button primary" href=${href("/new-endpoint")}><${Icon} name="plus" />New endpoint</a></div>`}</div>
    ${error && !rows ? html`<${Failed} error=${error} onRetry=${() => refresh("/v1/endpoints")} />` : !rows ? html`<${Card} title="All endpoints" flush><${Loading} rows=${8} /><//>` : rows.length === 0 ? html`<${Later} address="./ui/first_endpoint.js" />` : html`<${List} rows=${rows} />`}`;
}

/** @param {{rows: import("../fleet.js").Row[]}} props */
function List({ rows }) {
  const { query } = place.value;
  const text = (query.get("q") ?? "").toLowerCase();
  const state = query.get("state");
  const by = groupings().find(([name]) => name === query.get("group"))?.[0] ?? "";
  const body = (/** @type {any[]} */ rows) => (by ? html`<${EndpointGroups} key=${by} rows=${rows} by=${by} />` : html`<${TableWindow} rows=${rows} />`);
  const wordOf = (/** @type {import("../fleet.js").Row} */ row) => endpointState(row.endpoint, row.health)?.word ?? "";
  const named = rows.filter(({ endpoint }) => `${endpoint.name} ${endpoint.slug ?? ""} ${endpoint.id}`.toLowerCase().includes(text));
  const words = [...new Set(rows.map(wordOf))].filter(Boolean).sort();
  const shown = named.filter((row) => !state || wordOf(row) === state);
  const [isResume, ask] = useState(/** @type {boolean | null} */ (null));
  const changed = shown.filter(({ endpoint }) => may.change(endpoint.id));
  const of = (/** @type {boolean} */ isPaused) => changed.filter(({ endpoint }) => (endpoint.workersMax === 0) === isPaused);
  const item = (/** @type {string} */ verb, /** @type {boolean} */ isPaused) => ({ name: `${verb} ${count(of(isPaused).length)} of the list`, act: () => ask(isPaused), why: of(isPaused).length === 0 ? "No endpoint of the list is so." : "" });
  return html`<${Card} title="All endpoints" note=${shown.length === rows.length ? count(rows.length) : `${count(shown.length)} of ${count(rows.length)}`} flush>
    <div class="filters">
      <input id="search" type="search" aria-label="Search endpoints" placeholder="Name, slug or id" value=${query.get("q") ?? ""} onInput=${(/** @type {any} */ event) => setQuery({ q: event.target.value })} />
      <div class="chips" role="group" aria-label="State">
        <button type="button" class="chip" aria-pressed=${!state} onClick=${() => setQuery({ state: null })}>All <b>${count(named.length)}</b></button>
        ${words.map((word) => html`<button type="button" key=${word} class="chip" aria-pressed=${state === word} onClick=${() => setQuery({ state: state === word ? null : word })}>${word} <b>${count(named.filter((row) => wordOf(row) === word).length)}</b></button>`)}
      </div>
      <select aria-label="Groups" value=${by} onChange=${(/** @type {any} */ event) => setQuery({ group: event.target.value || null })}>${groupings().map(([name, title]) => html`<option key=${name} value=${name}>${title}</option>`)}</select>
      ${changed.length > 0 && html`<${Menu} label="More" kind="quiet" items=${[item("Pause", false), item("Resume", true)]} />`}
    </div>
    ${shown.length === 0 ? html`<${Empty}><p>No endpoint matches.</p><//>` : html`<${EndpointTable} rows=${shown} body=${body} />`}
    ${isResume !== null && html`<${PauseMany} rows=${of(isResume)} isResume=${isResume} onClose=${() => ask(null)} />`}
  <//>`;
}
