// The list of requests as a grid: rows, the pill for news, the row of the keyboard, and selection.
import { html, useEffect, useRef, useState } from "../dom.js";
import { endpointPath, go } from "../router.js";
import * as api from "../api.js";
import { count, duration, moment, ago, shortId } from "../format.js";
import { ENDED } from "../icons.js";
import { may } from "../session.js";
import { now } from "../store.js";
import { Button } from "./button.js";
import { Icon } from "../icons.js";
import { JobBar, timesOf } from "./job_bar.js";
import { useKeys } from "./keys.js";
import { Dialog } from "./dialog.js";
import { JobState } from "./state.js";
import { toast } from "./toast.js";
import { VirtualRows } from "./virtual_rows.js";

const LOAD_BEFORE_END = 60;

/** @param {MediaQueryList} query */
function useMedia(query) {
  const [isTrue, setTrue] = useState(query.matches);
  useEffect(() => {
    const changed = () => setTrue(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return isTrue;
}

const PHONE = matchMedia("(max-width: 760px)");
const TOUCH = matchMedia("(pointer: coarse)");

/** @param {{list: import("../request_list.js").RequestList, isOfAll: boolean}} props */
export function RequestGrid({ list, isOfAll }) {
  // The list is changed in place: its version says that it has.
  const version = list.version.value;
  const isPhone = useMedia(PHONE);
  const isTouch = useMedia(TOUCH);
  const rowHeight = isPhone ? 58 : isTouch ? 44 : 36;
  const [at, setAt] = useState(-1);
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  const total = list.rows.length;
  const added = useAdded(list);
  const open = (/** @type {number} */ index) => {
    const row = list.rows[index];
    if (row) go(`${endpointPath(row.endpoint)}/requests/${row.job.id}`);
  };
  const choose = (/** @type {number} */ index) => {
    const id = list.rows[index]?.job.id;
    if (!id) return;
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const step = (/** @type {number} */ by) => setAt(Math.max(0, Math.min(total - 1, at + by)));
  useKeys([
    { key: "j", does: "The next row", act: () => step(1) },
    { key: "k", does: "The row before", act: () => step(-1) },
    { key: "Enter", does: "Open the row", act: () => open(at) },
    { key: "x", does: "Choose the row", act: () => choose(at) },
    { key: "Escape", does: "Choose none", act: () => setChosen(new Set()) },
  ]);
  const seen = (/** @type {number} */ first, /** @type {number} */ end, /** @type {boolean} */ isTop) => {
    list.isAtTop = isTop;
    list.onSeen(first, end);
    if (isTop && list.news.length > 0) list.showNews();
    if (end > total - LOAD_BEFORE_END) void list.more();
  };
  const row = (/** @type {number} */ index, /** @type {string} */ transform) =>
    html`<${Row} row=${list.rows[index]} version=${version} index=${index} transform=${transform} isOfAll=${isOfAll} isAt=${index === at || chosen.has(list.rows[index]?.job.id)} onOpen=${() => open(index)} onChoose=${() => choose(index)} />`;
  const columns = isOfAll ? 9 : 8;
  const names = /** @type {[string, string][]} */ ([["State", ""], ["Job", ""], ...(isOfAll ? [["Endpoint", "opt2"]] : []), ["Worker", "opt"], ["Waited, then ran", "opt2"], ["Waited", "num opt2"], ["Ran", "num"], ["Age", "num"], ["Tries", "num opt"]]);
  const head = html`<div role="rowgroup" class="grid-top"><div class="grid-head" role="row" aria-rowindex="1">${names.map(([name, cls]) => html`<span key=${name} role="columnheader" class=${cls}>${name}</span>`)}</div></div>`;
  return html`${list.news.length > 0 && html`<button type="button" class="pill" onClick=${() => {
      list.showNews();
      const box = document.querySelector(".grid-scroll");
      if (box) box.scrollTop = 0;
    }}><${Icon} name="up" />${count(list.news.length)} new</button>`}
    <${VirtualRows} count=${total} rowHeight=${rowHeight} label="Requests" columns=${columns} at=${at} head=${head} row=${row} onSeen=${seen} keep=${added} />
    <div class="grid-foot">
      <span>${count(total)} loaded${list.isComplete ? ", all there are" : ""}</span>
      <${Searched} list=${list} version=${version} />
      ${list.error && html`<span class="tone-failed">${list.error.message}</span>`}
      <span class="grow"></span>
      ${chosen.size > 0 && html`<${Chosen} list=${list} chosen=${chosen} onDone=${() => setChosen(new Set())} />`}
    </div>`;
}

/** How many rows were put above the others so far. @param {import("../request_list.js").RequestList} list */
function useAdded(list) {
  const state = useRef({ first: "", added: 0 });
  const first = list.rows[0]?.job.id ?? "";
  if (state.current.first && first !== state.current.first) {
    const moved = list.rows.findIndex(({ job }) => job.id === state.current.first);
    if (moved > 0) state.current.added += moved;
  }
  state.current.first = first;
  return state.current.added;
}

/** How far a search went. @param {{list: import("../request_list.js").RequestList, version: number}} props */
function Searched({ list }) {
  if (list.tokens.length === 0) return null;
  const { searched, of } = list.progress();
  return html`<span>searched ${count(searched)} of ${count(of)} jobs</span>`;
}

/** @param {{row: import("../request_list.js").Row | undefined, version: number, index: number, transform: string, isOfAll: boolean, isAt: boolean, onOpen: () => void, onChoose: () => void}} props */
function Row({ row, index, transform, isOfAll, isAt, onOpen, onChoose }) {
  if (!row) return null;
  const { job, endpoint } = row;
  const { waited, ran } = timesOf(job);
  const created = moment(job.createdAt);
  const press = (/** @type {MouseEvent} */ event) => (event.shiftKey || event.ctrlKey || event.metaKey ? onChoose() : onOpen());
  return html`<div role="row" id=${`row-${index}`} aria-rowindex=${index + 2} aria-selected=${isAt} class=${`vrow ${isAt ? "at" : ""} ${job.isGone || row.hasLeft ? "gone" : ""} ${row.isFresh ? "fresh" : ""}`} style=${{ transform }} onClick=${press}>
    <span role="gridcell" class="c-state"><${JobState} status=${job.status} /></span>
    <span role="gridcell" class="c-job mono" title=${job.id}>${shortId(job.id)}</span>
    ${isOfAll && html`<span role="gridcell" class="opt2">${endpoint.name}</span>`}
    <span role="gridcell" class="mono dim opt">${job.workerId ? shortId(job.workerId) : "–"}</span>
    <span role="gridcell" class="opt2"><${JobBar} job=${job} /></span>
    <span role="gridcell" class="num opt2">${duration(waited)}</span>
    <span role="gridcell" class="num c-ran">${job.status === "IN_QUEUE" ? "–" : duration(ran)}</span>
    <span role="gridcell" class="num dim c-age">${created === null ? "–" : ago(now.value - created)}</span>
    <span role="gridcell" class="num dim opt">${(job.retries ?? 0) + 1}</span>
  </div>`;
}

/** What one can do with the chosen rows. @param {{list: import("../request_list.js").RequestList, chosen: Set<string>, onDone: () => void}} props */
function Chosen({ list, chosen, onDone }) {
  const [asked, setAsked] = useState(/** @type {"" | "cancel" | "retry"} */ (""));
  const rows = list.rows.filter(({ job, endpoint }) => chosen.has(job.id) && may.jobs(endpoint.id));
  const able = { cancel: rows.filter(({ job }) => !ENDED.includes(job.status)), retry: rows.filter(({ job }) => ["FAILED", "TIMED_OUT"].includes(job.status)) };
  const act = async (/** @type {"cancel" | "retry"} */ verb) => {
    const outcomes = await Promise.allSettled(able[verb].map(({ job, endpoint }) => api.json("POST", `/v2/${encodeURIComponent(endpoint.id)}/${verb}/${job.id}`)));
    const done = outcomes.filter(({ status }) => status === "fulfilled").length;
    const failed = outcomes.length - done;
    toast(`${count(done)} ${verb === "cancel" ? "cancelled" : "queued again"}${failed ? `, ${count(failed)} refused` : ""}.`, failed ? "bad" : "good");
    setAsked("");
    onDone();
    await list.readNews();
  };
  const dialog = asked && html`<${Dialog} title=${asked === "cancel" ? `Cancel ${count(able.cancel.length)} jobs` : `Retry ${count(able.retry.length)} jobs`} onClose=${() => setAsked("")}
    actions=${html`<${Button} onClick=${() => setAsked("")}>Keep them<//><${Button} kind="primary" onClick=${() => act(asked)}>${asked === "cancel" ? "Cancel the jobs" : "Retry the jobs"}<//>`}>
    <p>${asked === "cancel" ? `${count(able.cancel.filter(({ job }) => job.status === "IN_PROGRESS").length)} of them run now and are stopped.` : "They get the same input, and their outputs so far are removed."} ${count(chosen.size - able[asked].length)} of the chosen ones are left as they are.</p>
  <//>`;
  return html`<span class="selection"><span>${count(chosen.size)} chosen</span>
    ${able.cancel.length > 0 && html`<${Button} kind="danger small" onClick=${() => setAsked("cancel")}>Cancel ${count(able.cancel.length)}<//>`}
    ${able.retry.length > 0 && html`<${Button} kind="small" onClick=${() => setAsked("retry")}>Retry ${count(able.retry.length)}<//>`}
    <${Button} kind="quiet small" onClick=${onDone}>Choose none<//>${dialog}</span>`;
}
