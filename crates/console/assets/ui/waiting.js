// A run that is waited for: how long it takes so far, and at its end how long it took and what came of it.
import { html, useEffect } from "../dom.js";
import { duration } from "../format.js";
import { JOB_STATES } from "../icons.js";
import { now } from "../store.js";
import { announce } from "./announcer.js";
import { Button } from "./button.js";
import { JobState } from "./state.js";

/**
 * @typedef {{job: string, began: number, end: {ms: number, status: string} | null}} Waited
 *   `began`: when the request was sent, in ms · `end`: null until the job has ended
 */

/** @param {{waited: Waited, onStop: () => void}} props */
export function Waiting({ waited, onStop }) {
  const { began, end } = waited;
  useEffect(() => {
    if (!end) return;
    announce(`The job has ended: ${JOB_STATES[end.status]?.word}.`);
    // In a narrow window, the result is below the input.
    const result = document.querySelector(".bench-result");
    if (result && result.getBoundingClientRect().top > innerHeight) result.scrollIntoView();
  }, [end]);
  if (end) return html`<p class="play-waited"><${JobState} status=${end.status} /><span>after ${duration(end.ms)}, as this browser saw it.</span></p>`;
  return html`<p class="play-waited"><span class="grow">Waits for the end, ${duration(Math.max(0, now.value - began))} so far.</span><${Button} kind="quiet small" onClick=${onStop}>Do not wait<//></p>`;
}
