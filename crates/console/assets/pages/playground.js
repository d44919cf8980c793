// The playground of an endpoint: an input, run as a job, and what comes of it beside it.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../dom.js";
import * as api from "../api.js";
import { endpointPath, href, place, setQuery } from "../router.js";
import { useEndpoint } from "../fleet.js";
import { shortId } from "../format.js";
import { ENDED } from "../icons.js";
import { faultOf } from "../json_fault.js";
import { fieldsOf, formFault, withSwitches } from "../input_schema.js";
import { parse, write } from "../json_text.js";
import { clearRuns, exampleOf, keepRun, runsOf, whyNotKept } from "../playground_history.js";
import { keptOf } from "../playground_kept.js";
import { may } from "../session.js";
import { useRead } from "../store.js";
import { Button } from "../ui/button.js";
import { Card, Empty, Failed, Loading } from "../ui/card.js";
import { ChatBench } from "../ui/chat.js";
import { CopyAs } from "../ui/copy_as.js";
import { EndpointHead } from "../ui/endpoint_head.js";
import { InputForm } from "../ui/input_form.js";
import { JobView, useFollow, useLife } from "../ui/job_view.js";
import { EndpointLoading, NoEndpoint } from "../ui/no_endpoint.js";
import { JobState } from "../ui/state.js";
import { Age } from "../ui/time.js";
import { attempt, toast } from "../ui/toast.js";
import { isCtrlEnter, useOne } from "../ui/dialog.js";
import { SureButton } from "../ui/sure_button.js";
import { Waiting } from "../ui/waiting.js";

/** @typedef {import("../playground_kept.js").Draft} Draft */

/** How long a run that is waited for may take before its job is shown while it goes on, in ms: the least that the server takes. */
const SHOWN_AFTER_MS = 1000;

/** @typedef {import("../ui/waiting.js").Waited} Waited */

export default function Playground() {
  const name = place.value.params.endpoint;
  const { endpoint, isReadable, error, health, healthError } = useEndpoint(name);
  if (error && !endpoint) return html`<${NoEndpoint} name=${name} error=${error} />`;
  if (!endpoint) return html`<${EndpointLoading} name=${name} />`;
  const head = html`<${EndpointHead} endpoint=${endpoint} health=${health} error=${healthError} isReadable=${isReadable} />`;
  if (!may.jobs(endpoint.id)) return html`${head}<${Empty}><p>This key may not run jobs on this endpoint.</p><//>`;
  return html`${head}<${Views} key=${endpoint.id} endpoint=${endpoint} />`;
}

/** The editor of an input, and for endpoints with models a chat. @param {{endpoint: Endpoint}} props */
function Views({ endpoint }) {
  const hasModels = (endpoint.models ?? []).length > 0;
  // An endpoint without `models` can have one, too: a job that came over a route of OpenAI's clients shows it.
  const asked = useRead(hasModels ? null : `/v2/${encodeURIComponent(endpoint.id)}/requests?limit=1&q=openai_route`, Infinity).data;
  const isChat = place.value.query.get("tab") === "chat";
  const hasChat = hasModels || isChat || asked?.requests.length > 0;
  // What was typed stays, and a chat that runs goes on, while the other one is shown. Neither begins before it was shown.
  const seen = useRef({ chat: false, job: false });
  seen.current[isChat ? "chat" : "job"] = true;
  return html`${hasChat && html`<div class="play-views"><span class="switch" role="group" aria-label="Playground"><button type="button" aria-pressed=${!isChat} onClick=${() => setQuery({ tab: null })}>Job</button><button type="button" aria-pressed=${isChat} onClick=${() => setQuery({ tab: "chat" })}>Chat</button></span></div>`}
    <div hidden=${isChat}>${seen.current.job && html`<${Bench} endpoint=${endpoint} />`}</div>
    <div hidden=${!isChat}>${seen.current.chat && html`<${ChatBench} endpoint=${endpoint} />`}</div>`;
}

/**
 * The body that the form stands for, as JSON text: the input goes as it was typed, with all digits of its numbers.
 * @param {Draft} draft
 */
function bodyOf({ input, timeoutS, ttlS, isLow, webhook }) {
  const policy = {
    ...(timeoutS && { executionTimeout: Math.round(Number(timeoutS) * 1000) }),
    ...(ttlS && { ttl: Math.round(Number(ttlS) * 1000) }),
    ...(isLow && { lowPriority: true }),
  };
  const rest = { ...(Object.keys(policy).length > 0 && { policy }), ...(webhook.trim() && { webhook: webhook.trim() }) };
  const others = JSON.stringify(rest).slice(1, -1);
  return `{"input":${input.trim()}${others && `,${others}`}}`;
}

/** An input as its form shows it, as JSON text. @param {import("../input_schema.js").Field[]} fields @param {string} text */
function asShown(fields, text) {
  const node = parse(text);
  const shown = withSwitches(fields, node);
  return shown && shown !== node ? write(shown) : text;
}

/** What is about to be run, and what is wrong with it. @param {Endpoint} endpoint @param {import("../playground_history.js").Run[]} runs */
function useDraft(endpoint, runs) {
  const { query } = place.value;
  const [from, job] = [query.get("from"), query.get("job")];
  const [kept] = useState(() => keptOf(endpoint.id));
  // Another job than the one whose input was changed begins anew.
  const [old] = useState(() => (from && from !== kept.from ? null : kept.draft));
  const typed = useRef({ any: old !== null, input: old !== null && old.input !== exampleOf(endpoint) });
  const [draft, setDraft] = useState(/** @type {Draft} */ (old ?? { input: exampleOf(endpoint), timeoutS: "", ttlS: "", isLow: false, webhook: "" }));
  const [wrong, putWrong] = useState(old ? kept.wrong : {});
  const [error, setError] = useState("");
  const fill = (/** @type {Partial<Draft>} */ change) => {
    setDraft((before) => ({ ...before, ...change }));
    setError("");
  };
  const set = (/** @type {Partial<Draft>} */ change) => {
    typed.current = { any: true, input: typed.current.input || "input" in change };
    fill(change);
  };
  const setWrong = (/** @type {Record<string, string>} */ texts) => {
    if (Object.keys(texts).length > 0) typed.current = { any: true, input: true };
    putWrong(texts);
  };
  useLayoutEffect(() => {
    if (typed.current.any) Object.assign(kept, { draft, wrong, from: from ?? kept.from });
  }, [draft, wrong]);
  /** After a run, its job's input is begun with again. */
  const wasRun = () => {
    kept.from = null;
  };
  // A job of this address gives its input, unless this browser knows what was typed.
  const wanted = from ?? job;
  useEffect(() => {
    const known = runs.find((run) => run.job === wanted);
    if (!wanted || typed.current.input) return undefined;
    if (known) return fill(known);
    const stop = new AbortController();
    api.text("GET", `/v2/${encodeURIComponent(endpoint.id)}/jobs/${encodeURIComponent(wanted)}/input`, { signal: stop.signal })
      .then((text) => {
        const node = parse(text);
        // What was typed meanwhile stays.
        if (!typed.current.input) fill({ input: node ? write(node) : text });
      })
      .catch((failed) => !stop.signal.aborted && !typed.current.input && setError(`The input of job ${shortId(wanted)} could not be read. ${api.said(failed)}`));
    return () => stop.abort();
  }, [from]);
  return { draft, set, wrong, setWrong, error, setError, wasRun };
}

/** @param {{endpoint: Endpoint}} props */
function Bench({ endpoint }) {
  const { query } = place.value;
  const job = query.get("job");
  const [runs, setRuns] = useState(() => runsOf(endpoint.id));
  const { draft, set, wrong, setWrong, error, setError, wasRun } = useDraft(endpoint, runs);
  const fields = useMemo(() => fieldsOf(endpoint.inputSchema), [endpoint.inputSchema]);
  // The id says over which route a job came.
  const route = job?.startsWith("sync-") ? "runsync" : "run";
  const [waited, setWaited] = useState(/** @type {Waited | null} */ (null));
  const isForm = fields.length > 0 && query.get("view") !== "json" && faultOf(draft.input) === "";
  const path = `/v2/${encodeURIComponent(endpoint.id)}`;
  const shown = isForm ? { ...draft, input: asShown(fields, draft.input) } : draft;
  const run = useOne(async (/** @type {boolean} */ isWaited) => {
    const fault = faultOf(shown.input) || (isForm ? formFault(fields, parse(shown.input), wrong) : "");
    if (fault) return setError(fault);
    const began = Date.now();
    try {
      const sent = isWaited ? `runsync?wait=${SHOWN_AFTER_MS}` : "run";
      const { id, status } = await api.json("POST", `${path}/${sent}`, { rawBody: bodyOf(shown) });
      const { webhook: _, ...kept } = shown;
      setRuns(keepRun(endpoint.id, { ...kept, at: Date.now(), job: id }));
      setError("");
      setWaited(isWaited ? { job: id, began, end: ENDED.includes(status) ? { ms: Date.now() - began, status } : null } : null);
      wasRun();
      setQuery({ job: id, from: null });
      if (isWaited) toast(whyNotKept(shown.input) || "The job is sent.");
      else toast(`The job is queued. ${whyNotKept(shown.input)}`.trim());
    } catch (failed) {
      setError(api.said(failed));
    }
    return undefined;
  });
  const clear = () => {
    clearRuns(endpoint.id);
    setRuns([]);
  };
  const ended = (/** @type {any} */ one) => setWaited((before) => (before && before.job === one.id && !before.end ? { ...before, end: { ms: Date.now() - before.began, status: one.status } } : before));
  const choose = (/** @type {import("../playground_history.js").Run} */ chosen) => {
    setWrong({});
    setWaited(null);
    set({ input: chosen.input, timeoutS: chosen.timeoutS, ttlS: chosen.ttlS, isLow: chosen.isLow });
    setQuery({ job: chosen.job, from: null });
  };
  const view = (/** @type {boolean} */ isJson) => {
    setWrong({});
    if (isJson && shown.input !== draft.input) set({ input: shown.input });
    setError("");
    setQuery({ view: isJson ? "json" : null });
  };
  const form = isForm ? html`<${InputForm} fields=${fields} text=${draft.input} wrong=${wrong} onInput=${(/** @type {string} */ input) => set({ input })} onWrong=${setWrong} />` : null;
  return html`<div class="bench">
    <div class="stack bench-input"><${Editor} endpoint=${endpoint} draft=${shown} error=${error} form=${form} onView=${fields.length > 0 ? view : null} onSet=${set} onRun=${run} route=${route} waited=${waited} onUnwait=${() => setWaited(null)} /></div>
    <div class="stack bench-result">${job ? html`<${Result} key=${job} endpoint=${endpoint} id=${job} onEnd=${ended} />` : html`<${Card} title="Result"><p class="dim">Run the input to see its job here: why it waits, its stream and its output.</p><//>`}</div>
    <div class="stack bench-runs"><${Runs} runs=${runs} current=${job} onChoose=${choose} onClear=${clear} /></div>
  </div>`;
}

/**
 * @param {{endpoint: Endpoint, draft: Draft, error: string, form: any, onView: ((isJson: boolean) => void) | null, onSet: (change: Partial<Draft>) => void, onRun: (isWaited: boolean) => Promise<unknown>,
 *   route: "run" | "runsync", waited: Waited | null, onUnwait: () => void}} props
 *   `form` is the form of the input where it is shown, `onView` changes between it and the JSON, `route` is that of the run that is shown
 */
function Editor({ endpoint, draft, error, form, onView, onSet, onRun, route, waited, onUnwait }) {
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (isCtrlEnter(event)) void onRun(event.shiftKey);
  };
  const isJson = faultOf(draft.input) === "";
  const tidy = () => {
    const node = parse(draft.input);
    if (node) onSet({ input: write(node) });
  };
  const field = (/** @type {"timeoutS" | "ttlS"} */ name, /** @type {string} */ label, /** @type {string} */ none) => html`<div class="field"><label for=${`play-${name}`}>${label}</label><input id=${`play-${name}`} type="number" min="0" step="any" inputmode="decimal" placeholder=${none} value=${draft[name]} onInput=${(/** @type {any} */ event) => onSet({ [name]: event.target.value })} /></div>`;
  const call = { endpoint: endpoint.slug ?? endpoint.id, body: bodyOf(draft), input: draft.input.trim(), route };
  const views = onView && html`<span class="switch" role="group" aria-label="Input as"><button type="button" aria-pressed=${form !== null} aria-disabled=${isJson ? undefined : "true"} title=${isJson ? undefined : "The input is not a JSON object."} onClick=${() => isJson && onView(false)}>Form</button><button type="button" aria-pressed=${form === null} onClick=${() => onView(true)}>JSON</button></span>`;
  return html`<${Card} title="Input" actions=${html`${!form && html`<${Button} kind="quiet small" disabled=${!isJson} why="The input is not a JSON object." onClick=${tidy}>Tidy<//>`}${views}`}>
    <div class="form" onKeyDown=${press}>
      ${form ?? html`<div class="field"><label for="play-input">Input, a JSON object</label>
        <textarea id="play-input" class="mono" rows="12" spellcheck=${false} value=${draft.input} aria-invalid=${error ? "true" : undefined} aria-describedby=${error ? "play-error" : undefined} onInput=${(/** @type {any} */ event) => onSet({ input: event.target.value })}></textarea></div>`}
      ${error && html`<p id="play-error" class="field-error" role="alert">${error}</p>`}
      <div class="play-policy">${field("timeoutS", "Longest run, in s", "as the endpoint")}${field("ttlS", "Kept at most, in s", "24 h")}</div>
      <div class="field"><label for="play-webhook">Webhook</label><input id="play-webhook" type="url" autocomplete="off" spellcheck=${false} placeholder="none" value=${draft.webhook} onInput=${(/** @type {any} */ event) => onSet({ webhook: event.target.value })} /></div>
      <label class="play-check"><input type="checkbox" checked=${draft.isLow} onChange=${(/** @type {any} */ event) => onSet({ isLow: event.target.checked })} />Low priority: starts no worker</label>
      <div class="play-acts"><${Button} kind="primary" icon="play" onClick=${() => onRun(false)}>Run<//><${Button} onClick=${() => onRun(true)}>Run and wait<//><span class="grow"></span>${isJson && html`<${CopyAs} call=${call} label="Copy this run as" />`}</div>
      <p class="dim play-hint">Ctrl Enter runs it, Ctrl Shift Enter also waits for its end.</p>
      ${waited && html`<${Waiting} waited=${waited} onStop=${onUnwait} />`}
    </div>
  <//>`;
}

/** @param {{endpoint: Endpoint, id: string, onEnd: (job: Job) => void}} props */
function Result({ endpoint, id, onEnd }) {
  const { follow, again } = useFollow(endpoint.id, id);
  const record = follow.record.value;
  const error = follow.error.value;
  if (!record && error) return html`<${Card} title="Result"><${Failed} error=${error} onRetry=${again} /><//>`;
  if (!record) return html`<${Card} title="Result"><${Loading} rows=${4} /><//>`;
  return html`<${Shown} endpoint=${endpoint} record=${record} follow=${follow} onAgain=${again} onEnd=${onEnd} />`;
}

/** @param {{endpoint: Endpoint, record: {text: string, job: Job}, follow: import("../job_follow.js").JobFollow, onAgain: () => void, onEnd: (job: Job) => void}} props */
function Shown({ endpoint, record, follow, onAgain, onEnd }) {
  const { job } = useLife(endpoint, record, follow);
  const isLive = !ENDED.includes(job.status);
  useEffect(() => {
    if (!isLive) onEnd(job);
  }, [isLive]);
  const cancel = () => attempt(() => api.json("POST", `/v2/${encodeURIComponent(endpoint.id)}/cancel/${encodeURIComponent(job.id)}`), "The job is cancelled.");
  return html`<section class="play-head" aria-label="Job"><${JobState} status=${job.status} /><a class="mono" href=${href(`${endpointPath(endpoint)}/requests/${job.id}`)} title=${job.id}>${shortId(job.id)}</a><span class="grow"></span>${isLive && html`<${SureButton} onClick=${cancel}>Cancel job<//>`}</section>
    <${JobView} endpoint=${endpoint} job=${job} text=${record.text} follow=${follow} onAgain=${onAgain} />`;
}

/** @param {{runs: import("../playground_history.js").Run[], current: string | null, onChoose: (run: import("../playground_history.js").Run) => void, onClear: () => void}} props */
function Runs({ runs, current, onChoose, onClear }) {
  return html`<${Card} title="History" note="in this browser" flush actions=${runs.length > 0 && html`<${SureButton} kind="quiet small" onClick=${onClear}>Clear<//>`}>
    ${runs.length === 0 ? html`<${Empty}><p>The last 50 runs from this browser will be here, without inputs that seem to hold a secret.</p><//>`
      : html`<ul class="play-runs">${runs.map((run) => html`<li key=${run.job}><button type="button" aria-pressed=${run.job === current} onClick=${() => onChoose(run)}><span class="mono play-input">${run.input.replace(/\s+/g, " ").slice(0, 200)}</span><span class="dim"><${Age} at=${run.at} /></span></button></li>`)}</ul>`}
  <//>`;
}
