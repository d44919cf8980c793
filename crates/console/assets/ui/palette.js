// Ctrl K: what one can do with the endpoint of the page, pages, endpoints, jobs and workers by their ids, found by typing.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../dom.js";
import { Icon } from "../icons.js";
import { endpointPath, go, leaveBy, place } from "../router.js";
import { pause, resume } from "../endpoint_actions.js";
import { switchTheme, switchZone } from "../prefs.js";
import { useEndpointList } from "../fleet.js";
import { may, signOut } from "../session.js";
import { JOB_STATES } from "../icons.js";
import * as api from "../api.js";
import { count } from "../format.js";
import { GROUPS } from "./frame.js";
import { helpOpen, paletteOpen, takeTypedAhead } from "./keys.js";
import { attempt } from "./toast.js";

/** @typedef {{name: string, hint: string, icon: string, act: () => unknown}} Choice */

/** Most choices that the page knows, and most that the server finds beside them. */
const CHOICES_MAX = 12;

/** What tells a choice from others. @param {Choice} choice */
const keyOf = ({ name, hint }) => name + hint;

/** @returns {Choice[]} */
function fixed() {
  const pages = GROUPS.flatMap(({ items }) => items.filter((item) => item.isShown()))
    .map(({ name, icon, path }) => ({ name, hint: "Page", icon, act: () => go(path) }));
  if (may.everything.value) {
    pages.push({ name: "New endpoint", hint: "Action", icon: "plus", act: () => go("/new-endpoint") });
    pages.push({ name: "Make a key", hint: "Action", icon: "plus", act: () => go("/api-keys?make=1") });
  }
  return [
    ...pages,
    { name: "Switch between light and dark", hint: "Action", icon: "moon", act: switchTheme },
    { name: "Switch between local time and UTC", hint: "Action", icon: "clock", act: switchZone },
    { name: "Show the keys", hint: "Action", icon: "key", act: () => (helpOpen.value = true) },
    { name: "Sign out", hint: "Action", icon: "out", act: () => leaveBy(() => attempt(signOut, "")) },
  ];
}

/** What one can do with the endpoint of the page. @param {Endpoint[]} endpoints @returns {Choice[]} */
function here(endpoints) {
  const named = place.value.params.endpoint;
  const endpoint = endpoints.find(({ id, slug }) => id === named || (slug && slug === named));
  if (!endpoint) return [];
  const { id, name, workersMax } = endpoint;
  const page = (/** @type {string} */ title, /** @type {string} */ icon) => ({ name: title, hint: name, icon, act: () => go(`${endpointPath(endpoint)}/${title.toLowerCase()}`) });
  const isPaused = workersMax === 0;
  const change = { name: isPaused ? "Resume" : "Pause", hint: name, icon: isPaused ? "play" : "pause", act: () => attempt(() => (isPaused ? resume : pause)(endpoint), isPaused ? `${name} runs again.` : `${name} is paused: running jobs finish, others wait.`) };
  return [
    ...(may.jobs(id) && endpoint.type !== "LB" ? [page("Playground", "play")] : []),
    ...(may.read(id) ? [page("Logs", "requests"), page("Metrics", "usage"), page("Settings", "endpoints")] : []),
    ...(may.change(id) && workersMax !== undefined ? [change] : []),
  ];
}

/** The shortest text that the server searches in ids. */
const SEARCH_MIN = 2;
const TYPING_MS = 150;

/** @typedef {{choices: Choice[], unanswered: number, left: number}} Hits `unanswered`: endpoints whose jobs are missing · `left`: older jobs, which are found by the whole id alone */

/** What the server finds by a text. @param {string} text @param {AbortSignal} signal @returns {Promise<Hits>} */
async function searched(text, signal) {
  const { endpoints, jobs, workers, keys, unanswered, searched: compared, of } = await api.json("GET", `/v1/search?q=${encodeURIComponent(text)}`, { signal });
  const choices = [
    ...jobs.map((/** @type {any} */ job) => ({ name: `Job ${job.id}`, hint: `${job.name}, ${JOB_STATES[job.status].word.toLowerCase()}`, icon: "requests", act: () => go(`${endpointPath({ id: job.endpoint })}/requests/${job.id}`) })),
    ...workers.map((/** @type {any} */ worker) => ({ name: `Worker ${worker.id}`, hint: worker.name, icon: "workers", act: () => go(`${endpointPath({ id: worker.endpoint, slug: worker.slug })}/workers/${encodeURIComponent(worker.id)}`) })),
    ...endpoints.map((/** @type {Endpoint} */ endpoint) => ({ name: endpoint.name, hint: `Endpoint ${endpoint.slug ?? endpoint.id}`, icon: "endpoints", act: () => go(endpointPath(endpoint)) })),
    ...keys.map((/** @type {any} */ key) => ({ name: key.name, hint: `API key ${key.id}`, icon: "key", act: () => go("/api-keys") })),
  ];
  return { choices, unanswered, left: jobs.length > 0 || compared === 0 ? 0 : of - compared };
}

/** The choices that have all words of the text, those that begin with it first. @param {Choice[]} choices @param {string} text */
function found(choices, text) {
  const wanted = text.toLowerCase();
  const words = wanted.split(/\s+/).filter(Boolean);
  const has = (/** @type {Choice} */ choice) => words.every((word) => `${choice.name} ${choice.hint}`.toLowerCase().includes(word));
  const rank = (/** @type {Choice} */ choice) => (choice.name.toLowerCase().startsWith(wanted) ? 0 : 1);
  return choices.filter(has).sort((a, b) => rank(a) - rank(b)).slice(0, CHOICES_MAX);
}

/** The choice that Enter runs, or -1. For the same text it is the same one: it is not exchanged for another that comes in its place. @param {Choice[]} choices @param {string} text */
function useChosen(choices, text) {
  const [chosen, choose] = useState({ text, key: "" });
  const key = chosen.text === text ? chosen.key : "";
  const setAt = (/** @type {number} */ index) => choose({ text, key: keyOf(choices[index]) });
  useLayoutEffect(() => {
    if (!key && choices.length > 0) setAt(0);
  }, [key, choices]);
  return { at: key ? choices.findIndex((choice) => keyOf(choice) === key) : 0, setAt };
}

/** The palette while it is open. */
export default function Palette() {
  const [text, setText] = useState(takeTypedAhead);
  const [hits, setHits] = useState(/** @type {Hits & {text: string}} */ ({ text: "", choices: [], unanswered: 0, left: 0 }));
  const [failed, setFailed] = useState("");
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const endpoints = useEndpointList(Infinity).data ?? [];
  const choices = useMemo(() => {
    const all = endpoints.map((/** @type {Endpoint} */ endpoint) => ({ name: endpoint.name, hint: `Endpoint ${endpoint.slug ?? endpoint.id}`, icon: "endpoints", act: () => go(endpointPath(endpoint)) }));
    const known = found([...here(endpoints), ...all, ...fixed()], text);
    const isNew = (/** @type {Choice} */ hit) => known.every((choice) => keyOf(choice) !== keyOf(hit));
    // They come later: what is read, and about to be pressed, stays where it is.
    return hits.text === text ? [...known, ...hits.choices.filter(isNew).slice(0, CHOICES_MAX)] : known;
  }, [text, hits, endpoints]);
  const { at, setAt } = useChosen(choices, text);
  // With the layout: what is typed next belongs to the palette.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const dialog = ref.current;
    dialog?.showModal();
    return () => {
      // While it is open, nothing else takes the focus.
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  useEffect(() => {
    setFailed("");
    const wanted = text.trim();
    if (wanted.length < SEARCH_MIN) return;
    const stop = new AbortController();
    const timer = setTimeout(() => searched(wanted, stop.signal).then((late) => setHits({ text, ...late }), ({ message }) => !stop.signal.aborted && setFailed(message)), TYPING_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  const close = () => (paletteOpen.value = false);
  const choose = (/** @type {Choice | undefined} */ choice) => {
    if (!choice) return;
    close();
    void choice.act();
  };
  const press = (/** @type {KeyboardEvent} */ event) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) {
      event.preventDefault();
      if (choices.length === 0) return;
      const next = (at + step + choices.length) % choices.length;
      setAt(next);
      ref.current?.querySelectorAll("li")[next].scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(choices[at]);
    }
  };
  return html`<dialog ref=${ref} class="palette" aria-label="Find anything" onCancel=${close} onMouseDown=${(/** @type {MouseEvent} */ event) => event.target === ref.current && close()}>
    <div class="palette-box">
      <div class="palette-field"><${Icon} name="search" />
        <input autofocus role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${choices[at] ? `choice-${at}` : undefined} aria-label="Find anything"
          placeholder="A page, an endpoint, a key, or a part of a job's or worker's id" autocomplete="off" spellcheck=${false} value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} onKeyDown=${press} /></div>
      <ul id="palette-list" role="listbox" aria-label="Found">
        ${choices.map((choice, index) => html`<li key=${keyOf(choice)} id=${`choice-${index}`} role="option" aria-selected=${index === at} onMouseMove=${() => setAt(index)} onClick=${() => choose(choice)}><${Icon} name=${choice.icon} /><span class="choice-name">${choice.name}</span><span class="choice-hint">${choice.hint}</span></li>`)}
      </ul>
      ${hits.text === text && hits.unanswered > 0 && html`<p class="palette-none" role="status">${count(hits.unanswered)} ${hits.unanswered === 1 ? "endpoint did" : "endpoints did"} not answer: jobs can be missing.</p>`}
      ${hits.text === text && hits.left > 0 && html`<p class="palette-none" role="status">${count(hits.left)} older ${hits.left === 1 ? "job is" : "jobs are"} found only by the whole id.</p>`}
      ${failed && html`<p class="palette-none" role="alert">Jobs, workers and keys could not be searched. ${failed}</p>`}
      ${choices.length === 0 && !failed && html`<p class="palette-none">Nothing has this name. A job is found by the beginning or the end of its id, a worker by a part of it.</p>`}
    </div>
  </dialog>`;
}
