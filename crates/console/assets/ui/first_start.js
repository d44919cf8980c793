// The first minutes of an endpoint: its first worker starts, and its first job runs or its address is shown.
import { html, useState } from "../dom.js";
import * as api from "../api.js";
import { endpointPath, href, place, setQuery } from "../router.js";
import { useAttention, useEndpoint } from "../fleet.js";
import { duration, moment } from "../format.js";
import { Icon } from "../icons.js";
import { faultOf } from "../json_fault.js";
import { exampleOf } from "../playground_history.js";
import { now, useRead } from "../store.js";
import { exitOf, workersPath } from "../worker_actions.js";
import { Button } from "./button.js";
import { Card, Failed, Loading } from "./card.js";
import { CodeLine } from "./copy.js";
import { isCtrlEnter, useOne } from "./dialog.js";
import { addressOf, isForwarded } from "./forwarded.js";
import { JobView, useFollow, useLife } from "./job_view.js";
import { LogLines } from "./log_lines.js";
import { NoEndpoint } from "./no_endpoint.js";
import Problems from "./problems.js";
import { JobState } from "./state.js";
import WorkerToken from "./worker_token.js";

const READ_MS = 2000;

/** @param {{name: string}} props */
export default function FirstStart({ name }) {
  const { endpoint, error, health } = useEndpoint(name);
  const workers = useRead(endpoint ? workersPath(endpoint, true) : null, READ_MS).data;
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  if (!endpoint) return html`<h1>New endpoint</h1><${Loading} rows=${8} />`;
  const job = place.value.query.get("job");
  const isLb = isForwarded(endpoint, health);
  const state = startOf(endpoint, workers ?? [], job !== null, isLb);
  return html`<div class="head"><h1>${endpoint.name} is made</h1><p class="dim">Its first worker, and its ${isLb ? "address" : "first job"}.</p><div class="acts"><a class="button" href=${href(endpointPath(endpoint))}>Open its page</a></div></div>
    <${Card} title="Worker"><p class="state-line" role="status"><span class=${`state tone-${state.tone}`}><${Icon} name=${state.icon} />${state.word}</span><span>${state.text}</span></p><//>
    ${!job && html`<${Problems} problems=${useAttention(endpoint.id)} />`}
    ${endpoint.provider === "external" && html`<${WorkerToken} endpoint=${endpoint} />`}
    ${isLb ? html`<${Card} title="Address"><${CodeLine} text=${addressOf(endpoint)} /><//>` : job ? html`<${FirstJob} key=${job} endpoint=${endpoint} id=${job} />` : html`<${Example} endpoint=${endpoint} />`}
    ${endpoint.provider !== "external" && html`<${LogLines} endpoint=${endpoint} filter=${{}} title="What the workers print" />`}`;
}

/**
 * How far the start of the first worker is.
 * @param {Endpoint} endpoint
 * @param {any[]} workers newest last
 * @param {boolean} hasJob
 * @param {boolean} isLb whether requests are forwarded to its workers, which ask for no job
 */
function startOf(endpoint, workers, hasJob, isLb) {
  const running = workers.filter(({ status }) => status !== "EXITED");
  const ready = running.find(({ status, health }) => (isLb ? health === "healthy" : status === "IDLE" || status === "RUNNING"));
  const does = isLb ? "A worker is healthy." : "A worker asks for jobs.";
  if (ready) return { tone: "completed", icon: "completed", word: "Ready", text: ready.startMs === undefined ? does : `${does} Its start took ${duration(ready.startMs)}.` };
  const ill = running.find(({ health }) => health === "unhealthy");
  if (ill) return { tone: "failed", icon: "warn", word: "Unhealthy", text: ill.lastCheck ?? "" };
  const starting = running.find(({ status }) => status === "INITIALIZING");
  const since = starting && moment(starting.startedAt);
  if (starting) return { tone: "queued", icon: "queued", word: "Starting", text: `${since ? `For ${duration(Math.max(0, now.value - since))}. ` : ""}${starting.reason ?? ""}` };
  const waiting = running.find(({ status }) => status === "THROTTLED");
  if (waiting) return { tone: "timedout", icon: "clock", word: "Waits for a GPU", text: waiting.reason ?? "" };
  const ended = workers.filter(({ status }) => status === "EXITED").sort((a, b) => ((a.endedAt ?? "") < (b.endedAt ?? "") ? 1 : -1))[0];
  const exit = ended && exitOf(ended.exit);
  if (exit?.isBad) return { tone: "failed", icon: "failed", word: exit.word, text: `${exit.text}. What it printed is below.` };
  if (endpoint.provider === "external") return { tone: "queued", icon: "queued", word: "None yet", text: "Start one with the variables below." };
  if (endpoint.workersMax === 0) return { tone: "cancelled", icon: "pause", word: "Paused", text: "Its most workers are 0." };
  if (hasJob || endpoint.workersMin > 0) return { tone: "queued", icon: "queued", word: "None yet", text: "One starts in a moment." };
  return { tone: "cancelled", icon: "clock", word: "None yet", text: isLb ? "None is needed without a request: the first request starts one." : "None is needed without a job: the first job starts one." };
}

/** @param {{endpoint: Endpoint}} props */
function Example({ endpoint }) {
  const [text, setText] = useState(() => exampleOf(endpoint));
  const [error, setError] = useState("");
  const run = useOne(async () => {
    const fault = faultOf(text);
    if (fault) return setError(fault);
    try {
      const { id } = await api.json("POST", `/v2/${encodeURIComponent(endpoint.id)}/run`, { rawBody: `{"input":${text.trim()}}` });
      setQuery({ job: id });
    } catch (failed) {
      setError(api.said(failed));
    }
    return undefined;
  });
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (isCtrlEnter(event)) void run();
  };
  return html`<${Card} title="First job"><div class="form">
    <div class="field"><label for="first-input">Input, a JSON object</label><textarea id="first-input" class="mono" rows="5" spellcheck=${false} value=${text} aria-invalid=${error ? "true" : undefined} aria-describedby=${error ? "first-error" : undefined} onInput=${(/** @type {any} */ event) => setText(event.target.value)} onKeyDown=${press}></textarea>
      ${error && html`<p id="first-error" class="field-error" role="alert">${error}</p>`}</div>
    <div class="play-acts"><${Button} kind="primary" icon="play" onClick=${run}>Run it<//><span class="dim">Ctrl Enter runs it.</span></div>
  </div><//>`;
}

/** @param {{endpoint: Endpoint, id: string}} props */
function FirstJob({ endpoint, id }) {
  const { follow, again } = useFollow(endpoint.id, id);
  const record = follow.record.value;
  if (!record && follow.error.value) return html`<${Card} title="First job"><${Failed} error=${follow.error.value} onRetry=${again} /><//>`;
  if (!record) return html`<${Card} title="First job"><${Loading} rows=${4} /><//>`;
  return html`<${Job} endpoint=${endpoint} record=${record} follow=${follow} onAgain=${again} />`;
}

/** @param {{endpoint: Endpoint, record: {text: string, job: Job}, follow: import("../job_follow.js").JobFollow, onAgain: () => void}} props */
function Job({ endpoint, record, follow, onAgain }) {
  const { job } = useLife(endpoint, record, follow);
  return html`<section class="play-head" aria-label="First job"><${JobState} status=${job.status} /><a class="mono" href=${href(`${endpointPath(endpoint)}/requests/${job.id}`)}>${job.id}</a><span class="grow"></span><${Button} kind="quiet small" onClick=${() => setQuery({ job: null })}>Run another<//></section>
    <${JobView} endpoint=${endpoint} job=${job} text=${record.text} follow=${follow} onAgain=${onAgain} />`;
}
