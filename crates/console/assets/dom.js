// The one way to build nodes: htm's templates for Preact, with its hooks and signals.
import { h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

/** A template of nodes. Text in it becomes text nodes, never markup. */
export const html = htm.bind(h);
export { render };
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { batch, computed, effect, signal, useComputed, useSignal } from "./vendor/signals.js";
