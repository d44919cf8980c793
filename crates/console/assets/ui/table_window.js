// The rows of a long table that are in the window, and as much empty space as the others need.
import { html, useEffect, useRef, useState } from "../dom.js";

/** The most rows in the document. */
const SHOWN = 50;
/** Rows above the window, for those who scroll up. */
const SPARE = 12;
const ROW_PX = 42;

/** @param {{rows: any[]}} props all rows, with keys; all are of one height */
export function TableWindow({ rows }) {
  const [first, setFirst] = useState(0);
  const top = useRef(/** @type {HTMLTableRowElement | null} */ (null));
  const height = useRef(ROW_PX);
  useEffect(() => {
    const look = () => {
      const row = top.current?.nextElementSibling;
      if (!top.current || !row) return;
      height.current = row.getBoundingClientRect().height || ROW_PX;
      setFirst(Math.max(0, Math.floor(-top.current.getBoundingClientRect().top / height.current) - SPARE));
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, []);
  if (rows.length <= SHOWN) return rows;
  const from = Math.min(first, rows.length - SHOWN);
  const gap = (/** @type {string} */ key, /** @type {number} */ number) => {
    const tall = { height: `${number * height.current}px`, padding: 0, border: 0 };
    return html`<tr key=${key} ref=${key === "above" ? top : undefined} aria-hidden="true" style=${tall}><td colspan="99" style=${tall}></td></tr>`;
  };
  return [gap("above", from), ...rows.slice(from, from + SHOWN), gap("below", rows.length - SHOWN - from)];
}
