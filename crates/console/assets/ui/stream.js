// The stream of a job: joined text that keeps its end in view until one scrolls, or chunk by chunk.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../dom.js";
import { count, rate, size, visible } from "../format.js";
import { outputOf, textOf } from "../job_follow.js";
import { write } from "../json_text.js";
import { Card } from "./card.js";

/** The newest chunks are shown; the download of the output has all. */
const CHUNKS_SHOWN = 500;
/** The characters of a chunk that are shown: the output has all. */
const CHUNK_SHOWN = 600;
const TEXT_SHOWN = 400000;

/** @param {{follow: import("../job_follow.js").JobFollow, isLive: boolean}} props */
export function Stream({ follow, isLive }) {
  void follow.version.value;
  const { chunks } = follow;
  const isText = chunks.length > 0 && textOf(chunks[0]) !== null;
  const [wanted, setWanted] = useState(/** @type {"text" | "chunks" | null} */ (null));
  const view = wanted ?? (isText ? "text" : "chunks");
  const perSecond = isLive ? follow.speed() : null;
  const speed = perSecond === null ? "" : `, ${rate(perSecond)} a second`;
  const actions = isText && html`<span class="switch" role="group" aria-label="View"><button type="button" aria-pressed=${view === "text"} onClick=${() => setWanted("text")}>Text</button><button type="button" aria-pressed=${view === "chunks"} onClick=${() => setWanted("chunks")}>Chunks</button></span>`;
  return html`<${Card} title="Stream" note=${`${count(chunks.length)} ${chunks.length === 1 ? "chunk" : "chunks"}${speed}`} flush actions=${actions}>
    ${view === "text" ? html`<${Joined} follow=${follow} count=${chunks.length} isLive=${isLive} />` : html`<${Chunks} follow=${follow} count=${chunks.length} />`}
  <//>`;
}

/** The text of all chunks so far; each chunk is read once. @param {import("../job_follow.js").JobFollow} follow */
function useJoined(follow) {
  const joined = useRef({ first: -1, count: 0, text: "" });
  const { chunks } = follow;
  const first = chunks[0]?.offset ?? -1;
  if (joined.current.first !== first || joined.current.count > chunks.length) joined.current = { first, count: 0, text: "" };
  const fresh = chunks.slice(joined.current.count).map((chunk) => textOf(chunk) ?? "");
  joined.current = { first, count: chunks.length, text: joined.current.text + fresh.join("") };
  return joined.current.text;
}

/** @param {{follow: import("../job_follow.js").JobFollow, count: number, isLive: boolean}} props `count` changes with the chunks */
function Joined({ follow, isLive }) {
  const text = useJoined(follow);
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const isAtEnd = useRef(true);
  useEffect(() => {
    const node = box.current;
    const scrolled = () => {
      if (node) isAtEnd.current = node.scrollTop + node.clientHeight > node.scrollHeight - 24;
    };
    node?.addEventListener("scroll", scrolled, { passive: true });
    return () => node?.removeEventListener("scroll", scrolled);
  }, []);
  useLayoutEffect(() => {
    if (box.current && isAtEnd.current && isLive) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const cut = Math.max(0, text.length - TEXT_SHOWN);
  return html`<div class="streamed" ref=${box} tabindex="0" role="log" aria-label="Streamed text" aria-live="off">${cut > 0 && html`<p class="dim">The first ${count(cut)} characters are not shown; the output has them.</p>`}${visible(text.slice(cut))}${isLive && html`<span class="caret"></span>`}</div>`;
}

/** @param {{follow: import("../job_follow.js").JobFollow, count: number}} props */
function Chunks({ follow }) {
  const { chunks } = follow;
  const shown = chunks.slice(-CHUNKS_SHOWN).reverse();
  return html`<div class="chunks" tabindex="0"><table class="table">
    <thead><tr><th scope="col" class="num">Number</th><th scope="col">Chunk</th><th scope="col" class="num opt2">Size</th></tr></thead>
    <tbody>${shown.map((chunk) => {
      const output = outputOf(chunk);
      const text = output ? write(output) : chunk.text;
      return html`<tr key=${chunk.offset}><td class="num dim">${count(chunk.offset)}</td><td class="mono chunk-text">${visible(text.slice(0, CHUNK_SHOWN))}${text.length > CHUNK_SHOWN && html`<span class="dim">… and ${count(text.length - CHUNK_SHOWN)} characters</span>`}</td><td class="num dim opt2">${size(chunk.bytes)}</td></tr>`;
    })}</tbody>
  </table></div>`;
}
