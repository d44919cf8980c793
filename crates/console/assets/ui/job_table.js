// A short table of jobs, such as the newest of an endpoint.
import { html } from "../dom.js";
import { endpointPath, go, href } from "../router.js";
import { duration, shortId } from "../format.js";
import { JobBar, timesOf } from "./job_bar.js";
import { JobState } from "./state.js";
import { Age } from "./time.js";

/** @param {{endpoint: Endpoint, jobs: any[]}} props */
export function JobTable({ endpoint, jobs }) {
  const path = `${endpointPath(endpoint)}/requests`;
  return html`<div class="table-box"><table class="table jobs">
    <thead><tr><th scope="col">State</th><th scope="col">Job</th><th scope="col" class="opt2">Worker</th><th scope="col" class="opt">Waited, then ran</th><th scope="col" class="num opt2">Waited</th><th scope="col" class="num">Ran</th><th scope="col" class="num">Age</th><th scope="col" class="num opt">Tries</th></tr></thead>
    <tbody>${jobs.map((job) => html`<tr key=${job.id} class="pressable" onClick=${() => go(`${path}/${job.id}`)}>
      <td><${JobState} status=${job.status} /></td>
      <td><a class="mono" href=${href(`${path}/${job.id}`)} title=${job.id}>${shortId(job.id)}</a></td>
      <td class="mono dim opt2">${job.workerId ? shortId(job.workerId) : "–"}</td>
      <td class="opt bar-cell"><${JobBar} job=${job} /></td>
      <td class="num opt2">${duration(timesOf(job).waited)}</td>
      <td class="num">${duration(job.status === "IN_PROGRESS" ? timesOf(job).ran : job.executionTime)}</td>
      <td class="num dim"><${Age} at=${job.createdAt} /></td>
      <td class="num dim opt">${(job.retries ?? 0) + 1}</td>
    </tr>`)}</tbody>
  </table></div>`;
}
