// The memory and the processors of one worker, as this page has seen them since it was opened.
import { html, useEffect, useState } from "../dom.js";
import { rate, size } from "../format.js";
import { Chart } from "./chart.js";

const SAMPLES_MAX = 600;

/** @typedef {{at: number, memory: number | null, processors: number | null}} Sample `at` in seconds */

/** @param {{worker: any, at: number}} props `at`: when the worker was read, in ms */
export function WorkerResources({ worker, at }) {
  const [samples, setSamples] = useState(/** @type {Sample[]} */ ([]));
  useEffect(() => {
    if (worker.rssBytes === undefined && worker.cpuRatio === undefined) return;
    setSamples((before) => [...before, { at: at / 1000, memory: worker.rssBytes ?? null, processors: worker.cpuRatio ?? null }].slice(-SAMPLES_MAX));
  }, [at]);
  if (samples.length === 0) return null;
  const t = samples.map((sample) => sample.at);
  const note = "since this page was opened";
  return html`<div class="two">
    <${Chart} title="Memory" note=${note} t=${t} unit=${size} lines=${[{ name: "used", tone: "accent", values: samples.map(({ memory }) => memory), isFilled: true }]} />
    <${Chart} title="Processors" note=${note} t=${t} unit=${rate} lines=${[{ name: "busy", tone: "running", values: samples.map(({ processors }) => processors), isFilled: true }]} />
  </div>`;
}
