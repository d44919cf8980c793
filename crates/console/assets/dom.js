// The one way to build nodes: htm's templates for Preact, with its hooks and signals.
import { h, options, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";
import { visible } from "./format.js";

/** A template of nodes. Text in it becomes text nodes, never markup. */
export const html = htm.bind(h);
export { render };

// Names, errors and logs are written by others: their control and bidirectional characters are symbols on every page.
const others = options.vnode;
options.vnode = (vnode) => {
  if (typeof vnode.type === "string") shown(/** @type {any} */ (vnode.props));
  others?.(vnode);
};

/** @param {{children?: unknown}} props */
function shown(props) {
  const { children } = props;
  if (typeof children === "string") props.children = visible(children);
  else if (Array.isArray(children)) children.forEach((child, at) => typeof child === "string" && (children[at] = visible(child)));
}

export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { batch, computed, effect, signal, useComputed, useSignal } from "./vendor/signals.js";
