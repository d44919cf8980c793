// The input or the output of a job, as it came, read for itself.
import { html, useLayoutEffect, useState } from "../dom.js";
import * as api from "../api.js";
import { saveFile } from "../csv.js";
import { size } from "../format.js";
import { READ_BYTES_MAX } from "../job_record.js";
import { Button } from "./button.js";
import { Card, Failed, Loading } from "./card.js";
import { attempt } from "./toast.js";
import { Viewer } from "./viewer.js";

/** @param {{endpoint: Endpoint, job: Job, of: "input" | "output", bytes: number}} props `bytes`: how large it is */
export function Payload({ endpoint, job, of, bytes }) {
  const [text, setText] = useState(/** @type {string | null} */ (null));
  const [error, setError] = useState(/** @type {api.ApiError | null} */ (null));
  const [asked, setAsked] = useState(0);
  const isLarge = bytes > READ_BYTES_MAX;
  const title = of === "input" ? "Input" : "Output";
  const path = `/v2/${encodeURIComponent(endpoint.id)}/jobs/${job.id}/${of}`;
  const name = `${job.id}-${of}.json`;
  const download = () => attempt(async () => saveFile(name, [await api.text("GET", path)], "application/json"), "");
  useLayoutEffect(() => {
    if (isLarge && asked === 0) return;
    const stop = new AbortController();
    api.text("GET", path, { signal: stop.signal })
      .then((answer) => {
        setText(answer);
        setError(null);
      })
      .catch((failed) => !stop.signal.aborted && setError(failed));
    return () => stop.abort();
  }, [job.id, of, isLarge, asked]);
  if (text !== null) return html`<${Viewer} title=${title} text=${text} name=${name} />`;
  return html`<${Card} title=${title}>
    ${error ? html`<${Failed} error=${error} onRetry=${() => setAsked(asked + 1)} />`
      : isLarge && asked === 0 ? html`<p>This is ${size(bytes)}. <${Button} onClick=${() => setAsked(1)}>Show it<//> <${Button} onClick=${download}>Download it<//></p>`
      : html`<${Loading} rows=${2} />`}
  <//>`;
}
