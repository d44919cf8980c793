// What a load-balancing endpoint shows in place of jobs: its address, its requests, and the health of its workers.
import { html } from "../dom.js";
import { base } from "../router.js";
import { count, duration, rate } from "../format.js";
import { perSecond } from "../timeline.js";
import { may } from "../session.js";
import { useRead } from "../store.js";
import { Alert, Card, Gauge, Gauges } from "./card.js";
import { CodeLine } from "./copy.js";
import { half, KINDS } from "./history_charts.js";

const READ_MS = 2000;
const ANSWERS = ["1xx", "2xx", "3xx", "4xx", "5xx", "refused"];
const HEALTHS = /** @type {const} */ (["healthy", "starting", "initializing", "unhealthy", "draining"]);

/** The series that its charts need. */
export const SERIES_FORWARDED = [
  "queued", "queuedMax", "running", "runningMax", "answered1xx", "answered2xx", "answered3xx", "answered4xx", "answered5xx", "forwardsRefused",
  "firstByteP50Ms", "firstByteP95Ms", "workersIdle", "workersRunning", "workersStarting", "starts", "startP50Ms", "startP95Ms",
];

/** The sum of series, a second. @param {import("../timeline.js").History} history @param {string[]} names */
const together = (history, names) => {
  const [first, ...others] = names.map((name) => perSecond(history, name));
  return first.map((value, at) => (value === null ? null : others.reduce((sum, values) => sum + (values[at] ?? 0), value)));
};

/** Its charts. @type {import("./history_charts.js").Kind[]} */
export const CHARTS_FORWARDED = [
  {
    title: "Requests",
    unit: count,
    lines: ({ series }) => [
      { name: "waiting", tone: "queued", values: series.queued, max: series.queuedMax, isStepped: true, isFilled: true },
      { name: "outstanding", tone: "running", values: series.running, max: series.runningMax, isStepped: true },
    ],
  },
  {
    title: "Answered a second",
    unit: rate,
    lines: (history) => [
      { name: "1xx to 3xx", tone: "completed", values: together(history, ["answered1xx", "answered2xx", "answered3xx"]), isFilled: true },
      { name: "4xx", tone: "queued", values: together(history, ["answered4xx"]) },
      { name: "5xx and refused", tone: "failed", values: together(history, ["answered5xx", "forwardsRefused"]) },
    ],
  },
  { title: "First byte", unit: duration, lines: ({ series }) => half("running", series.firstByteP50Ms, series.firstByteP95Ms) },
  KINDS.workers,
  KINDS.starts,
];

/** Whether requests of an endpoint are forwarded. @param {Endpoint} endpoint @param {Health | undefined} health */
export const isForwarded = (endpoint, health) => endpoint?.type === "LB" || Boolean(health?.lb);

/** Where its requests go. @param {Endpoint} endpoint */
export const addressOf = (endpoint) => `${location.origin}${base}/lb/${endpoint.slug ?? endpoint.id}/`;

/** @param {{endpoint: Endpoint, health: Health | undefined, speed: any, isReadable: boolean}} props */
export function Forwarded({ endpoint, health, speed, isReadable }) {
  const lb = health?.lb;
  const workers = lb && HEALTHS.filter((name) => name !== "healthy" && lb.workers[name] > 0).map((name) => `${count(lb.workers[name])} ${name}`);
  const note = isReadable && lb ? (workers && workers.length > 0 ? workers.join(", ") : `of at most ${count(endpoint.workersMax)}`) : "";
  return html`${may.requests(endpoint.id) && html`<${WhyRequestsWait} endpoint=${endpoint} />`}
    <${Gauges}>
      <${Gauge} name="Requests" value=${rate(speed?.completed)} unit="a second" note=${`${count(lb && answered(lb.requests))} answered`} />
      <${Gauge} name="Failed" value=${rate(speed?.failed)} unit="a second" bad=${(speed?.failed ?? 0) > 0} note=${`${count(lb?.requests["5xx"])} with 5xx, ${count(lb?.requests.refused)} refused`} />
      <${Gauge} name="Outstanding" value=${count(health?.jobs.inProgress)} note="at workers now" />
      <${Gauge} name="Waiting" value=${count(health?.jobs.inQueue)} note=${`p95 ${atMost(lb?.queueWaitMs.p95)}, of ${count(lb?.queueWaitMs.count)}`} />
      <${Gauge} name="First byte p50" value=${atMost(lb?.firstByteMs.p50)} note=${`p95 ${atMost(lb?.firstByteMs.p95)}`} />
      <${Gauge} name="Duration p50" value=${atMost(lb?.durationMs.p50)} note=${`p95 ${atMost(lb?.durationMs.p95)}`} />
      <${Gauge} name="Healthy workers" value=${count(lb?.workers.healthy)} bad=${(lb?.workers.unhealthy ?? 0) > 0} note=${note} />
    <//>
    <${Card} title="Address">
      <${CodeLine} text=${addressOf(endpoint)} />
      ${lb && html`<${Answers} requests=${lb.requests} retries=${lb.retries} />`}
    <//>`;
}

/** @param {{requests: Record<string, number>, retries: number}} props */
const Answers = ({ requests, retries }) => html`<dl class="kv">
  ${ANSWERS.filter((name) => requests[name] > 0).map((name) => html`<dt key=${`${name}-name`}>${name === "refused" ? "Refused by the server" : name}</dt><dd key=${name}>${count(requests[name])}</dd>`)}
  <dt>Sent again</dt><dd>${count(retries)}</dd>
</dl>`;

/** Why requests wait, while some do or something blocks them. @param {{endpoint: Endpoint}} props */
function WhyRequestsWait({ endpoint }) {
  const { data } = useRead(`/v2/${encodeURIComponent(endpoint.id)}/explain`, READ_MS);
  const cause = data?.cause?.code === "not_waiting" ? data.also[0] : data?.cause;
  if (!cause) return null;
  return html`<${Alert} tone=${cause.blocking ? "bad" : "warn"} icon=${cause.blocking ? "warn" : "queued"} title=${cause.title}>
    <p>${cause.text}</p>
    ${cause.logTail?.length > 0 && html`<pre tabindex="0">${cause.logTail.join("\n")}</pre>`}
  <//>`;
}

/** @param {Record<string, number>} requests */
const answered = (requests) => ANSWERS.filter((name) => name !== "refused").reduce((sum, name) => sum + requests[name], 0);

/** An upper bound of a time. @param {number | null | undefined} ms */
const atMost = (ms) => (ms === null || ms === undefined ? "–" : `≤ ${duration(ms)}`);
