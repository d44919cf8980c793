// Choosing a time range by its first and its last moment.
import { html, useState } from "../dom.js";
import { dateTime } from "../format.js";
import { typedMoment } from "../filter.js";
import { utc } from "../prefs.js";
import { place } from "../router.js";
import { currentRange, zoom } from "../timeline.js";
import { Field, FormDialog } from "./form_dialog.js";
import { customOpen } from "./range_picker.js";

/** A moment as such a field has it. @param {number} at */
const typed = (at) => dateTime(at, { utc: utc.peek() }).slice(0, 16).replace(" ", "T");

export default function CustomRange() {
  const onClose = () => (customOpen.value = false);
  const { ms, isLive } = currentRange();
  const end = isLive ? Date.now() : Number(place.value.query.get("to"));
  const [from, setFrom] = useState(typed(end - ms));
  const [to, setTo] = useState(typed(end));
  const send = async () => {
    const [first, last] = [typedMoment(from), typedMoment(to)];
    if (first === null || last === null) throw new Error("Both times are needed.");
    if (last <= first) throw new Error("It ends before it begins.");
    if (first >= Date.now()) throw new Error("It has not begun yet.");
    zoom(first, Math.min(last, Date.now()));
    onClose();
  };
  const zone = utc.value ? "UTC" : "local time";
  return html`<${FormDialog} title="Choose a time range" action="Show it" onSend=${send} onClose=${onClose}>
    <${Field} id="range-from" label=${`From, ${zone}`} type="datetime-local" value=${from} onInput=${setFrom} autofocus />
    <${Field} id="range-to" label=${`To, ${zone}`} type="datetime-local" value=${to} onInput=${setTo} help="Minutes are kept for 30 days, hours for 400." />
  <//>`;
}
