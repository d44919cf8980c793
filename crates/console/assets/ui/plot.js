// The options of a plot: axes, lines, marks, and the drag that chooses a time range.
import { dateTime } from "../format.js";
import { utc } from "../prefs.js";

/** @typedef {{name: string, tone: string, values: (number | null)[], isFilled?: boolean, isStepped?: boolean, isFaint?: boolean, isStacked?: boolean, max?: (number | null)[]}} Line `isStacked`: it stands on the lines after it · `max` are the largest values of each step: a faint band above the line */
/** @typedef {{at: number, text: string}} PlotMark `at` in seconds */

export const HEIGHT = 190;
/** All charts of a page show the values of one time. */
const SYNC = "longshore";
/** Steps between the marks of an axis that counts. */
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000];
/** Steps between the marks of an axis of times, in ms. */
const TIMES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000, 7200000, 21600000];
/** A drag over fewer pixels is a click. */
const DRAG_MIN = 8;

/** The value of a colour in tokens.css. @param {string} name */
export const token = (name) => {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
};

/** A moment on an axis: the date where the range has several days. @param {number} at in seconds @param {number} seconds the range */
export const tick = (at, seconds) => {
  const text = dateTime(at * 1000, { utc: utc.value });
  if (seconds > 2 * 86400) return `${text.slice(5, 10)} ${text.slice(11, 16)}`;
  return seconds > 600 ? text.slice(11, 16) : text.slice(11);
};

/**
 * @param {any} uPlot
 * @param {{lines: Line[], width: number, unit: (value: number) => string, span: () => [number, number], marks: () => PlotMark[],
 *   onHover: (index: number | null) => void, onZoom: ((from: number, to: number) => void) | undefined}} options
 *   times in seconds
 */
export function optionsOf(uPlot, { lines, width, unit, span, marks, onHover, onZoom }) {
  const axis = { stroke: token("ink-3"), grid: { stroke: token("line"), width: 1 }, ticks: { show: false }, font: "11px Inter, sans-serif" };
  const isMove = (/** @type {string} */ type) => type === "mousemove" || type === "mouseleave";
  const incrs = /** @type {any} */ ({ count: WHOLE, duration: TIMES })[unit.name];
  const seconds = () => span()[1] - span()[0];
  return {
    width,
    height: HEIGHT,
    tzDate: (/** @type {number} */ at) => (utc.value ? uPlot.tzDate(new Date(at * 1000), "Etc/UTC") : new Date(at * 1000)),
    cursor: {
      // A drag is of one chart; what is under the pointer is shown by all.
      sync: { key: SYNC, filters: { pub: isMove, sub: isMove } },
      drag: { x: onZoom !== undefined, y: false, setScale: false },
      points: { size: 6 },
    },
    legend: { show: false },
    scales: {
      x: { range: span },
      y: { range: (/** @type {any} */ _, /** @type {number} */ _min, /** @type {number} */ max) => [0, Math.max(incrs ? 1 : 0, max * 1.12) || 1] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 26, space: seconds() > 2 * 86400 ? 110 : 80, values: (/** @type {any} */ _, /** @type {number[]} */ times) => times.map((at) => tick(at, seconds())) },
      { ...axis, size: incrs === TIMES ? 66 : 46, incrs, values: (/** @type {any} */ _, /** @type {number[]} */ values) => values.map((value) => (value === 0 ? "0" : unit(value))) },
    ],
    series: [{}, ...lines.map((line) => seriesOf(uPlot, line)), ...banded(lines).map((line) => ({ ...seriesOf(uPlot, { ...line, isFilled: false }), stroke: "transparent" }))],
    bands: banded(lines).map((line, at) => ({ series: [lines.length + 1 + at, lines.indexOf(line) + 1], fill: token(`${line.tone}-soft`) })),
    hooks: {
      setCursor: [(/** @type {any} */ self) => onHover(self.cursor.idx ?? null)],
      setSelect: [(/** @type {any} */ self) => select(self, onZoom)],
      draw: [(/** @type {any} */ self) => drawMarks(self, marks())],
    },
  };
}

/** The lines with a band. @param {Line[]} lines */
const banded = (lines) => lines.filter(({ max }) => max);

/** The sums of lines in each step. @param {Line[]} lines */
const stacked = ([top, ...below]) => top.values.map((value, at) => (value === null ? null : below.reduce((sum, { values }) => sum + (values[at] ?? 0), value)));

/** What is drawn, in the order of the series. @param {number[]} t @param {Line[]} lines */
export const dataOf = (t, lines) => [t, ...lines.map((line, at) => (line.isStacked ? stacked(lines.slice(at)) : line.values)), ...banded(lines).map(({ max }) => max)];

/** @param {any} uPlot @param {Line} line */
function seriesOf(uPlot, { name, tone, isFilled, isStepped, isFaint }) {
  return {
    label: name,
    stroke: token(tone),
    width: isFaint ? 1 : 1.5,
    dash: isFaint ? [3, 3] : undefined,
    // A value between two unknown ones has no line: it gets a point.
    points: { size: 4, filter: (/** @type {any} */ self, /** @type {number} */ at, /** @type {boolean} */ _show) => alone(self.data[at]) },
    paths: isStepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
    fill: isFilled ? token(`${tone}-soft`) : undefined,
  };
}

/** The indexes of values without a neighbour. @param {(number | null)[]} values */
const alone = (values) => values.flatMap((value, at) => (value !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null ? [at] : []));

/** @param {any} self @param {((from: number, to: number) => void) | undefined} onZoom */
function select(self, onZoom) {
  const { left, width } = self.select;
  if (width < DRAG_MIN || !onZoom) return;
  const [from, to] = [left, left + width].map((x) => self.posToVal(x, "x"));
  self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  onZoom(from, to);
}

/** Thin lines where something happened, with their names. @param {any} self @param {PlotMark[]} marks */
function drawMarks(self, marks) {
  const { ctx, bbox } = self;
  const scale = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = token("line-strong");
  ctx.fillStyle = token("ink-3");
  ctx.font = `${10 * scale}px Inter, sans-serif`;
  ctx.lineWidth = scale;
  ctx.textAlign = "left";
  for (const { at, text } of marks) {
    const x = Math.round(self.valToPos(at, "x", true)) + 0.5;
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.setLineDash([2 * scale, 3 * scale]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(text, x + 3 * scale, bbox.top + 10 * scale);
  }
  ctx.restore();
}
