// Why jobs of an endpoint failed in the last 7 days, in the groups that the server makes.
import { html } from "../dom.js";
import { endpointPath, href } from "../router.js";
import { count, shortId, visible } from "../format.js";
import { refresh, useRead } from "../store.js";
import { Card, Empty, Failed, Loading } from "./card.js";
import { Sparkline } from "./chart.js";
import { Age } from "./time.js";

const READ_MS = 15000;
const SHOWN_MAX = 20;
const BARS = 24;

/** @typedef {{group: string, kind: "handler" | "workerLost" | "timedOut" | "size" | "damaged", type: string | null, message: string | null, place: string | null, count: number, firstAt: string, lastAt: string, sinceVersion: number, presentVersion: number, presentVersionCount: number | null, job: string, perHour: number[]}} Group */

/** What happened, where no type of an error says it. */
const KINDS = /** @type {Record<Group["kind"], string>} */ ({
  handler: "The handler reported an error",
  workerLost: "Its worker was lost",
  timedOut: "It ran longer than it may",
  size: "A result was larger than it may be",
  damaged: "What the server stored of the job was damaged",
});

/** The failures of hours in 24 parts of the time of all. @param {number[]} perHour */
function bars(perHour) {
  const each = Math.ceil(perHour.length / BARS);
  return Array.from({ length: Math.ceil(perHour.length / each) }, (_, at) => perHour.slice(at * each, (at + 1) * each).reduce((sum, number) => sum + number, 0));
}

/** @param {{endpoint: Endpoint, hasFailures: boolean}} props */
export function Failures({ endpoint, hasFailures }) {
  const path = `/v1/endpoints/${encodeURIComponent(endpoint.id)}/failures`;
  const { data, error } = useRead(hasFailures ? path : null, READ_MS);
  if (!hasFailures) return null;
  if (error && !data) return html`<${Card} title="Failures"><${Failed} error=${error} onRetry=${() => refresh(path)} /><//>`;
  if (!data) return html`<${Card} title="Failures" flush><${Loading} rows=${2} /><//>`;
  const groups = /** @type {Group[]} */ (data);
  if (groups.length === 0) return html`<${Card} title="Failures" flush><${Empty}><p>No job failed in the last 7 days.</p><//><//>`;
  const total = groups.reduce((sum, group) => sum + group.count, 0);
  const cut = groups.length > SHOWN_MAX ? `, the largest ${SHOWN_MAX} of ${count(groups.length)} groups` : "";
  return html`<${Card} title="Failures" note=${`${count(total)} in the last 7 days${cut}`} flush>
    <ul class="failure-groups">${groups.slice(0, SHOWN_MAX).map((group) => html`<${Row} key=${group.group} endpoint=${endpoint} group=${group} />`)}</ul>
  <//>`;
}

/** How the failures are spread over the versions of the endpoint. @param {{group: Group}} props */
function SinceVersion({ group }) {
  const { sinceVersion, presentVersion: present, presentVersionCount: number } = group;
  if (present === 1) return null;
  if (sinceVersion === present) return html`<span class="tone-failed">new in version ${present}</span>`;
  // What an older server counted has no version.
  if (number === null) return html`<span class="dim">in version ${sinceVersion} and later</span>`;
  return html`<span class=${number > 0 ? "tone-failed" : "dim"}>${number > 0 ? count(number) : "none"} of ${count(group.count)} since version ${present}</span>`;
}

/** @param {{endpoint: Endpoint, group: Group}} props */
function Row({ endpoint, group }) {
  const { kind, type, message, place, job } = group;
  const title = kind === "handler" && type ? `The handler raised ${type}` : KINDS[kind];
  return html`<li>
    <b class="failure-count">${count(group.count)}</b>
    <span class="failure-what"><span class="failure-title">${visible(title)}${place && html` <span class="mono dim">${visible(place)}</span>`} <span class="dim">first <${Age} at=${group.firstAt} /></span> <${SinceVersion} group=${group} /></span><span class="failure-message">${message ? visible(message) : "without a message"}</span></span>
    <span class="failure-spark"><${Sparkline} values=${bars(group.perHour)} label=${`${group.count} failures over time`} /></span>
    <span class="dim failure-age"><${Age} at=${group.lastAt} /></span>
    <a class="mono" href=${href(`${endpointPath(endpoint)}/requests/${job}`)} title=${`The newest: ${job}`}>${shortId(job)}</a>
  </li>`;
}
