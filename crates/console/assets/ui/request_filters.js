// What is above the list of requests: the search, the states with their counts, and what can be done with all that is listed.
import { html, useState } from "../dom.js";
import { setQuery } from "../router.js";
import { count } from "../format.js";
import { JOB_STATES } from "../icons.js";
import { useJobCounts } from "../job_counts.js";
import { COLUMNS, columns, switchColumn } from "../request_columns.js";
import { may } from "../session.js";
import { downloadItems } from "./download.js";
import { useKeys } from "./keys.js";
import { Later } from "../load.js";
import { Menu } from "./menu.js";
import { SearchLine } from "./search_line.js";

/** The number of rows whose workers are suggested. */
const WORKERS_OF = 200;

/** @typedef {import("../request_list.js").RequestList} RequestList */
/** @typedef {ReturnType<typeof import("./download.js").useDownload>} Download */

/**
 * @param {{endpoints: Endpoint[], list: RequestList, line: string, wrong: string, download: Download}} props
 *   `wrong`: what is wrong with the line, or ""; the list is of no endpoint then
 */
export function Filters({ endpoints, list, line, wrong, download }) {
  useKeys([{ key: "/", does: "Search", act: () => document.getElementById("search")?.focus() }]);
  const version = endpoints.length === 1 ? (endpoints[0].version ?? 0) : 0;
  const workers = [...new Set(list.rows.slice(0, WORKERS_OF).map(({ job }) => job.workerId).filter(Boolean))];
  return html`<div class="filters">
    <${SearchLine} line=${line} wrong=${wrong} workers=${workers} version=${version} onLine=${(/** @type {string} */ q) => setQuery({ q: q.trim() })} />
    <${States} endpoints=${endpoints} status=${list.status} />
    <${More} endpoints=${endpoints} list=${list} download=${download} />
    ${wrong && html`<p id="search-fault" class="field-error">${wrong}</p>`}
  </div>`;
}

/** The states, of which one chooses the listed one. @param {{endpoints: Endpoint[], status: string | null}} props */
function States({ endpoints, status }) {
  const counts = useJobCounts(endpoints);
  return html`<div class="chips" role="group" aria-label="State">
    <button type="button" class="chip" aria-pressed=${!status} onClick=${() => setQuery({ state: null })}>All</button>
    ${Object.entries(JOB_STATES).map(([state, { word }]) => html`<button type="button" key=${state} class="chip" aria-pressed=${status === state} onClick=${() => setQuery({ state: status === state ? null : state })}>${word}${counts && html` <b>${count(counts[state])}</b>`}</button>`)}
  </div>`;
}

/** @param {{endpoints: Endpoint[], list: RequestList, download: Download}} props */
function More({ endpoints, list, download }) {
  const [isPurging, setPurging] = useState(false);
  const counts = useJobCounts(endpoints);
  const one = endpoints.length === 1 ? endpoints[0] : null;
  const purge = one && may.jobs(one.id) ? [{ name: "Purge the queue", act: () => setPurging(true), why: counts?.IN_QUEUE ? "" : "No job waits." }] : [];
  const choose = { name: "Choose jobs", act: () => (list.selection.isChoosing.value = true), why: list.rows.length > 0 ? "" : "No job is here." };
  const columnItems = COLUMNS.map((name) => ({ name: `Column: ${name}`, isOn: columns.value.includes(name), act: () => switchColumn(name) }));
  return html`<${Menu} label="More" kind="quiet" items=${[choose, ...downloadItems(download), ...columnItems, ...purge]} />
    ${isPurging && html`<${Later} address="./ui/purge.js" props=${{ endpoint: one, waiting: counts?.IN_QUEUE ?? 0, running: counts?.IN_PROGRESS ?? 0, onClose: () => setPurging(false) }} />`}`;
}
