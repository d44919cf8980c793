// What the worker of a job printed; lines that name the job are marked.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../dom.js";
import * as api from "../api.js";
import { shortId, visible } from "../format.js";
import { takeTurn } from "../live.js";
import { Card, Failed } from "./card.js";

const LINES = 200;
/** Older lines are dropped while the log is followed. */
const LINES_MAX = 2000;

/** Reads a log as it grows. @param {string} path @param {AbortSignal} signal @param {(text: string) => void} onText */
async function followLines(path, signal, onText) {
  const answer = await api.open(path, { signal });
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  onText(text);
  while (reader) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    if (text.length > LINES_MAX * 100) text = text.split("\n").slice(-LINES_MAX).join("\n");
    onText(text);
  }
}

/** @param {{endpoint: any, job: any, isLive: boolean}} props */
export function JobLog({ endpoint, job, isLive }) {
  const [text, setText] = useState(/** @type {string | null} */ (null));
  const [error, setError] = useState(/** @type {api.ApiError | null} */ (null));
  const [isOwn, setOwn] = useState(false);
  useEffect(() => {
    const path = `/v1/endpoints/${endpoint.id}/workers/${job.workerId}/logs?tail=${LINES}`;
    const fail = (/** @type {any} */ failed, /** @type {AbortSignal} */ signal) => !signal.aborted && setError(failed);
    let stop = new AbortController();
    if (!isLive) {
      api.text("GET", path, { signal: stop.signal }).then(setText, (failed) => fail(failed, stop.signal));
      return () => stop.abort();
    }
    const giveBack = takeTurn((isOn) => {
      stop.abort();
      stop = new AbortController();
      const { signal } = stop;
      if (isOn) followLines(`${path}&follow=true`, signal, setText).catch((failed) => fail(failed, signal));
    }, { isLow: true });
    return () => {
      stop.abort();
      giveBack();
    };
  }, [job.workerId, isLive]);
  const box = useRef(/** @type {HTMLPreElement | null} */ (null));
  useLayoutEffect(() => {
    // The newest line is the last one.
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text, isOwn]);
  const lines = (text ?? "").replace(/\n$/, "").split("\n").filter((line) => !isOwn || line.includes(job.id));
  const actions = html`<span class="switch" role="group" aria-label="Lines"><button type="button" aria-pressed=${!isOwn} onClick=${() => setOwn(false)}>All</button><button type="button" aria-pressed=${isOwn} onClick=${() => setOwn(true)}>This job</button></span>`;
  return html`<${Card} title="Log" note=${`of worker ${shortId(job.workerId)}, its last ${LINES} lines`} flush actions=${actions}>
    ${error ? html`<${Failed} error=${error} />` : text === null ? html`<div class="log-note dim"> </div>` : text === "" ? html`<div class="log-note dim">The worker printed nothing, or prints on a computer of its own.</div>`
      : lines.length === 0 ? html`<div class="log-note dim">None of these lines names this job.</div>`
      : html`<pre class="log" ref=${box} tabindex="0">${lines.map((line, at) => html`<${Line} key=${at} line=${line} isNamed=${!isOwn && line.includes(job.id)} />`)}</pre>`}
  <//>`;
}

/** A printed line; of the SDK's own lines, the level and the message. @param {{line: string, isNamed: boolean}} props */
function Line({ line, isNamed }) {
  const found = /^\{"requestId": (?:null|"[^"]*"), "message": ("(?:[^"\\]|\\.)*"), "level": "(\w+)"\}$/.exec(line);
  const level = found?.[2] ?? "";
  return html`<span class=${`line ${isNamed ? "named" : ""}`}>${found && html`<span class=${level === "ERROR" ? "level tone-failed" : "level"}>${level}</span>`}${plain(found ? messageOf(found[1]) : line)}${"\n"}</span>`;
}

/** @param {string} json a JSON string */
function messageOf(json) {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

/** A line without the escapes that colour terminals. @param {string} line */
const plain = (line) => visible(line.replace(/\u001b\[[0-9;]*[A-Za-z]/g, ""));
