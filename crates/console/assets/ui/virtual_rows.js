// A list of any length in a box that scrolls: only the rows that are seen have nodes, and those are used again by place.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../dom.js";

/** Rows beyond the edges, so that scrolling shows no gap. */
const EXTRA = 6;

/**
 * @param {{count: number, rowHeight: number, label: string, describedBy?: string, columns: number, at: number, atId: string,
 *   head: any, row: (index: number, top: string) => any, onSeen: (first: number, end: number, isTop: boolean) => void, keep: number}} props
 *   `at` is the row of the keyboard, or -1, and `atId` the id of its node, which stays when rows come above it;
 *   `keep` counts rows that were added above what is seen;
 *   `describedBy` is the id of a note about the list
 */
export function VirtualRows({ count, rowHeight, label, describedBy, columns, at, atId, head, row, onSeen, keep }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [view, setView] = useState({ top: 0, height: 600 });
  // The most rows that are seen, also in part, with those beyond the edges: constant while one scrolls.
  const places = Math.ceil(view.height / rowHeight) + 1 + 2 * EXTRA;
  const begin = Math.floor(view.top / rowHeight) - EXTRA;
  const first = Math.max(0, begin);
  const end = Math.max(first, Math.min(count, begin + places));
  const read = () => {
    const node = box.current;
    if (node) setView({ top: node.scrollTop, height: node.clientHeight });
  };
  useEffect(() => {
    const node = box.current;
    if (!node) return undefined;
    let frame = 0;
    const scrolled = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(read);
    };
    const resized = new ResizeObserver(read);
    resized.observe(node);
    node.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      resized.disconnect();
      node.removeEventListener("scroll", scrolled);
    };
  }, []);
  useEffect(() => onSeen(first, end, view.top < rowHeight), [first, end, view.top < rowHeight, count]);
  const bring = () => {
    const node = box.current;
    if (!node || at < 0) return;
    if (at * rowHeight < node.scrollTop) node.scrollTop = at * rowHeight;
    else if ((at + 2) * rowHeight > node.scrollTop + node.clientHeight) node.scrollTop = (at + 2) * rowHeight - node.clientHeight;
  };
  const kept = useRef({ keep, at });
  useLayoutEffect(() => {
    const node = box.current;
    const before = kept.current;
    kept.current = { keep, at };
    if (!node) return;
    const added = keep - before.keep;
    const wasSeen = before.at >= 0 && before.at * rowHeight >= node.scrollTop && (before.at + 2) * rowHeight <= node.scrollTop + node.clientHeight;
    // What is being read stays where it is when rows are added above.
    if (added > 0 && node.scrollTop > rowHeight) node.scrollTop += added * rowHeight;
    // At the top, news moves the row of the keyboard down: it is not lost from sight.
    if (wasSeen) bring();
  }, [keep, at]);
  // A row that a person goes to is seen, also after the list was scrolled away from it.
  useEffect(bring, [atId]);
  // The same node serves every row whose number modulo `places` is the same, so that only rows that come into view are rendered.
  const shown = Array.from({ length: end - first }, (_, offset) => ({ index: first + offset, slot: (first + offset) % places }));
  shown.sort((a, b) => a.slot - b.slot);
  return html`<div class="grid-scroll" ref=${box} tabindex="0" role="grid" aria-label=${label} aria-describedby=${describedBy} aria-rowcount=${count + 1} aria-colcount=${columns} aria-activedescendant=${at >= first && at < end ? atId : undefined}>
    ${head}
    <div role="rowgroup" class="grid-rows" style=${{ height: `${count * rowHeight}px` }}>${shown.map(({ index, slot }) => html`<${Slot} key=${slot}>${row(index, `translateY(${index * rowHeight}px)`)}<//>`)}</div>
  </div>`;
}

/** @param {{children?: any}} props */
const Slot = ({ children }) => children;
