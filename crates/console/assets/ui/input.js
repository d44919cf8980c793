// What went into a job, as the client sent it.
import { html, useLayoutEffect, useState } from "../dom.js";
import * as api from "../api.js";
import { size } from "../format.js";
import { Button } from "./button.js";
import { Card, Failed, Loading } from "./card.js";
import { Viewer } from "./viewer.js";

/** Larger inputs are read when asked. */
const READ_BYTES_MAX = 5000000;

/** @param {{endpoint: Endpoint, job: Job}} props */
export function Input({ endpoint, job }) {
  const [text, setText] = useState(/** @type {string | null} */ (null));
  const [error, setError] = useState(/** @type {api.ApiError | null} */ (null));
  const [asked, setAsked] = useState(0);
  const isLarge = (job.inputBytes ?? 0) > READ_BYTES_MAX;
  useLayoutEffect(() => {
    if (isLarge && asked === 0) return;
    const stop = new AbortController();
    api.text("GET", `/v2/${encodeURIComponent(endpoint.id)}/jobs/${job.id}/input`, { signal: stop.signal })
      .then((answer) => {
        setText(answer);
        setError(null);
      })
      .catch((failed) => !stop.signal.aborted && setError(failed));
    return () => stop.abort();
  }, [job.id, isLarge, asked]);
  if (text !== null) return html`<${Viewer} title="Input" text=${text} name=${`${job.id}-input.json`} />`;
  return html`<${Card} title="Input">
    ${error ? html`<${Failed} error=${error} onRetry=${() => setAsked(asked + 1)} />`
      : isLarge && asked === 0 ? html`<p>This is ${size(job.inputBytes)}. <${Button} onClick=${() => setAsked(1)}>Show it<//></p>`
      : html`<${Loading} rows=${2} />`}
  <//>`;
}
