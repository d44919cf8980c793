// What was typed into the playgrounds, and their chats, while one looks at other pages: in this tab, until one signs out.
import { me } from "./session.js";

/**
 * @typedef {{input: string, timeoutS: string, ttlS: string, isLow: boolean, webhook: string}} Draft what the form holds
 * @typedef {{draft: Draft | null, wrong: Record<string, string>, from: string | null, chat: import("./chat.js").Chat | null,
 *   settings: import("./chat.js").ChatSettings | null, text: string}} Kept
 *   `draft` is null until something was typed; then `wrong` has the texts of the form that stand for no value, and `from` is the job
 *   whose input was changed · `text` is the message that is not sent yet
 */

/** By the id of the endpoint. @type {Map<string, Kept>} */
const kept = new Map();
me.subscribe((value) => !value && kept.clear());

/** What is kept of a playground: it is changed in place. @param {string} endpoint its id */
export function keptOf(endpoint) {
  const one = kept.get(endpoint) ?? { draft: null, wrong: {}, from: null, chat: null, settings: null, text: "" };
  kept.set(endpoint, one);
  return one;
}
