// Long work in parts, so that the page goes on between them.

/** @typedef {{step: () => void, isDone: () => boolean}} Work */

/** A part takes about this time, in ms: time is left for a frame. */
const PART_MS = 12;
/** The steps between two looks at the clock. */
const STEPS = 500;

/** Goes on until the end of the work, or until about this moment. @param {Work} work @param {number} [moment] in ms */
export function goOn(work, moment = Infinity) {
  for (let steps = 1; !work.isDone(); steps += 1) {
    work.step();
    if (steps % STEPS === 0 && performance.now() > moment) return;
  }
}

/** Goes on to the end of the work, or until it is stopped. @param {Work} work @param {AbortSignal} stop */
export async function inParts(work, stop) {
  while (!stop.aborted) {
    goOn(work, performance.now() + PART_MS);
    if (work.isDone()) return;
    await new Promise((resolve) => setTimeout(resolve));
  }
}
