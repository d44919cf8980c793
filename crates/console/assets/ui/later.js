// A component whose module is loaded when it is shown first: what most visits do not open.
import { html, useEffect, useState } from "../dom.js";
import { load } from "../load.js";

/** The components that were loaded, by their addresses. @type {Map<string, any>} */
const loaded = new Map();

/** @param {{address: string, props?: Record<string, any>}} props `address`: that of the module, relative to `load.js` */
export function Later({ address, props }) {
  const [, setLoads] = useState(0);
  useEffect(() => {
    let isShown = true;
    if (!loaded.has(address)) {
      void load(address).then((module) => {
        loaded.set(address, module.default);
        if (isShown) setLoads((loads) => loads + 1);
      });
    }
    return () => void (isShown = false);
  }, [address]);
  const View = loaded.get(address);
  return View ? html`<${View} ...${props} />` : null;
}
