// A chart over time: uPlot, loaded with the first chart, and the same numbers as a table.
import { html, useEffect, useRef, useState } from "../dom.js";
import { count, dateTime } from "../format.js";
import { load } from "../load.js";
import { isDark, theme, utc } from "../prefs.js";
import { Card } from "./card.js";
import { Button } from "./button.js";
import { Later } from "../load.js";
import { HEIGHT, dataOf, optionsOf } from "./plot.js";

/** @typedef {import("./plot.js").Line} Line */
/** @typedef {import("./plot.js").PlotMark} PlotMark */
/**
 * @typedef {{title: string, t: number[], lines: Line[], unit?: (value: number) => string, note?: string, span?: [number, number],
 *   marks?: PlotMark[], onZoom?: (from: number, to: number) => void, empty?: any}} ChartProps
 *   times in seconds; `span` is what the axis shows, `empty` what stands in place of lines
 */

const BEGINS = "The line begins with the next figures, in a few seconds.";

/** @param {ChartProps} props */
export function Chart({ title, t, lines, unit = count, note, span, marks = [], onZoom, empty = BEGINS }) {
  const [isTable, setTable] = useState(false);
  const isEmpty = t.length < 2 || lines.every(({ values }) => values.every((value) => value === null));
  const legend = html`<span class="legend">${lines.map(({ name, tone, isFaint }) => html`<span key=${name}><i class=${`ground mark tone-${tone} ${isFaint ? "faint" : ""}`}></i>${name}</span>`)}</span>`;
  const actions = html`${legend}<${Button} kind="quiet small" label=${isTable ? `Show ${title} as a chart` : `Show ${title} as a table`} onClick=${() => setTable(!isTable)}>${isTable ? "Chart" : "Table"}<//>`;
  return html`<${Card} title=${title} note=${note} actions=${actions}>
    ${isEmpty ? html`<div class="chart-empty dim">${empty}</div>` : isTable ? html`<${Later} address="./ui/numbers.js" props=${{ t, lines, unit }} />` : html`<${Plot} title=${title} t=${t} lines=${lines} unit=${unit} span=${span} marks=${marks} onZoom=${onZoom} />`}
  <//>`;
}

/** @param {{title: string, t: number[], lines: Line[], unit: (value: number) => string, span?: [number, number], marks: PlotMark[], onZoom?: (from: number, to: number) => void}} props */
function Plot({ title, t, lines, unit, span, marks, onZoom }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const [at, setAt] = useState(/** @type {number | null} */ (null));
  const latest = useRef({ t, lines, span, marks, onZoom });
  latest.current = { t, lines, span, marks, onZoom };
  const isNight = isDark();
  const data = () => dataOf(latest.current.t, latest.current.lines);
  useEffect(() => {
    const node = box.current;
    if (!node) return undefined;
    let isGone = false;
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: node.clientWidth, height: HEIGHT }));
    void load("./vendor/uplot.js").then(({ default: uPlot }) => {
      if (isGone) return;
      const whole = () => /** @type {[number, number]} */ ([latest.current.t[0], latest.current.t.at(-1) ?? 0]);
      plot.current = new uPlot(
        optionsOf(uPlot, {
          lines: latest.current.lines,
          width: node.clientWidth,
          unit,
          span: () => latest.current.span ?? whole(),
          marks: () => latest.current.marks,
          onHover: setAt,
          onZoom: onZoom && ((from, to) => latest.current.onZoom?.(from, to)),
        }),
        data(),
        node,
      );
      resized.observe(node);
    });
    return () => {
      isGone = true;
      resized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [isNight, theme.value, utc.value, onZoom !== undefined, lines.map(({ name }) => name).join()]);
  useEffect(() => {
    plot.current?.setData(data());
  }, [t[0], t.at(-1), t.length, lines.map(({ values }) => values.at(-1)).join()]);
  const known = (/** @type {(number | null)[]} */ values) => values.findLast((value) => value !== null);
  const last = lines.map(({ name, values }) => `${name} ${shown(known(values), unit)}`).join(", ");
  return html`<div class="plot-box"><div class="plot" ref=${box} role="img" aria-label=${`${title}, latest: ${last}`}></div>
    <p class="plot-values" aria-hidden="true">${at !== null && t[at] !== undefined && html`<span>${dateTime(t[at] * 1000, { utc: utc.value }).slice(5)}</span>${lines.map(({ name, values }) => html`<span key=${name}>${name} <b>${shown(values[at], unit)}</b></span>`)}`}</p></div>`;
}

/** @param {number | null | undefined} value @param {(value: number) => string} unit */
export const shown = (value, unit) => (value === null || value === undefined ? "–" : unit(value));

/** A line of 120 by 28 without axes. @param {{values: (number | null)[], label: string}} props */
export function Sparkline({ values, label }) {
  const known = values.map((value) => value ?? 0);
  if (known.length < 2) return html`<span class="dim">–</span>`;
  const max = Math.max(...known, 0.001);
  const x = (/** @type {number} */ at) => ((at / (known.length - 1)) * 120).toFixed(1);
  const y = (/** @type {number} */ value) => (26 - (value / max) * 23).toFixed(1);
  const line = known.map((value, at) => `${x(at)},${y(value)}`).join(" ");
  return html`<svg class="spark" viewBox="0 0 120 28" role="img" aria-label=${label} preserveAspectRatio="none"><polygon points=${`0,28 ${line} 120,28`} /><polyline points=${line} /></svg>`;
}
