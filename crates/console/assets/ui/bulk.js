// What one can do with many jobs: those that are chosen, or all that match; and how far the tasks are.
import { html, useEffect, useMemo, useState } from "../dom.js";
import { said } from "../api.js";
import { countJobs, endTask, partsOfAll, partsOfRows, startTasks, useTasks, VERBS } from "../bulk.js";
import { count } from "../format.js";
import { countOf, useJobCounts } from "../job_counts.js";
import { SEARCHED_MAX } from "../job_source.js";
import { may } from "../session.js";
import { Button } from "./button.js";
import { Dialog } from "./dialog.js";
import { attempt, toast } from "./toast.js";

/** @typedef {import("../bulk.js").Verb} Verb */
/** @typedef {import("../bulk.js").Part} Part */
/** @typedef {import("../request_list.js").RequestList} RequestList */
/** @typedef {{number: number, isCounted: boolean}} Counted */

const ACTS = /** @type {Verb[]} */ (["cancel", "retry", "delete"]);

/** A number of jobs, also if there may be more. @param {Counted} counted */
const numberOf = ({ number, isCounted }) => `${isCounted ? "" : "at least "}${count(number)}`;

/** @param {number} number */
const jobs = (number) => (number === 1 ? "job" : "jobs");

/** Why the list can not be changed as a whole, or "". @param {RequestList} list @param {Endpoint[]} endpoints those whose jobs the key may change */
function whyNotAll(list, endpoints) {
  if (endpoints.length > SEARCHED_MAX) return `A task for all that match is for ${SEARCHED_MAX} endpoints at most. Open one endpoint's requests.`;
  return partsOfAll([], list.tokens, list.status, "delete") ? "" : "The server has no condition for this number of tries: choose loaded rows.";
}

/** How many jobs match the filter of a list; null while it is not known. @param {RequestList} list */
function useMatching(list) {
  const counts = useJobCounts(list.endpoints);
  if (list.tokens.length === 0) return countOf(counts, list.status);
  return list.isComplete ? list.rows.filter(({ hasLeft, job }) => !hasLeft && !job.isGone).length : null;
}

/** What is chosen, and what can be done with it. @param {{list: RequestList, children?: any}} props */
export function BulkBar({ list, children }) {
  const matching = useMatching(list);
  const { selection } = list;
  const [asked, setAsked] = useState(/** @type {Verb | null} */ (null));
  const isAll = selection.isAll.value;
  const endpoints = list.endpoints.filter(({ id }) => may.jobs(id));
  const chosen = list.rows.filter(({ job, endpoint }) => selection.ids.value.has(job.id) && may.jobs(endpoint.id));
  const partsOf = (/** @type {Verb} */ verb) => (isAll ? (partsOfAll(endpoints, list.tokens, list.status, verb) ?? []) : partsOfRows(chosen, verb));
  const counted = useCounted(isAll, partsOf);
  const numbers = /** @type {Record<Verb, Counted | undefined>} */ (isAll ? counted : Object.fromEntries(ACTS.map((verb) => [verb, { number: chosen.filter(({ job }) => VERBS[verb].states.includes(job.status)).length, isCounted: true }])));
  // Those that can be cancelled and those that can be deleted are all.
  const all = isAll && counted.cancel && counted.delete ? { number: counted.cancel.number + counted.delete.number, isCounted: counted.cancel.isCounted && counted.delete.isCounted } : null;
  const why = whyNotAll(list, endpoints);
  const done = () => {
    setAsked(null);
    selection.none();
  };
  return html`<div class="selection" role="group" aria-label="Chosen jobs">
    <b>${isAll ? (all ? `All ${numberOf(all)} that match` : "All that match") : `${count(selection.ids.value.size)} chosen`}</b>
    ${!isAll && endpoints.length > 0 && html`<${Button} kind="quiet small" disabled=${Boolean(why)} why=${why} onClick=${() => (selection.isAll.value = true)}>${matching === null ? "All that match" : `All ${count(matching)} that match`}<//>`}
    ${!isAll && list.rows.length > selection.ids.value.size && list.rows.length !== matching && html`<${Button} kind="quiet small" onClick=${() => selection.chooseLoaded(list.rows)}>All ${count(list.rows.length)} loaded<//>`}
    ${ACTS.filter((verb) => numbers[verb]?.number).map((verb) => html`<${Button} key=${verb} kind=${verb === "retry" ? "small" : "danger small"} onClick=${() => setAsked(verb)}>${VERBS[verb].word} ${numberOf(/** @type {Counted} */ (numbers[verb]))}<//>`)}
    ${children}
    <${Button} kind="quiet small" onClick=${done}>Choose none<//>
    ${asked && html`<${Sure} verb=${asked} parts=${partsOf(asked)} onClose=${() => setAsked(null)} onDone=${done} />`}
  </div>`;
}

/** How many of all that match each task would change. @param {boolean} isAll @param {(verb: Verb) => Part[]} partsOf @returns {Partial<Record<Verb, Counted>>} */
function useCounted(isAll, partsOf) {
  const [counted, setCounted] = useState(/** @type {Partial<Record<Verb, Counted>>} */ ({}));
  useEffect(() => {
    if (!isAll) return undefined;
    const stop = new AbortController();
    setCounted({});
    Promise.all(ACTS.map(async (verb) => [verb, await countJobs(verb, partsOf(verb), stop.signal)]))
      .then((numbers) => setCounted(Object.fromEntries(numbers)))
      .catch((failed) => !stop.signal.aborted && toast(said(failed), "bad"));
    return () => stop.abort();
  }, [isAll]);
  return counted;
}

/**
 * Asks with the effect in numbers, which the server counts.
 * @param {{verb: Verb, parts: Part[], onClose: () => void, onDone: () => void}} props
 */
function Sure({ verb, parts, onClose, onDone }) {
  // As they were counted: rows change while their tasks run.
  const [all] = useState(parts);
  const [left, setLeft] = useState(parts);
  const [isWaiting, setWaiting] = useState(false);
  const [counted, setCounted] = useState(/** @type {Counted | null} */ (null));
  const [error, setError] = useState("");
  const stop = useMemo(() => new AbortController(), []);
  useEffect(() => {
    countJobs(verb, all, stop.signal)
      .then(setCounted)
      .catch((failed) => !stop.signal.aborted && setError(said(failed)));
    return () => stop.abort();
  }, []);
  const start = async () => {
    setError("");
    try {
      await startTasks(verb, left, { signal: stop.signal, onBegun: setLeft, onWait: () => setWaiting(true) });
      toast(all.length === 1 ? "The task has begun. It goes on if you leave this page." : `${count(all.length)} tasks have begun. They go on if you leave this page.`);
      onDone();
    } catch (failed) {
      if (!stop.signal.aborted) setError(said(failed));
    } finally {
      setWaiting(false);
    }
  };
  const { word, does, text } = VERBS[verb];
  const names = [...new Set(all.map(({ endpoint }) => endpoint.name))];
  const of = names.length === 1 ? `of ${names[0]}` : `of ${count(names.length)} endpoints`;
  const title = counted ? `${word} ${numberOf(counted)} ${jobs(counted.number)} ${of}?` : `${word} jobs ${of}?`;
  const isNone = counted?.number === 0;
  return html`<${Dialog} title=${title} onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>Keep them<//><${Button} kind=${verb === "retry" ? "primary" : "danger"} disabled=${!counted || isNone} why=${isNone ? "There is no such job." : "The jobs are counted."} onClick=${start}>${does}<//>`}>
    <p>${counted === null && !error ? "Counting the jobs…" : isNone ? "No job is left in a state for this." : `${text} Jobs that come later are left as they are.`}</p>
    ${(isWaiting || left.length < all.length) && html`<p role="status">${begunOf(all.length - left.length, all.length, isWaiting)}</p>`}
    ${error && html`<p class="field-error" role="alert">${error}</p>`}
  <//>`;
}

/** How many tasks have begun, in a sentence. @param {number} number @param {number} all @param {boolean} isWaiting */
function begunOf(number, all, isWaiting) {
  const begun = `${count(number)} of ${count(all)} ${all === 1 ? "task has" : "tasks have"} begun.`;
  return isWaiting ? `${begun} The server runs no more at a time: the next one begins when another has ended, while this stays open.` : begun;
}

/** The tasks of endpoints that run or ended lately. @param {{endpoints: Endpoint[]}} props */
export function BulkTasks({ endpoints }) {
  return useTasks(endpoints).map((task) => html`<${Row} key=${task.id} task=${task} endpoint=${endpoints.find(({ id }) => id === task.endpoint)} isOfMany=${endpoints.length > 1} />`);
}

/** @param {{task: import("../bulk.js").Task, endpoint: Endpoint, isOfMany: boolean}} props */
function Row({ task, endpoint, isOfMany }) {
  const { going, done } = VERBS[task.do];
  const isRunning = task.state === "running";
  const changed = task.done + task.failed;
  const left = task.failed > 0 ? `, ${count(task.failed)} left as they were` : "";
  const text = isRunning ? `${going}: ${count(changed)} of ${count(task.matches)}` : `${count(task.done)} ${jobs(task.done)} ${done}${left}${task.state === "stopped" ? "; stopped" : ""}`;
  return html`<li class="task">
    <span>${isOfMany ? `${endpoint?.name ?? task.endpoint}: ` : ""}${text}</span>
    <progress aria-label=${going} max=${Math.max(1, isRunning ? task.matches : changed)} value=${isRunning ? changed : Math.max(1, changed)}></progress>
    ${may.jobs(task.endpoint) && html`<${Button} kind="quiet small" onClick=${() => attempt(() => endTask(task), "")}>${isRunning ? "Stop" : "Dismiss"}<//>`}
  </li>`;
}
