// The memory, the processors and the GPUs of one worker, as this page has seen them since it was opened.
import { html, useEffect, useState } from "../dom.js";
import { percent, rate, size } from "../format.js";
import { Chart } from "./chart.js";

const SAMPLES_MAX = 600;

/** @typedef {{at: number, memory: number | null, processors: number | null, gpu: number | null, gpuMemory: number | null}} Sample `at` in seconds */

/** @param {{worker: WorkerRecord, at: number}} props `at`: when the worker was read, in ms */
export function WorkerResources({ worker, at }) {
  const [samples, setSamples] = useState(/** @type {Sample[]} */ ([]));
  useEffect(() => {
    const [uses, memories] = [known(worker, "useRatio"), known(worker, "memoryUsedBytes")];
    if (worker.rssBytes === undefined && worker.cpuRatio === undefined && uses.length + memories.length === 0) return;
    const sample = { at: at / 1000, memory: worker.rssBytes ?? null, processors: worker.cpuRatio ?? null, gpu: uses.length > 0 ? sum(uses) / uses.length : null, gpuMemory: memories.length > 0 ? sum(memories) : null };
    setSamples((before) => [...before, sample].slice(-SAMPLES_MAX));
  }, [at]);
  if (samples.length === 0) return null;
  const t = samples.map((sample) => sample.at);
  const note = "since this page was opened";
  const has = (/** @type {"gpu" | "gpuMemory"} */ name) => samples.some((sample) => sample[name] !== null);
  return html`<div class="two">
    <${Chart} title="Memory" note=${note} t=${t} unit=${size} lines=${[{ name: "used", tone: "accent", values: samples.map(({ memory }) => memory), isFilled: true }]} />
    <${Chart} title="Processors" note=${note} t=${t} unit=${rate} lines=${[{ name: "busy", tone: "running", values: samples.map(({ processors }) => processors), isFilled: true }]} />
    ${has("gpu") && html`<${Chart} title="GPUs" note=${note} t=${t} unit=${(/** @type {number} */ ratio) => `${percent(ratio)} %`} lines=${[{ name: "busy", tone: "running", values: samples.map(({ gpu }) => gpu), isFilled: true }]} />`}
    ${has("gpuMemory") && html`<${Chart} title="Memory of GPUs" note=${note} t=${t} unit=${size} lines=${[{ name: "used", tone: "accent", values: samples.map(({ gpuMemory }) => gpuMemory), isFilled: true }]} />`}
  </div>`;
}

/** What the driver says of the GPUs of a worker. @param {WorkerRecord} worker @param {string} name @returns {number[]} */
const known = (worker, name) => (worker.gpus ?? []).map((/** @type {any} */ gpu) => gpu[name]).filter((/** @type {unknown} */ value) => typeof value === "number");

/** @param {number[]} values */
const sum = (values) => values.reduce((total, value) => total + value, 0);
