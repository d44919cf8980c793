// The stream of a job: joined text that keeps its end in view until one scrolls, or chunk by chunk.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../dom.js";
import { count, duration, moment, rate, visible } from "../format.js";
import { SPAN_MS_MIN, metricsOf, textOf } from "../job_follow.js";
import { JoinedText } from "../joined_text.js";
import { member } from "../json_text.js";
import { Card } from "./card.js";
import { Chunks } from "./chunks.js";
import { milestones } from "./life.js";

/** The newest chunks, whose metrics say how many tokens a chunk has. */
const SAMPLE = 100;

/** The tokens of a chunk on average, by the metrics of the newest ones; null if one of them does not say. @param {import("../job_follow.js").Chunk[]} chunks */
function tokensEach(chunks) {
  let sum = 0;
  const sample = chunks.slice(-SAMPLE);
  for (const chunk of sample) {
    const tokens = member(metricsOf(chunk), "tokens");
    if (tokens?.kind !== "number") return null;
    sum += Number(tokens.text);
  }
  return sum / sample.length;
}

/** How many chunks came, when the first one did, and how fast they came. @param {import("../job_follow.js").JobFollow} follow @param {Job} job @param {boolean} isLive */
function figures(follow, job, isLive) {
  const { chunks } = follow;
  const { started, ended } = milestones(job);
  const first = moment(job.firstChunkAt) ?? follow.firstAt();
  const span = first !== null && ended !== null ? ended - first : 0;
  const perSecond = isLive ? follow.speed() : span > SPAN_MS_MIN ? (chunks.length - 1) / (span / 1000) : null;
  const tokens = perSecond === null ? null : tokensEach(chunks);
  return [
    `${count(chunks.length)} ${chunks.length === 1 ? "chunk" : "chunks"}`,
    first !== null && started !== null && first >= started && `the first after ${duration(first - started)}`,
    perSecond !== null && `${rate(perSecond)} a second`,
    tokens !== null && perSecond !== null && `about ${rate(tokens * perSecond)} tokens a second`,
  ].filter(Boolean).join(", ");
}

/** @param {{follow: import("../job_follow.js").JobFollow, job: Job, isLive: boolean}} props */
export default function Stream({ follow, job, isLive }) {
  void follow.version.value;
  const { chunks } = follow;
  const isText = chunks.length > 0 && textOf(chunks[0]) !== null;
  const [wanted, setWanted] = useState(/** @type {"text" | "chunks" | null} */ (null));
  const view = wanted ?? (isText ? "text" : "chunks");
  const actions = isText && html`<span class="switch" role="group" aria-label="View"><button type="button" aria-pressed=${view === "text"} onClick=${() => setWanted("text")}>Text</button><button type="button" aria-pressed=${view === "chunks"} onClick=${() => setWanted("chunks")}>Chunks</button></span>`;
  return html`<${Card} title="Stream" note=${figures(follow, job, isLive)} flush actions=${actions}>
    ${view === "text" ? html`<${Joined} follow=${follow} count=${chunks.length} isLive=${isLive} />` : html`<${Chunks} follow=${follow} job=${job} count=${chunks.length} />`}
  <//>`;
}

/** @param {{follow: import("../job_follow.js").JobFollow, count: number, isLive: boolean}} props `count` changes with the chunks */
function Joined({ follow, isLive }) {
  const joined = useMemo(() => new JoinedText(), [follow]);
  joined.read(follow.chunks);
  const { pieces, rest, dropped, cut } = joined;
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
  }, [dropped + pieces.length, rest]);
  return html`<div class="streamed" ref=${box} tabindex="0" role="log" aria-label="Streamed text" aria-live="off">${cut > 0 && html`<p class="dim">The first ${count(cut)} characters are not shown; the output has them.</p>`}${pieces.map((piece, at) => html`<span class="piece" key=${dropped + at}>${piece}</span>`)}${visible(rest)}${isLive && html`<span class="caret"></span>`}</div>`;
}
