// The text of a field that is searched for when one stops typing.
import { useEffect, useRef, useState } from "../dom.js";

const TYPING_MS = 300;

/**
 * The text, and how it is changed; `search` does not wait until one stops typing.
 * @param {string} line what is searched for
 * @param {(line: string) => void} onLine called with the text without spaces at its ends
 * @param {(text: string) => boolean} [isWhole] whether a text is searched for without `search`
 */
export function useTyped(line, onLine, isWhole = () => true) {
  const [text, setText] = useState(line);
  // The line comes back without the space at its end, and while one types on.
  const sent = useRef(line);
  useEffect(() => {
    if (line !== sent.current) setText(line);
    sent.current = line;
  }, [line]);
  const timer = useRef(0);
  const search = () => {
    // Of a text that was searched for and then replaced, a late timer would search again.
    clearTimeout(timer.current);
    if (text.trim() === line) return;
    sent.current = text.trim();
    onLine(sent.current);
  };
  useEffect(() => {
    if (!isWhole(text)) return undefined;
    timer.current = window.setTimeout(search, TYPING_MS);
    return () => clearTimeout(timer.current);
  }, [text, line]);
  return { text, setText, search };
}
