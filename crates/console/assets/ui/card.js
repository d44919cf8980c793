// The surfaces of pages: cards, gauges, and what stands in place of content that is absent, loading or failed.
import { html, useEffect, useState } from "../dom.js";
import { Icon } from "../icons.js";
import { Button } from "./button.js";

/** @param {{title: string, note?: any, actions?: any, children?: any, flush?: boolean, id?: string}} props */
export function Card({ title, note, actions, children, flush = false, id }) {
  return html`<section class="card" id=${id} aria-label=${title}>
    <header><h2>${title}</h2>${note && html`<span class="dim">${note}</span>`}<span class="grow"></span>${actions}</header>
    <div class=${flush ? "flush" : "body"}>${children}</div>
  </section>`;
}

/** @param {{children?: any}} props */
export const Gauges = ({ children }) => html`<dl class="gauges">${children}</dl>`;

/**
 * One number with its name, its unit and a line about it.
 * @param {{name: string, value: any, unit?: string, note?: any, bad?: boolean}} props
 */
export function Gauge({ name, value, unit, note, bad = false }) {
  return html`<div class="gauge">
    <dt>${name}</dt>
    <dd><span class=${bad ? "value bad" : "value"}>${value}${unit && html`<small>${unit}</small>`}</span>${note && html`<span class="note">${note}</span>`}</dd>
  </div>`;
}

/** What would be here, and the one next step. @param {{children?: any}} props */
export const Empty = ({ children }) => html`<div class="empty">${children}</div>`;

/**
 * A part that could not be read: the server's sentence and Try again. `what` names it where its place does not.
 * @param {{what?: string, error: import("../api.js").ApiError, onRetry?: () => void}} props
 */
export function Failed({ what, error, onRetry }) {
  return html`<div class="failed-part" role="alert">
    <${Icon} name="warn" /><p>${what && `${what} could not be read. `}${error.message}${error.requestId && html` <span class="dim mono">Request ${error.requestId}</span>`}</p>
    ${onRetry && html`<${Button} onClick=${onRetry}>Try again<//>`}
  </div>`;
}

/** Whether a part is on the page for 150 ms: what is read sooner shows that nothing is missing. */
function useIsLate() {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 150);
    return () => clearTimeout(timer);
  }, []);
  return isLate;
}

/** Grey bars in the place of rows that are being read, shown after 150 ms. @param {{rows?: number, isShown?: boolean}} props */
export function Loading({ rows = 4, isShown = false }) {
  const bar = useIsLate() || isShown ? "bar shown" : "bar";
  return html`<div class="loading" role="status" aria-busy="true" aria-label="Loading">${Array.from({ length: rows }, (_, at) => html`<div key=${at} class=${bar}></div>`)}</div>`;
}

/**
 * The gauges, what is below them, and the cards of a page that is being read, shown after 150 ms.
 * @param {{gauges?: string[], cards: string[], children?: any}} props the names of gauges, each with an empty note, and the titles of cards
 */
export function LoadingPage({ gauges = [], cards, children }) {
  if (!useIsLate()) return html`<div class="loading-page" aria-busy="true"></div>`;
  return html`${gauges.length > 0 && html`<${Gauges}>${gauges.map((name) => html`<${Gauge} key=${name} name=${name} value="–" note=${"\u00a0"} />`)}<//>`}${children}${cards.map((title) => html`<${Card} key=${title} title=${title} flush><${Loading} isShown /><//>`)}`;
}

/**
 * A message with a reason, such as a problem that needs attention.
 * @param {{tone: "bad" | "warn" | "good", icon?: string, title: any, children?: any, actions?: any, level?: 2 | 3}} props
 */
export function Alert({ tone, icon = "warn", title, children, actions, level = 2 }) {
  const Heading = `h${level}`;
  return html`<div class=${`alert ${tone}`}>
    <${Icon} name=${icon} />
    <div class="alert-text"><${Heading}>${title}<//>${children}</div>
    ${actions && html`<div class="acts">${actions}</div>`}
  </div>`;
}
