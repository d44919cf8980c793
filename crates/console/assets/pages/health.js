// How the server itself does: its state, its commits, its disk and memory, and what its operator changed.
import { html, useRef } from "../dom.js";
import { coarse, count, dateTime, duration, percent, rate, size } from "../format.js";
import { may, me } from "../session.js";
import { now, refresh, useRead } from "../store.js";
import { Alert, Card, Empty, Failed, Gauge, Gauges, LoadingPage } from "../ui/card.js";
import { CopyButton } from "../ui/copy.js";
import { Nodes } from "../ui/nodes.js";
import { Moment } from "../ui/time.js";

const PATH = "/v1/server";
const READ_MS = 5000;
const DAY_MS = 86400000;
const GAUGES = ["State", "Commit p50", "Commits", "Failed commits", "Disk free", "Memory", "Connections"];
/** A certificate that ends sooner is a problem. */
const CERTIFICATE_DAYS = 14;
/** What the states of the server mean. @type {Record<string, string>} */
const WORDS = { READY: "Ready", LOADING: "Loading", READ_ONLY: "Read only", DRAINING: "Draining" };

export default function Health() {
  const { data, error } = useRead(may.everyRead.value ? PATH : null, READ_MS);
  const head = html`<div class="head"><h1>Health</h1>${data && html`<p class="dim">Longshore ${data.version}, since <${Moment} at=${data.startedAt} /></p><div class="acts"><${CopyButton} text=${report(data)}>Copy a report<//></div>`}</div>`;
  if (!may.everyRead.value) return html`${head}<${Empty}><p>Only a key that reads all endpoints may see how the server does.</p><//>`;
  if (error && !data) return html`${head}<${Failed} error=${error} onRetry=${() => refresh(PATH)} />`;
  if (!data) return html`${head}<${LoadingPage} gauges=${GAUGES} cards=${["Memory by budget", "Server", "Changed settings"]} />`;
  return html`${head}
    ${data.reason && html`<${Alert} tone=${data.state === "READ_ONLY" ? "bad" : "warn"} title=${WORDS[data.state] ?? data.state}><p>${data.reason}</p><//>`}
    ${endsSoon(data) && html`<${Alert} tone="bad" title="The certificate ends"><p>It ends at <${Moment} at=${data.tlsEndsAt} />. Replace its files; the server reads them again by itself.</p><//>`}
    ${data.scrub?.damaged > 0 && html`<${Alert} tone="bad" title="Stored files are damaged"><p>${count(data.scrub.damaged)} damaged places were found in stored files. The server's log names them.</p><//>`}
    <${Figures} data=${data} /><${Nodes} /><${Budgets} data=${data} /><${Facts} data=${data} /><${Changed} settings=${data.changedSettings} />`;
}

/** @param {any} data */
const endsSoon = (data) => data.tlsEndsAt && Date.parse(data.tlsEndsAt) - Date.now() < CERTIFICATE_DAYS * DAY_MS;

/** In how long the disk is full at its present rate; null if that is not foreseen. @param {any} data */
const diskLasts = (data) => (data.diskFullAt ? Math.max(0, Date.parse(data.diskFullAt) - now.value) : null);

/** A time in µs, which may be above what is measured. @param {number | null} us @param {number} commits */
const commitTime = (us, commits) => (commits === 0 ? "–" : us === null ? "> 1 s" : us < 1000 ? `${us} µs` : duration(us / 1000));

/** @param {{data: any}} props */
function Figures({ data }) {
  const { commits, bytes, connections } = data;
  const lasts = diskLasts(data);
  return html`<${Gauges}>
    <${Gauge} name="State" value=${WORDS[data.state] ?? data.state} bad=${data.state === "READ_ONLY"} note=${`up ${duration(now.value - Date.parse(data.startedAt))}`} />
    <${Gauge} name="Commit p50" value=${commitTime(commits.p50Us, commits.count)} note=${`at most; p99 ${commitTime(commits.p99Us, commits.count)}`} />
    <${Gauge} name="Commits" value=${count(commits.count)} note=${commits.meanCommands === null ? "since the start" : `${commits.meanCommands} changes each`} />
    <${Gauge} name="Failed commits" value=${count(commits.failed)} bad=${commits.failed > 0} note="since the start" />
    <${Gauge} name="Disk free" value=${size(bytes.diskFree)} bad=${lasts !== null && lasts < DAY_MS} note=${lasts === null ? "where the data is" : `full in ${coarse(lasts)} at this rate`} />
    <${Gauge} name="Memory" value=${size(bytes.resident)} note="of the server's process" />
    <${Gauge} name="Connections" value=${count(connections.open)} note=${`${count(connections.eventReaders)} follow the events`} />
  <//>`;
}

/** What has a part of the memory for itself. @param {{data: any}} props */
function Budgets({ data: { bytes, memory } }) {
  const budgets = /** @type {{name: string, used: number | null, most: number | null}[]} */ ([
    { name: `${count(memory.jobs)} jobs, without their payloads`, used: memory.jobBytes, most: null },
    { name: "Bodies and payloads in flight", used: bytes.inFlight, most: bytes.inFlightMax },
    { name: "Payloads that were written last", used: memory.recent, most: memory.recentMax },
    { name: "History and failures", used: memory.history, most: memory.historyMax },
  ]);
  return html`<${Card} title="Memory by budget" flush><div class="table-box"><table class="table">
    <thead><tr><th scope="col">For</th><th scope="col" class="num">In use</th><th scope="col" class="num">At most</th><th scope="col" class="num opt2">Of it</th></tr></thead>
    <tbody>${budgets.map(({ name, used, most }) => html`<tr key=${name}><th scope="row" class="wraps">${name}</th><td class="num">${size(used)}</td><td class="num">${size(most)}</td><td class="num opt2">${most && used !== null ? `${percent(used / most)} %` : "–"}</td></tr>`)}</tbody>
  </table></div><//>`;
}

/** How fast a number grows, a second, since this page was opened. @param {number} total */
function useRate(total) {
  const first = useRef({ total, at: Date.now() });
  const seconds = (Date.now() - first.current.at) / 1000;
  // A lower number is of a server that was started again.
  if (total < first.current.total) first.current = { total, at: Date.now() };
  return seconds < 1 ? 0 : (total - first.current.total) / seconds;
}

/** @param {{data: any}} props */
function Facts({ data }) {
  const { connections, scrub, endpoints, loadingQueues } = data;
  const lost = useRate(connections.eventsDropped);
  const facts = /** @type {[string, any][]} */ ([
    ["Queues", loadingQueues > 0 ? `${count(endpoints - loadingQueues)} of ${count(endpoints)} loaded` : `all ${count(endpoints)} loaded`],
    ["Workers of this server", `${count(data.managedWorkers)}, ${count(data.busyWorkers)} with a job`],
    ["Events that readers missed", `${rate(lost)} a second, ${count(connections.eventsDropped)} since the start`],
    ["Open files", `${count(connections.openFiles)} of ${count(connections.openFilesMax)}`],
    ["Stored files read again", scrub ? `${size(scrub.bytes)}, ${count(scrub.passes)} times all, ${count(scrub.damaged)} damaged places` : "not by this server"],
    ["Traces", data.traces ? `to ${data.traces.collector}, ${count(data.traces.dropped)} spans dropped` : "not sent: `otlp_endpoint` is empty"],
    ["Secrets", data.secretsSealed ? "stored encrypted" : "stored unencrypted: set LONGSHORE_SECRETS_KEY or secrets_key_file"],
    ["Certificate ends", data.tlsEndsAt ? html`<${Moment} at=${data.tlsEndsAt} />` : "no TLS on this server"],
    ["Address", me.value?.server.publicUrl ?? "–"],
  ]);
  return html`<${Card} title="Server"><dl class="kv">${facts.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl><//>`;
}

/** @param {{settings: Record<string, any>}} props */
function Changed({ settings }) {
  const names = Object.keys(settings);
  if (names.length === 0) return html`<${Card} title="Changed settings"><p class="dim">Every setting has its default.</p><//>`;
  return html`<${Card} title="Changed settings" note=${count(names.length)} flush><div class="table-box" tabindex="0"><table class="table">
    <thead><tr><th scope="col">Setting</th><th scope="col">Value</th></tr></thead>
    <tbody>${names.map((name) => html`<tr key=${name}><th scope="row" class="mono">${name}</th><td class="mono wraps">${JSON.stringify(settings[name])}</td></tr>`)}</tbody>
  </table></div><//>`;
}

/** What helps others to help: one text without secrets. @param {any} data */
function report(data) {
  const { startedAt, changedSettings, ...figures } = data;
  return [`Longshore ${data.version}, up since ${startedAt}, seen ${dateTime(Date.now(), { utc: true })} UTC`, JSON.stringify(figures, null, 2), `changed settings: ${JSON.stringify(changedSettings, null, 2)}`, navigator.userAgent].join("\n");
}
