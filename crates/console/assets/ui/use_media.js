// What the window is like: a phone's, or one that is touched.
import { useEffect, useState } from "../dom.js";

export const PHONE = matchMedia("(max-width: 760px)");
export const TOUCH = matchMedia("(pointer: coarse)");

/** Whether a query holds, while a component is shown. @param {MediaQueryList} query */
export function useMedia(query) {
  const [isTrue, setTrue] = useState(query.matches);
  useEffect(() => {
    const changed = () => setTrue(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return isTrue;
}
