// Stacked bars over time: one bar for each bucket, one colour for each group, and the same numbers as a table.
import { html, useState } from "../dom.js";
import { Button } from "./button.js";
import { Card } from "./card.js";

/** @typedef {{name: string, values: number[]}} Group one value for each bucket */

const TONES = ["accent", "completed", "running", "queued", "timedout", "cancelled"];
/** A table with more columns is hard to read. */
const COLUMNS = 30;
const HEIGHT = 150;
const STEP = 24;
const GAP = 6;

/**
 * @param {{title: string, buckets: string[], groups: Group[], shown: (value: number) => string, empty: string}} props
 *   more groups than colours, or than columns of the table, are shown as the last one
 */
export function Bars({ title, buckets, groups, shown, empty }) {
  const [isTable, setTable] = useState(false);
  const drawn = foldedTo(groups, TONES.length);
  const legend = html`<span class="legend">${drawn.map(({ name }, at) => html`<span key=${name}><i class=${`ground mark tone-${TONES[at]}`}></i>${name}</span>`)}</span>`;
  const actions = html`${legend}<${Button} kind="quiet small" label=${isTable ? `Show ${title} as a chart` : `Show ${title} as a table`} onClick=${() => setTable(!isTable)}>${isTable ? "Chart" : "Table"}<//>`;
  const isEmpty = groups.every(({ values }) => values.every((value) => value === 0));
  return html`<${Card} title=${title} actions=${actions} flush=${isTable}>
    ${isEmpty ? html`<p class="chart-empty dim">${empty}</p>` : isTable ? html`<${Numbers} buckets=${buckets} groups=${foldedTo(groups, COLUMNS)} shown=${shown} />` : html`<${Drawn} title=${title} buckets=${buckets} groups=${drawn} shown=${shown} />`}
  <//>`;
}

/** The first groups, and the sum of the others in the last place. @param {Group[]} groups @param {number} most @returns {Group[]} */
function foldedTo(groups, most) {
  if (groups.length <= most) return groups;
  const rest = groups.slice(most - 1);
  return [...groups.slice(0, most - 1), { name: `${rest.length} others`, values: rest[0].values.map((_, at) => rest.reduce((sum, { values }) => sum + values[at], 0)) }];
}

/** @param {{title: string, buckets: string[], groups: Group[], shown: (value: number) => string}} props */
function Drawn({ title, buckets, groups, shown }) {
  const totals = buckets.map((_, at) => groups.reduce((sum, { values }) => sum + values[at], 0));
  const max = Math.max(...totals);
  const width = buckets.length * STEP;
  return html`<div class="bars-box" tabindex="0" role="group" aria-label=${title}><svg class="bars" viewBox=${`0 0 ${width} ${HEIGHT}`} width=${width} height=${HEIGHT} preserveAspectRatio="none" role="img" aria-label=${`${title}: ${buckets.length} bars, the highest ${shown(max)}`}>
    ${buckets.map((bucket, at) => {
      let top = HEIGHT;
      return html`<g key=${bucket}><title>${`${bucket}: ${shown(totals[at])}${groups.map(({ name, values }) => `\n${name} ${shown(values[at])}`).join("")}`}</title>
        <rect class="bars-hit" x=${at * STEP} y="0" width=${STEP} height=${HEIGHT} />
        ${groups.map(({ name, values }, tone) => {
          const height = (values[at] / max) * (HEIGHT - 4);
          top -= height;
          return height > 0 && html`<rect key=${name} class=${`bar-part tone-${TONES[tone]}`} x=${at * STEP + GAP / 2} y=${top.toFixed(2)} width=${STEP - GAP} height=${height.toFixed(2)} />`;
        })}</g>`;
    })}
  </svg></div><p class="bars-ends dim"><span>${buckets[0]}</span><span>the highest is ${shown(max)}</span><span>${buckets.at(-1)}</span></p>`;
}

/** @param {{buckets: string[], groups: Group[], shown: (value: number) => string}} props */
function Numbers({ buckets, groups, shown }) {
  return html`<div class="table-box" tabindex="0"><table class="table">
    <thead><tr><th scope="col">Time</th>${groups.map(({ name }) => html`<th scope="col" class="num" key=${name}>${name}</th>`)}</tr></thead>
    <tbody>${buckets.map((bucket, at) => html`<tr key=${bucket}><td>${bucket}</td>${groups.map(({ name, values }) => html`<td class="num" key=${name}>${shown(values[at])}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}
