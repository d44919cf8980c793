// Which rows of the list of requests are chosen: some by their ids, or all that match.
import { signal } from "./dom.js";

/** What is chosen of one list. */
export class Selection {
  constructor() {
    this.ids = signal(/** @type {Set<string>} */ (new Set()));
    /** All that match, also those that are not loaded. */
    this.isAll = signal(false);
    /** A press on a row chooses it: for fingers, which have no Shift. */
    this.isChoosing = signal(false);
    /** The row that was chosen last: a range begins at it. */
    this.last = "";
  }

  /** Whether something is chosen. */
  isSome = () => this.isAll.value || this.ids.value.size > 0;

  /**
   * Chooses a row or takes it out; with `isRange`, chooses all from the last chosen one on.
   * @param {{job: any}[]} rows
   * @param {number} index
   * @param {boolean} isRange
   */
  press(rows, index, isRange) {
    const id = rows[index]?.job.id;
    if (!id) return;
    const next = new Set(this.ids.peek());
    const from = isRange && next.size > 0 ? rows.findIndex(({ job }) => job.id === this.last) : -1;
    if (from >= 0) for (const { job } of rows.slice(Math.min(from, index), Math.max(from, index) + 1)) next.add(job.id);
    else if (!next.delete(id)) next.add(id);
    this.last = id;
    this.isAll.value = false;
    this.ids.value = next;
  }

  /** @param {{job: any}[]} rows */
  chooseLoaded(rows) {
    this.isAll.value = false;
    this.ids.value = new Set(rows.map(({ job }) => job.id));
  }

  none() {
    this.isAll.value = false;
    this.isChoosing.value = false;
    this.ids.value = new Set();
  }
}
