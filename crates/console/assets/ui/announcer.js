// What screen readers are told: one region, which has a text at most every 5 s.
import { visible } from "../format.js";

/** Half of the shortest time between two texts. */
const HALF_MS = 2500;

/** What was not said yet. @type {string[]} */
const texts = [];

const region = document.createElement("div");
region.className = "offscreen";
region.setAttribute("aria-live", "polite");

/** @param {string} text one sentence */
export function announce(text) {
  if (texts.at(-1) !== text) texts.push(text);
}

function speak() {
  // What is around an open dialog is not read.
  const place = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
  const isThere = region.parentNode === place;
  // It is empty before each text: one that is equal to the last is read, too.
  region.textContent = isThere && !region.textContent ? visible(texts.splice(0).join(" ")) : "";
  if (!isThere) place.append(region);
}

speak();
setInterval(speak, HALF_MS);
