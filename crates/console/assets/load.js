// Loads a module, and tries again while the server does not answer.

const AGAIN_MS = 2000;

/**
 * A module. While the server does not answer, it is loaded again every 2 s.
 * @param {string} address relative to this file
 * @param {() => void} [onFailure] called after each failure
 * @returns {Promise<any>}
 */
export async function load(address, onFailure) {
  for (let failures = 0; ; failures += 1) {
    try {
      // Browsers may remember that an address could not be loaded.
      return await import(address + (failures > 0 ? `?again=${failures}` : ""));
    } catch {
      onFailure?.();
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}
