// The list of requests as a grid: rows, the pill for news, the row of the keyboard, and selection.
import { html, useRef, useState } from "../dom.js";
import { said } from "../api.js";
import { count, duration, moment, ago, shortId, size } from "../format.js";
import { now } from "../store.js";
import { Button } from "./button.js";
import { Icon } from "../icons.js";
import { JobBar, timesOf } from "./job_bar.js";
import { useKeys } from "./keys.js";
import { BulkBar } from "./bulk.js";
import { DownloadButtons } from "./download.js";
import { JobState } from "./state.js";
import { PHONE, TOUCH, useMedia } from "./use_media.js";
import { VirtualRows } from "./virtual_rows.js";

const LOAD_BEFORE_END = 60;

/** The further columns: their headings and widths. @type {Record<string, {title: string, width: string, cls: string}>} */
const FURTHER = {
  key: { title: "Key", width: "132px", cls: "opt mono" },
  size: { title: "In, out", width: "128px", cls: "opt num" },
  webhook: { title: "Webhook", width: "84px", cls: "opt" },
};
const CALLS = /** @type {Record<string, [string, string]>} */ ({ DELIVERED: ["accepted", ""], PENDING: ["pending", "tone-queued"], FAILED: ["given up", "tone-failed"] });

/**
 * @param {{list: import("../request_list.js").RequestList, isOfAll: boolean, columns: string[], download: ReturnType<typeof import("./download.js").useDownload>,
 *   openId: string | null, onOpen: (row: import("../request_list.js").Row) => void}} props `openId`: the job that is shown beside the list */
export function RequestGrid({ list, isOfAll, columns: further, download, openId, onOpen }) {
  // The list is changed in place: its version says that it has.
  const version = list.version.value;
  const isPhone = useMedia(PHONE);
  const isTouch = useMedia(TOUCH);
  const rowHeight = isPhone ? 58 : isTouch ? 44 : 36;
  const { selection } = list;
  const total = list.rows.length;
  const added = useAdded(list);
  const { at, id: atId, setAt } = useRowAt(list);
  const open = (/** @type {number} */ index) => {
    const row = list.rows[index];
    if (!row) return;
    setAt(index);
    onOpen(row);
  };
  const choose = (/** @type {number} */ index, isRange = false) => {
    selection.press(list.rows, index, isRange);
    setAt(index);
  };
  const step = (/** @type {number} */ by) => setAt(Math.max(0, Math.min(total - 1, at + by)));
  useKeys([
    { key: "j", does: "The next row", act: () => step(1) },
    { key: "k", does: "The row before", act: () => step(-1) },
    { key: "Enter", does: "Open the row", act: () => open(at) },
    { key: "x", does: "Choose the row", act: () => choose(at) },
    { key: "X", does: "Choose the rows from the last one on", act: () => choose(at, true) },
  ]);
  const seen = (/** @type {number} */ first, /** @type {number} */ end, /** @type {boolean} */ isTop) => {
    const hasComeToTop = isTop && !list.isAtTop;
    list.isAtTop = isTop;
    list.onSeen(first, end);
    if (hasComeToTop && list.news.length > 0) list.showNews();
    if (end > total - LOAD_BEFORE_END) void list.more();
  };
  /** What a press of a row does. The object stays the same, so that a row that did not change is not rendered. */
  const acts = useRef({ open, choose });
  acts.current = { open, choose };
  const row = (/** @type {number} */ index, /** @type {string} */ transform) => {
    const found = list.rows[index];
    // The list may have become shorter since it was rendered.
    if (!found) return null;
    const { job, endpoint, isFresh, hasLeft } = found;
    const isChosen = selection.isAll.value ? !hasLeft : selection.ids.value.has(job.id);
    return html`<${Row} job=${job} endpoint=${endpoint} isFresh=${isFresh} hasLeft=${hasLeft} index=${index} transform=${transform} isOfAll=${isOfAll} further=${further} isAt=${index === at} isOpen=${openId !== null && job.id === openId} isChosen=${isChosen} isChoosing=${selection.isChoosing.value} acts=${acts} />`;
  };
  const columns = (isOfAll ? 9 : 8) + further.length;
  const names = /** @type {[string, string][]} */ ([["State", ""], ["Job", ""], ...(isOfAll ? [["Endpoint", "opt2"]] : []), ["Worker", "opt"], ["Waited, then ran", "opt2"], ["Waited", "num opt2"], ["Ran", "num"], ["Age", "num"], ["Tries", "num opt"], ...further.map((name) => [FURTHER[name].title, FURTHER[name].cls.replace(" mono", "")])]);
  const head = html`<div role="rowgroup" class="grid-top"><div class="grid-head" role="row" aria-rowindex="1">${names.map(([name, cls]) => html`<span key=${name} role="columnheader" class=${cls}>${name}</span>`)}</div></div>`;
  return html`<div class="grid-further" style=${{ "--further": further.map((name) => FURTHER[name].width).join(" ") }}>${list.news.length > 0 && !list.isAtTop && html`<button type="button" class="pill" onClick=${() => {
      list.showNews();
      const box = /** @type {HTMLElement | null} */ (document.querySelector(".grid-scroll"));
      if (!box) return;
      box.scrollTop = 0;
      // The button goes away.
      box.focus();
    }}><${Icon} name="up" />${count(list.news.length)} new</button>`}
    <${VirtualRows} count=${total} rowHeight=${rowHeight} label="Requests" columns=${columns} at=${at} atId=${atId && nodeOf(atId)} head=${head} row=${row} onSeen=${seen} keep=${added} /></div>
    <div class="grid-foot">
      <span>${count(total)} loaded${list.isComplete ? ", all there are" : list.isFull() ? ", the most that a list shows: narrow the filter for older ones" : ""}</span>
      <${Searched} list=${list} version=${version} />
      ${list.error && html`<span class="tone-failed">${said(list.error)}</span>`}
      <span class="grow"></span>
      ${selection.isSome()
        ? html`<${BulkBar} list=${list}><${DownloadButtons} download=${download} chosen=${selection.isAll.value ? null : selection.ids.value} /><//>`
        : selection.isChoosing.value && html`<div class="selection" role="group" aria-label="Chosen jobs"><b>Press the jobs to choose</b><${Button} kind="quiet small" onClick=${() => selection.none()}>Done<//></div>`}
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

/** The id of the node of a row. No other list of a page has the same. @param {string} job its id */
const nodeOf = (job) => `job-${job}`;

/** The row of the keyboard, or -1, and its job: the row of the same job, also when others come above it, or when it leaves the list for a moment. @param {import("../request_list.js").RequestList} list */
function useRowAt(list) {
  const [id, setId] = useState("");
  const at = useRef(-1);
  if (id && list.rows[at.current]?.job.id !== id) at.current = list.rows.findIndex(({ job }) => job.id === id);
  const setAt = (/** @type {number} */ index) => {
    at.current = list.rows[index] ? index : -1;
    setId(list.rows[index]?.job.id ?? "");
  };
  return { at: at.current, id, setAt };
}

/** How far a search went. @param {{list: import("../request_list.js").RequestList, version: number}} props */
export function Searched({ list }) {
  if (list.tokens.length === 0) return null;
  const { searched, of } = list.progress();
  const go = () => {
    list.isHalted = list.isLoading;
    if (!list.isLoading) void list.more();
  };
  return html`<span>searched ${count(searched)} of ${count(of)} jobs</span>${!list.isComplete && !list.isFull() && html`<${Button} kind="quiet small" onClick=${go}>${list.isLoading ? "Stop" : "Go on"}<//>`}`;
}

/**
 * @param {{job: any, endpoint: Endpoint, isFresh: boolean, hasLeft?: boolean, index: number, transform: string, isOfAll: boolean, further: string[], isAt: boolean, isOpen: boolean, isChosen: boolean, isChoosing: boolean,
 *   acts: {current: {open: (index: number) => void, choose: (index: number, isRange: boolean) => void}}}} props
 */
function Row({ job, endpoint, isFresh, hasLeft, index, transform, isOfAll, further, isAt, isOpen, isChosen, isChoosing, acts }) {
  const { waited, ran } = timesOf(job);
  const created = moment(job.createdAt);
  const press = (/** @type {MouseEvent} */ event) => (isChoosing || event.shiftKey || event.ctrlKey || event.metaKey ? acts.current.choose(index, event.shiftKey) : acts.current.open(index));
  return html`<div role="row" id=${nodeOf(job.id)} aria-rowindex=${index + 2} aria-selected=${isChosen} aria-current=${isOpen ? "true" : undefined} class=${`vrow ${isAt ? "at" : ""} ${isOpen ? "opened" : ""} ${isChosen ? "chosen" : ""} ${job.isGone || hasLeft ? "gone" : ""} ${isFresh ? "fresh" : ""}`} style=${{ transform }} onClick=${press}>
    <span role="gridcell" class="c-state"><${JobState} status=${job.status} /></span>
    <span role="gridcell" class="c-job mono" title=${job.id}>${shortId(job.id)}</span>
    ${isOfAll && html`<span role="gridcell" class="c-endpoint">${endpoint.name}</span>`}
    <span role="gridcell" class="mono dim opt">${job.workerId ? shortId(job.workerId) : "–"}</span>
    <span role="gridcell" class="opt2"><${JobBar} job=${job} /></span>
    <span role="gridcell" class="num opt2">${duration(waited)}</span>
    <span role="gridcell" class="num c-ran">${job.status === "IN_QUEUE" ? "–" : duration(ran)}</span>
    <span role="gridcell" class="num dim c-age">${created === null ? "–" : ago(now.value - created)}</span>
    <span role="gridcell" class="num dim opt">${(job.retries ?? 0) + 1}</span>
    ${further.map((name) => html`<span role="gridcell" key=${name} class=${`dim ${FURTHER[name].cls}`}>${furtherOf(job, name)}</span>`)}
  </div>`;
}

/** What a further column shows of a job. @param {any} job @param {string} name */
function furtherOf(job, name) {
  if (name === "key") return job.key ?? "–";
  if (name === "size") return job.inputBytes === undefined ? "–" : `${size(job.inputBytes)}, ${job.outputBytes === null || job.outputBytes === undefined ? "–" : size(job.outputBytes)}`;
  // A job that was told of, and not read since, has none.
  if (job.webhook === undefined) return "";
  const [word, tone] = CALLS[job.webhook] ?? ["–", ""];
  return html`<span class=${tone}>${word}</span>`;
}
