// The table of endpoints: on the overview, and as a page of its own.
import { html } from "../dom.js";
import { endpointPath, href, place, setQuery } from "../router.js";
import { count, duration, percent } from "../format.js";
import { oldestOf, useHourlyCosts } from "../fleet.js";
import { Icon } from "../icons.js";
import { money } from "../session.js";
import { withRange } from "../timeline.js";
import { Sparkline } from "./chart.js";
import { Later } from "../load.js";
import { EndpointStateTag, endpointState } from "./state.js";

/** @typedef {import("../fleet.js").Row & {cost?: number | null}} Row `cost`: of its workers, in an hour */

const OF = "Of the newest 50 jobs; after 50 endpoints, of the last 30 min";

/** @type {{name: string, title: string, isNumber: boolean, cls: string, of: (row: Row) => string | number | null, note?: string}[]} */
const COLUMNS = [
  { name: "name", title: "Endpoint", isNumber: false, cls: "", of: ({ endpoint }) => endpoint.name.toLowerCase() },
  { name: "state", title: "State", isNumber: false, cls: "", of: ({ endpoint, health }) => endpointState(endpoint, health)?.word ?? "" },
  { name: "waiting", title: "Waiting", isNumber: true, cls: "", of: ({ health }) => health?.jobs.inQueue ?? null },
  { name: "oldest", title: "Oldest", isNumber: true, cls: "opt", of: ({ endpoint, health, past }) => oldestOf(endpoint.id, health, past), note: "How long the oldest waiting job has waited" },
  { name: "running", title: "Running", isNumber: true, cls: "opt2", of: ({ health }) => health?.jobs.inProgress ?? null },
  { name: "delay", title: "Delay p95", isNumber: true, cls: "opt", of: ({ times }) => times?.delayP95 ?? null, note: OF },
  { name: "run", title: "Run p50", isNumber: true, cls: "opt", of: ({ times }) => times?.runP50 ?? null, note: OF },
  { name: "failed", title: "Failed", isNumber: true, cls: "opt", of: ({ times }) => (times?.ended ? times.failed / times.ended : null), note: OF },
  { name: "workers", title: "Workers", isNumber: true, cls: "opt2", of: ({ health }) => workersOf(health) },
  { name: "cost", title: "Cost an hour", isNumber: true, cls: "opt2", of: ({ cost }) => cost ?? null, note: "Of the workers that run now" },
];

/** The workers that run or start. @param {Health | undefined} health */
export const workersOf = (health) => (health ? health.workers.idle + health.workers.running + health.workers.initializing : null);

/** @param {Row[]} rows @param {string} by a column's name, after "-" if the largest is first */
function sorted(rows, by) {
  const isDown = by.startsWith("-");
  const column = COLUMNS.find(({ name }) => name === by.replace("-", "")) ?? COLUMNS[0];
  const compare = (/** @type {Row} */ a, /** @type {Row} */ b) => {
    const [left, right] = [column.of(a), column.of(b)];
    if (left === right) return a.endpoint.name.localeCompare(b.endpoint.name);
    if (left === null || right === null) return left === null ? 1 : -1;
    return (left < right ? -1 : 1) * (isDown ? -1 : 1);
  };
  return [...rows].sort(compare);
}

/** @param {{rows: import("../fleet.js").Row[], body?: (rows: any[]) => any}} props `body` shows the rows: all, if it is missing */
export function EndpointTable({ rows: known, body = (rows) => rows }) {
  const costs = useHourlyCosts();
  const rows = known.map((row) => ({ ...row, cost: costs && (costs.get(row.endpoint.id) ?? 0) }));
  // A server without prices has no column for them.
  const columns = COLUMNS.filter(({ name }) => costs || name !== "cost");
  const by = place.value.query.get("sort") ?? "name";
  const unread = rows.filter(({ error, health }) => error && !health);
  return html`${unread[0] && html`<${Later} address="./ui/unread_counts.js" props=${{ unread }} />`}<div class="table-box"><table class="table">
    <thead><tr>
      ${columns.map(({ name, title, isNumber, cls, note }) => {
        const isBy = by.replace("-", "") === name;
        const next = isBy && !by.startsWith("-") ? `-${name}` : name;
        return html`<th key=${name} scope="col" class=${`${isNumber ? "num" : ""} ${cls}`} aria-sort=${isBy ? (by.startsWith("-") ? "descending" : "ascending") : undefined} title=${note}>
          <button type="button" class="sort" onClick=${() => setQuery({ sort: next === "name" ? null : next })}>${title}${isBy && html`<${Icon} name=${by.startsWith("-") ? "down" : "up"} />`}</button></th>`;
      })}
      <th scope="col" class="opt">Completed in 30 min</th>
    </tr></thead>
    <tbody>${body(sorted(rows, by).map((row) => html`<${EndpointRow} key=${row.endpoint.id} row=${row} />`))}</tbody>
  </table></div>`;
}

/** @param {(number | null)[] | undefined} values */
const sumOf = (values) => (values ? values.reduce((/** @type {number} */ sum, value) => sum + (value ?? 0), 0) : null);

/** @param {{row: Row}} props */
function EndpointRow({ row }) {
  const { endpoint, health, times, past, cost } = row;
  const workers = workersOf(health);
  const failed = times?.ended ? times.failed / times.ended : null;
  return html`<tr>
    <th scope="row"><a class="row-link" href=${href(withRange(endpointPath(endpoint)))}>${endpoint.name}</a> <span class="mono dim slug">${endpoint.slug ?? endpoint.id}</span></th>
    <td><${EndpointStateTag} state=${endpointState(endpoint, health)} /></td>
    <td class="num">${count(health?.jobs.inQueue)}</td>
    <td class="num opt">${duration(oldestOf(endpoint.id, health, past))}</td>
    <td class="num opt2">${count(health?.jobs.inProgress)}</td>
    <td class="num opt">${duration(times?.delayP95)}</td>
    <td class="num opt">${duration(times?.runP50)}</td>
    <td class=${failed ? "num opt tone-failed" : "num opt"}>${failed === null ? "–" : `${percent(failed)} %`}</td>
    <td class="num opt2">${count(workers)} <span class="dim">/ ${endpoint.workersMax}</span></td>
    ${typeof cost === "number" && html`<td class="num opt2">${money(cost)}</td>`}
    <td class="opt"><${Sparkline} values=${past?.completed ?? []} label=${`Completed in the last 30 minutes, ${endpoint.name}: ${count(sumOf(past?.completed))}`} /></td>
  </tr>`;
}
