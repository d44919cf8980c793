// How the server itself does: its state, its commits, its disk and memory, and what its operator changed.
import { html } from "../dom.js";
import { count, dateTime, duration, size } from "../format.js";
import { may, me } from "../session.js";
import { now, refresh, useRead } from "../store.js";
import { Alert, Card, Empty, Failed, Gauge, Gauges, Loading } from "../ui/card.js";
import { CopyButton } from "../ui/copy.js";
import { Moment } from "../ui/time.js";

const PATH = "/v1/server";
const READ_MS = 5000;
const DAY_MS = 86400000;
/** A certificate that ends sooner is a problem. */
const CERTIFICATE_DAYS = 14;
/** What the states of the server mean. @type {Record<string, string>} */
const WORDS = { READY: "Ready", LOADING: "Loading", READ_ONLY: "Read only", DRAINING: "Draining" };

export default function Health() {
  const { data, error } = useRead(may.everyRead.value ? PATH : null, READ_MS);
  const head = html`<div class="head"><h1>Health</h1>${data && html`<p class="dim">Longshore ${data.version}, since <${Moment} at=${data.startedAt} /></p><div class="acts"><${CopyButton} text=${report(data)}>Copy a report<//></div>`}</div>`;
  if (!may.everyRead.value) return html`${head}<${Empty}><p>Only a key that reads all endpoints may see how the server does.</p><//>`;
  if (error && !data) return html`${head}<${Failed} error=${error} onRetry=${() => refresh(PATH)} />`;
  if (!data) return html`${head}<${Loading} rows=${8} />`;
  return html`${head}
    ${data.reason && html`<${Alert} tone=${data.state === "READ_ONLY" ? "bad" : "warn"} title=${WORDS[data.state] ?? data.state}><p>${data.reason}</p><//>`}
    ${endsSoon(data) && html`<${Alert} tone="bad" title="The certificate ends"><p>It ends at <${Moment} at=${data.tlsEndsAt} />. Replace its files; the server reads them again by itself.</p><//>`}
    ${data.scrub?.damaged > 0 && html`<${Alert} tone="bad" title="Stored files are damaged"><p>${count(data.scrub.damaged)} damaged places were found in stored files. The server's log names them.</p><//>`}
    <${Figures} data=${data} /><${Facts} data=${data} /><${Changed} settings=${data.changedSettings} />`;
}

/** @param {any} data */
const endsSoon = (data) => data.tlsEndsAt && Date.parse(data.tlsEndsAt) - Date.now() < CERTIFICATE_DAYS * DAY_MS;

/** A time in µs, which may be above what is measured. @param {number | null} us @param {number} commits */
const commitTime = (us, commits) => (commits === 0 ? "–" : us === null ? "> 1 s" : us < 1000 ? `${us} µs` : duration(us / 1000));

/** @param {{data: any}} props */
function Figures({ data }) {
  const { commits, bytes, connections } = data;
  return html`<${Gauges}>
    <${Gauge} name="State" value=${WORDS[data.state] ?? data.state} bad=${data.state === "READ_ONLY"} note=${`up ${duration(now.value - Date.parse(data.startedAt))}`} />
    <${Gauge} name="Commit p50" value=${commitTime(commits.p50Us, commits.count)} note=${`at most; p99 ${commitTime(commits.p99Us, commits.count)}`} />
    <${Gauge} name="Commits" value=${count(commits.count)} note=${commits.meanCommands === null ? "since the start" : `${commits.meanCommands} changes each`} />
    <${Gauge} name="Failed commits" value=${count(commits.failed)} bad=${commits.failed > 0} note="since the start" />
    <${Gauge} name="Disk free" value=${size(bytes.diskFree)} note="where the data is" />
    <${Gauge} name="Memory" value=${size(bytes.resident)} note=${`${size(bytes.inFlight)} of ${size(bytes.inFlightMax)} for bodies`} />
    <${Gauge} name="Connections" value=${count(connections.open)} note=${`${count(connections.eventReaders)} follow the events`} />
  <//>`;
}

/** @param {{data: any}} props */
function Facts({ data }) {
  const { connections, scrub } = data;
  const facts = /** @type {[string, any][]} */ ([
    ["Endpoints", count(data.endpoints)],
    ["Workers of this server", `${count(data.managedWorkers)}, ${count(data.busyWorkers)} with a job`],
    ["Open files", `${count(connections.openFiles)} of ${count(connections.openFilesMax)}`],
    ["Stored files read again", scrub ? `${size(scrub.bytes)}, ${count(scrub.passes)} times all, ${count(scrub.damaged)} damaged places` : "not by this server"],
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
