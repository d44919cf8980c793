// The blocks of lines that are seen, in a box that scrolls: the others are as much empty space as they need.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../dom.js";
import { groupsOf } from "../log_blocks.js";

/** @typedef {import("../log_blocks.js").Block} Block */

/** A reader at most this many pixels above the end follows the newest lines. */
const END_PX = 40;
/** Older lines are read when the first one is at most this far above. */
const NEAR_PX = 600;
/** Drawn above and below what is seen. */
const SPARE_PX = 400;
/** The height of a line before any was measured. */
const LINE_PX = 20;

/** @typedef {{row: Element, top: number, block: number, blockTop: number}} Anchor the first row that is seen and its block, with their distances from the top of the box in pixels */

/** @param {HTMLElement} box @returns {Anchor | null} */
function firstSeen(box) {
  const { top } = box.getBoundingClientRect();
  const isSeen = (/** @type {Element} */ node) => node.getBoundingClientRect().bottom > top;
  const block = /** @type {HTMLElement | undefined} */ ([...box.querySelectorAll(".log-block")].find(isSeen));
  const row = block && [...block.children].find(isSeen);
  return row ? { row, top: row.getBoundingClientRect().top - top, block: Number(block.dataset.block), blockTop: block.getBoundingClientRect().top - top } : null;
}

/** @param {Block[]} blocks the heights of blocks; of those that were not measured, a guess */
function heightsOf(blocks) {
  const measured = blocks.filter(({ pixels }) => pixels > 0);
  const lines = measured.reduce((total, { lines: { length } }) => total + length, 0);
  const linePx = lines > 0 ? measured.reduce((total, { pixels }) => total + pixels, 0) / lines : LINE_PX;
  return blocks.map(({ pixels, lines: { length } }) => pixels || length * linePx);
}

const sum = (/** @type {number[]} */ numbers) => numbers.reduce((total, number) => total + number, 0);

/**
 * The blocks from `first` to `end`, which are seen, and the heights of those above and below.
 * @param {Block[]} blocks
 * @param {{top: number, height: number}} view
 * @param {boolean} isAtEnd
 * @param {Anchor | null} anchor
 */
function seenOf(blocks, view, isAtEnd, anchor) {
  const heights = heightsOf(blocks);
  const anchored = anchor ? blocks.findIndex(({ id }) => id === anchor.block) : -1;
  let { top } = view;
  if (isAtEnd) top = sum(heights) - view.height;
  else if (anchor && anchored >= 0) top = sum(heights.slice(0, anchored)) - anchor.blockTop;
  const [from, to] = [top - SPARE_PX, top + view.height + SPARE_PX];
  let [first, above, end, bottom] = [0, 0, 0, 0];
  for (const height of heights) {
    if (bottom + height < from) [first, above] = [first + 1, bottom + height];
    if (bottom < to) end += 1;
    bottom += height;
  }
  return { first, end, above, below: sum(heights.slice(end)) };
}

/**
 * @param {{blocks: Block[], className: string, head: any, draw: (block: Block) => any, onEnd: (isAtEnd: boolean) => void, onNear: () => void}} props
 *   a block is drawn again when `draw` is another function; `onEnd` is told whether the newest lines are seen, `onNear` that one comes near the first line
 */
export function LogWindow({ blocks, className, head, draw, onEnd, onNear }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const anchor = useRef(/** @type {Anchor | null} */ (null));
  const isAtEnd = useRef(true);
  const [view, setView] = useState({ top: 0, height: 600 });
  const read = () => {
    const node = box.current;
    if (!node) return;
    anchor.current = firstSeen(node);
    isAtEnd.current = node.scrollHeight - node.scrollTop - node.clientHeight < END_PX;
    onEnd(isAtEnd.current);
    setView({ top: node.scrollTop, height: node.clientHeight });
  };
  useEffect(() => {
    const resized = new ResizeObserver(read);
    if (box.current) resized.observe(box.current);
    return () => resized.disconnect();
  }, []);
  const { first, end, above, below } = seenOf(blocks, view, isAtEnd.current, anchor.current);
  const shown = blocks.slice(first, end);
  useLayoutEffect(() => {
    const node = box.current;
    if (!node) return;
    node.querySelectorAll(".log-block").forEach((drawn, at) => (shown[at].pixels = drawn.getBoundingClientRect().height));
    if (isAtEnd.current) {
      node.scrollTop = node.scrollHeight;
    } else if (anchor.current?.row.isConnected) {
      // What is read stays where it is, also when other lines come above it.
      node.scrollTop += anchor.current.row.getBoundingClientRect().top - node.getBoundingClientRect().top - anchor.current.top;
    }
    anchor.current = firstSeen(node);
    const measured = seenOf(blocks, view, isAtEnd.current, anchor.current);
    if (measured.first !== first || measured.end !== end) setView({ ...view });
    if (node.scrollTop < NEAR_PX) onNear();
  });
  return html`<div class=${`log-box ${className}`} ref=${box} tabindex="0" role="log" aria-live="off" aria-label="Lines" onScroll=${read}>
    ${head}<div style=${{ height: `${above}px` }}></div>
    ${shown.map((block) => html`<${Drawn} key=${block.id} block=${block} groups=${groupsOf(block)} draw=${draw} />`)}
    <div style=${{ height: `${below}px` }}></div>
  </div>`;
}

/** @param {{block: Block, groups: unknown, draw: (block: Block) => any}} props */
function Drawn({ block, groups, draw }) {
  return useMemo(() => html`<div class="log-block" data-block=${block.id}>${draw(block)}</div>`, [groups, draw]);
}
