// Server-sent events of a response that stays open.

/** The events of a response, as they come: each part has the texts of those that came together. @param {Response} answer @returns {AsyncGenerator<string[]>} */
export async function* partsOf(answer) {
  const reader = answer.body?.getReader();
  // Cheaper than a `TextDecoderStream`, which has two more queues.
  const decoder = new TextDecoder();
  let rest = "";
  while (reader) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = events.pop() ?? "";
    yield events;
  }
}

/** The fields of an event, such as `event`, `id` and `data`. @param {string} event @returns {Record<string, string>} */
export function fieldsOf(event) {
  const fields = /** @type {Record<string, string>} */ ({});
  for (const line of event.split("\n")) {
    const at = line.indexOf(":");
    if (at > 0) fields[line.slice(0, at)] = line.slice(at + 1).trimStart();
  }
  return fields;
}
