// The chunks of a stream one by one, the newest first: when each came, how large it is, its metrics, and all of it when pressed.
import { html, useState } from "../dom.js";
import { count, duration, moment, size, visible } from "../format.js";
import { metricsOf, outputOf } from "../job_follow.js";
import { write, writeLine } from "../json_text.js";
import { Button } from "./button.js";
import { Dialog } from "./dialog.js";
import { milestones } from "./life.js";
import { Moment } from "./time.js";
import { PHONE, TOUCH, useMedia } from "./use_media.js";
import { Viewer } from "./viewer.js";
import { VirtualRows } from "./virtual_rows.js";

/** @typedef {import("../job_follow.js").Chunk} Chunk */

const ROW_PX = 32;
const TOUCHED_PX = 44;
/** On a phone, a row has two lines. */
const TWO_LINES_PX = 54;
const HEAD_PX = 34;
const BOX_PX = 340;
/** The keys that move the row of the keyboard. @type {Record<string, number>} */
const STEPS = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };
/** The characters of a chunk that may fit into a row. */
const LINE = 400;
const NOTE = "Only the time of the first chunk is the server's: the others are this browser's, if it saw them come.";

/**
 * When a chunk came, in ms, or null. The server knows it of the first one; of the others, this browser does if it saw them come.
 * @param {Chunk} chunk
 * @param {Job} job
 * @param {boolean} [isFirst] whether it is the first of the attempt
 */
const cameAt = (chunk, job, isFirst = false) => (isFirst ? moment(job.firstChunkAt) : null) ?? (chunk.isSeen ? chunk.at : null);

/** The output of a chunk as it was written. @param {Chunk} chunk */
function textOf(chunk) {
  const output = outputOf(chunk);
  return output ? write(output) : chunk.text;
}

/** The bytes of the JSON of a chunk's output, counted once. @param {Chunk} chunk */
function bytesOf(chunk) {
  if (chunk.bytes === undefined) {
    const output = outputOf(chunk);
    chunk.bytes = new Blob([output ? writeLine(output) : chunk.text]).size;
  }
  return chunk.bytes;
}

/** The id of the node of a chunk. No other list of a page has the same. @param {Chunk | undefined} chunk */
const nodeOf = (chunk) => (chunk ? `chunk-${chunk.offset}` : "");

/** @param {{follow: import("../job_follow.js").JobFollow, job: Job, count: number}} props `count` changes with the chunks */
export function Chunks({ follow, job, count: total }) {
  const { chunks } = follow;
  const isPhone = useMedia(PHONE);
  /** The chunk at the row of the keyboard, counted from the oldest: newer ones come above it. */
  const [chosen, choose] = useState(Infinity);
  const [opened, setOpened] = useState(/** @type {Chunk | null} */ (null));
  const isTouch = useMedia(TOUCH);
  const rowHeight = isPhone ? TWO_LINES_PX : isTouch ? TOUCHED_PX : ROW_PX;
  const hasMetrics = chunks.length > 0 && metricsOf(chunks[chunks.length - 1]) !== null;
  const { started } = milestones(job);
  // By the number at the time of this render: more may have come since.
  const chunkAt = (/** @type {number} */ index) => (index < 0 ? undefined : chunks[total - 1 - index]);
  const at = chosen < total ? total - 1 - chosen : -1;
  const marked = chunkAt(at);
  const setAt = (/** @type {number} */ index) => choose(total - 1 - index);
  const press = (/** @type {KeyboardEvent} */ event) => {
    const step = STEPS[event.key] ?? 0;
    if (step) setAt(Math.max(0, Math.min(total - 1, at + step)));
    else if (event.key === "Enter" && marked) setOpened(marked);
    else return;
    event.preventDefault();
  };
  const row = (/** @type {number} */ index, /** @type {string} */ transform) => {
    const chunk = chunkAt(index);
    if (!chunk) return null;
    const came = cameAt(chunk, job, chunk === chunks[0]);
    return html`<div role="row" id=${nodeOf(chunk)} aria-rowindex=${index + 2} class=${`chunk-row ${index === at ? "at" : ""}`} style=${{ transform }} onClick=${() => {
      setAt(index);
      setOpened(chunk);
    }}>
      <span role="gridcell" class="num dim c-number">${count(chunk.offset)}</span>
      <span role="gridcell" class="num dim c-came">${came === null || started === null ? "–" : duration(came - started)}</span>
      <span role="gridcell" class="num dim c-size">${size(bytesOf(chunk))}</span>
      ${hasMetrics && html`<span role="gridcell" class="mono dim opt2">${inLine(metricsOf(chunk))}</span>`}
      <span role="gridcell" class="mono c-text">${visible(textOf(chunk).slice(0, LINE))}</span>
    </div>`;
  };
  const names = /** @type {[string, string, string][]} */ ([["Number", "num", ""], ["Came after", "num", "Since the attempt began"], ["Size", "num", ""], ...(hasMetrics ? [["Metrics", "opt2", ""]] : []), ["Chunk", "", ""]]);
  const head = html`<div role="rowgroup" class="grid-top"><div class="grid-head" role="row" aria-rowindex="1">${names.map(([name, cls, about]) => html`<span key=${name} role="columnheader" class=${cls} title=${about || undefined}>${name}</span>`)}</div></div>`;
  const height = Math.min(BOX_PX, total * rowHeight + (isPhone ? 0 : HEAD_PX));
  return html`<p class="chunks-note" id="chunks-note">${NOTE}</p><div class=${hasMetrics ? "chunks with-metrics" : "chunks"} style=${{ height: `${height}px` }} onKeyDown=${press}>
    <${VirtualRows} count=${total} rowHeight=${rowHeight} label="Chunks" describedBy="chunks-note" columns=${names.length} at=${at} atId=${nodeOf(marked)} head=${head} row=${row} onSeen=${() => {}} keep=${total} />
  </div>${opened && html`<${One} chunk=${opened} came=${cameAt(opened, job, opened === chunks[0])} name=${`${job.id}-${opened.offset}.json`} onClose=${() => setOpened(null)} />`}`;
}

/** Metrics in a line, such as `tokens 4`. @param {import("../json_text.js").Node | null} metrics */
function inLine(metrics) {
  if (metrics?.kind !== "object") return metrics ? visible(write(metrics)) : "–";
  return visible(metrics.entries.map(([name, value]) => `${name} ${write(value)}`).join(", "));
}

/** All of a chunk. @param {{chunk: Chunk, came: number | null, name: string, onClose: () => void}} props */
function One({ chunk, came, name, onClose }) {
  const metrics = metricsOf(chunk);
  return html`<${Dialog} title=${`Chunk ${count(chunk.offset)}`} wide onClose=${onClose} actions=${html`<${Button} onClick=${onClose}>Close<//>`}>
    <p class="dim">${came === null ? "It was stored before this page was opened: when it came is not known." : html`It came at <${Moment} at=${came} ms />.`}</p>
    <${Viewer} title="Chunk" text=${textOf(chunk)} name=${name} />
    ${metrics && html`<${Viewer} title="Metrics" text=${write(metrics)} name=${name} />`}
  <//>`;
}
