// The head of an endpoint's pages: its name and state, what one can do with it, and the tabs.
import { html, useLayoutEffect, useRef, useState } from "../dom.js";
import { endpointPath, go, href, place } from "../router.js";
import { pause, resume } from "../endpoint_actions.js";
import { exampleInput } from "../example_input.js";
import { may } from "../session.js";
import { count } from "../format.js";
import { Ahead, Later } from "../load.js";
import { refresh } from "../store.js";
import { withRange } from "../timeline.js";
import { Button } from "./button.js";
import { Failed } from "./card.js";
import { CHAT_FORMS } from "./chat_forms.js";
import { CopyAs, FORMS } from "./copy_as.js";
import { isForwarded } from "./forwarded.js";
import { useKeys } from "./keys.js";
import { EndpointStateTag, endpointState } from "./state.js";
import { attempt } from "./toast.js";

/** @param {{endpoint: Endpoint, health: Health | undefined, error: any, isReadable: boolean}} props `error`: why its health could not be read */
export function EndpointHead({ endpoint, health, error, isReadable }) {
  const [isRunning, setRunning] = useState(false);
  const path = endpointPath(endpoint);
  // The playground has these two for the input that is typed there.
  const isBench = place.value.page === "playground";
  const isLb = isForwarded(endpoint, health);
  const mayRun = !isBench && !isLb && may.jobs(endpoint.id);
  const tabs = [
    { name: "Overview", path: withRange(path), current: place.value.page === "endpoint" },
    ...(!isLb && (may.requests(endpoint.id) || !isReadable) ? [{ name: "Requests", path: `${path}/requests`, current: place.value.page === "requests", count: health && health.jobs.inQueue + health.jobs.inProgress }] : []),
    ...(!isLb && may.jobs(endpoint.id) ? [{ name: "Playground", path: `${path}/playground`, current: place.value.page === "playground", count: null }] : []),
    ...(isReadable
      ? [
          { name: "Workers", path: `${path}/workers`, current: place.value.page === "workers", count: health && health.workers.idle + health.workers.running + health.workers.initializing },
          { name: "Logs", path: `${path}/logs`, current: place.value.page === "logs", count: null },
          { name: "Metrics", path: withRange(`${path}/metrics`), current: place.value.page === "metrics", count: null },
          ...(isLb ? [] : [{ name: "Webhooks", path: `${path}/webhooks`, current: place.value.page === "webhooks", count: null }]),
          { name: "Settings", path: `${path}/settings`, current: place.value.page === "settings", count: null },
        ]
      : []),
  ];
  const step = (/** @type {number} */ by) => {
    const at = tabs.findIndex(({ current }) => current);
    go(tabs[(at + by + tabs.length) % tabs.length].path);
  };
  const strip = useRef(/** @type {HTMLElement | null} */ (null));
  // On a phone, the present tab may be beyond the edge.
  useLayoutEffect(() => {
    const tab = strip.current?.querySelector("[aria-current]");
    if (strip.current && tab instanceof HTMLElement) strip.current.scrollLeft = tab.offsetLeft - strip.current.offsetLeft + tab.offsetWidth / 2 - strip.current.clientWidth / 2;
  }, [place.value.page, tabs.length]);
  useKeys([
    { key: "[", does: "The tab before", act: () => step(-1) },
    { key: "]", does: "The next tab", act: () => step(1) },
  ]);
  const isPaused = endpoint.workersMax === 0;
  const state = endpointState(endpoint, health);
  const isTroubled = isPaused || Boolean(health?.jobs.inQueue) || ["failed", "timedout"].includes(state?.tone ?? "");
  const name = endpoint.slug ?? endpoint.id;
  return html`<div class="page-head">
    <div class="head">
      <h1>${endpoint.name}</h1>
      <${EndpointStateTag} state=${state} />
      ${state?.reason && isTroubled && html`<p class="state-reason">${state.reason}</p>`}
      ${isReadable && html`<p class="sub"><span class="mono">${name}</span><span>version ${endpoint.version}</span><span>${endpoint.workersMin}–${endpoint.workersMax} workers</span></p>`}
      <div class="acts">
        ${isReadable && may.change(endpoint.id) && html`<${Button} kind="quiet" icon=${isPaused ? "play" : "pause"} onClick=${() => attempt(() => (isPaused ? resume(endpoint) : pause(endpoint)), isPaused ? `${endpoint.name} runs again.` : `${endpoint.name} is paused: running jobs finish, others wait.`)}>${isPaused ? "Resume" : "Pause"}<//>`}
        ${!isBench && !isLb && html`<${CopyAs} call=${{ endpoint: name, input: exampleInput(endpoint) ?? {} }} forms=${formsOf(endpoint)} />`}
        ${mayRun && html`<${Button} kind="primary" icon="play" onClick=${() => setRunning(true)}>Run a job<//>`}
      </div>
    </div>
    <nav class="tabs" ref=${strip} aria-label="Pages of this endpoint">${tabs.map((tab) => html`<a key=${tab.name} href=${href(tab.path)} aria-current=${tab.current ? "page" : undefined}>${tab.name}${tab.count ? html`<span class="count">${count(tab.count)}</span>` : null}</a>`)}</nav>
    ${error && !health && html`<${Failed} what="Its state and its counts" error=${error} onRetry=${() => refresh("/v2/")} />`}
    ${isRunning ? html`<${Later} address="./ui/run_dialog.js" props=${{ endpoint, onClose: () => setRunning(false) }} />` : mayRun && html`<${Ahead} address="./ui/run_dialog.js" />`}
  </div>`;
}

/** How its calls are written; for an endpoint with models also a question to the first one. @param {Endpoint} endpoint */
function formsOf(endpoint) {
  const [model] = endpoint.models ?? [];
  const python = CHAT_FORMS.find(({ name }) => name === "Python");
  if (!model || !python) return FORMS;
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], stream: true });
  return [...FORMS, { name: "openai", of: (/** @type {import("./copy_as.js").Call} */ call) => python.of({ ...call, body }) }];
}
