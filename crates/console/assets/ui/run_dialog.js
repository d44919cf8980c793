// Running a job: the input as JSON, then the page of the job.
import { html, useState } from "../dom.js";
import { endpointPath, go } from "../router.js";
import * as api from "../api.js";
import { faultOf } from "../json_fault.js";
import { exampleOf } from "../playground_history.js";
import { Button } from "./button.js";
import { Dialog, isCtrlEnter, useOne } from "./dialog.js";
import { toast } from "./toast.js";
import { useUnsaved } from "./unsaved.js";

/** @param {{endpoint: Endpoint, onClose: () => void}} props */
export default function RunDialog({ endpoint, onClose }) {
  const [first] = useState(() => exampleOf(endpoint));
  const [text, setText] = useState(first);
  const { question, ask, done } = useUnsaved(text !== first);
  const close = () => ask(onClose);
  const [error, setError] = useState("");
  const run = useOne(async () => {
    const fault = faultOf(text);
    if (fault) return setError(fault);
    try {
      // The text goes as it is: numbers keep their digits.
      const { id } = await submit(endpoint.id, text);
      // Its input is not lost. What is typed in a page below the dialog may be.
      done();
      onClose();
      toast("The job is queued.");
      go(`${endpointPath(endpoint)}/requests/${id}`);
    } catch (failed) {
      setError(api.said(failed));
    }
    return undefined;
  });
  const press = (/** @type {KeyboardEvent} */ event) => {
    if (isCtrlEnter(event)) void run();
  };
  const actions = question ?? html`<span class="dim grow">Ctrl Enter runs it.</span><${Button} onClick=${close}>Close<//><${Button} kind="primary" icon="play" onClick=${run}>Run<//>`;
  return html`<${Dialog} title=${`Run a job on ${endpoint.name}`} wide onClose=${close} actions=${actions}>
    <label for="run-input">Input, a JSON object</label>
    <textarea id="run-input" class="mono" rows="12" spellcheck=${false} autofocus value=${text} aria-invalid=${error ? "true" : undefined} aria-describedby=${error ? "run-error" : undefined} onInput=${(/** @type {any} */ event) => setText(event.target.value)} onKeyDown=${press}></textarea>
    ${error && html`<p id="run-error" class="field-error" role="alert">${error}</p>`}
  <//>`;
}

/** @param {string} endpoint @param {string} input JSON text of an object */
const submit = (endpoint, input) => api.json("POST", `/v2/${encodeURIComponent(endpoint)}/run`, { rawBody: `{"input":${input}}` });
