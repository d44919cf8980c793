// Whether an endpoint meets its objectives, how fast it uses up what they allow, and the minutes that cost most.
import { html } from "../dom.js";
import { endpointPath, href } from "../router.js";
import { count, dateTime, duration, percent, rate, UNKNOWN } from "../format.js";
import { utc } from "../prefs.js";
import { refresh, useRead } from "../store.js";
import { Card, Failed, Loading } from "./card.js";

const READ_MS = 30000;
/** At this burn over an hour, the objective needs attention. */
const BURN_BAD = 6;
const SPANS = /** @type {[string, string][]} */ ([["h1", "Burn, 1 h"], ["h6", "6 h"], ["d3", "3 d"]]);

/** @typedef {{target: number, now: number | null, good: number, total: number, budgetLeft: number | null, burn: Record<string, number | null>}} Objective */
/** @typedef {{from: string, until: string, objective: "delay" | "success", bad: number, total: number}} Minute */

/** A share with two places, because 99.95 and 100 differ. @param {number | null} ratio */
const exact = (ratio) => (ratio === null ? UNKNOWN : `${Number((ratio * 100).toFixed(2))} %`);

/** @param {{endpoint: Endpoint}} props */
export function Objectives({ endpoint }) {
  const { slo } = endpoint;
  const path = `/v1/endpoints/${encodeURIComponent(endpoint.id)}/objectives`;
  const { data, error } = useRead(slo ? path : null, READ_MS);
  if (!slo) return null;
  if (error && !data) return html`<${Card} title="Objectives"><${Failed} error=${error} onRetry=${() => refresh(path)} /><//>`;
  if (!data) return html`<${Card} title="Objectives" flush><${Loading} rows=${2} /><//>`;
  return html`<${Card} title="Objectives" note=${`of the last ${count(slo.windowDays)} days`} flush>
    <div class="table-box"><table class="table">
      <thead><tr><th scope="col">Jobs</th><th scope="col" class="num">Target</th><th scope="col" class="num">Now</th><th scope="col" class="num">Budget left</th>${SPANS.map(([span, title], at) => html`<th scope="col" key=${span} class=${at === 0 ? "num" : "num opt2"}>${title}</th>`)}</tr></thead>
      <tbody>
        ${data.delay && html`<${Line} name=${`start within ${duration(slo.delayMs)}`} objective=${data.delay} />`}
        ${data.success && html`<${Line} name="complete" objective=${data.success} />`}
      </tbody>
    </table></div>
    ${data.worst.length > 0 && html`<details class="costly"><summary>The minutes that cost most</summary><ul>${data.worst.map((/** @type {Minute} */ minute) => html`<${Costly} key=${minute.objective + minute.from} endpoint=${endpoint} minute=${minute} />`)}</ul></details>`}
  <//>`;
}

/** @param {{name: string, objective: Objective}} props */
function Line({ name, objective }) {
  const { target, now, good, total, budgetLeft, burn } = objective;
  const isMissed = budgetLeft !== null && budgetLeft < 0;
  return html`<tr>
    <th scope="row">${name}</th><td class="num">${exact(target)}</td>
    <td class="num" title=${`${count(good)} of ${count(total)} jobs`}>${exact(now)}</td>
    <td class=${isMissed ? "num tone-failed" : "num"}>${budgetLeft === null ? UNKNOWN : isMissed ? "none" : `${percent(budgetLeft)} %`}</td>
    ${SPANS.map(([span], at) => html`<td key=${span} class=${`num ${at === 0 ? "" : "opt2"} ${(burn[span] ?? 0) >= BURN_BAD ? "tone-failed" : ""}`}>${rate(burn[span])}</td>`)}
  </tr>`;
}

/** A minute, and the bad jobs that may be of it: they started or ended then, and were submitted at any time before its end. @param {{endpoint: Endpoint, minute: Minute}} props */
function Costly({ endpoint, minute }) {
  const { from, until, objective, bad, total } = minute;
  const what = objective === "delay" ? `waited:>${endpoint.slo?.delayMs}ms` : "state:failed,timed_out";
  const query = new URLSearchParams({ q: `before:${until} ${what}` });
  const [begin, end] = [from, until].map((at) => dateTime(Date.parse(at), { utc: utc.value }).slice(0, -3));
  const text = objective === "delay" ? "started late" : "did not complete";
  return html`<li><span>${begin}</span><span>${count(bad)} of ${count(total)} ${text}</span><a href=${href(`${endpointPath(endpoint)}/requests?${query}`)}>Those submitted before ${end.slice(-5)}</a></li>`;
}
