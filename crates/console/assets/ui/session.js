// A session of the console in a line: its browser, its address, and when it was used.
import { html } from "../dom.js";
import { Age } from "./time.js";

/** @param {{session: any}} props */
export const Session = ({ session }) => html`${browser(session.agent)} at <span class="mono">${session.address ?? "an unknown address"}</span>, used <${Age} at=${session.lastUsedAt} none="never" />`;

/** The name of a browser in its agent line. @param {string | undefined} agent */
export function browser(agent) {
  const found = /(Edg|Firefox|Chrome|Safari)\/(\d+)/.exec(agent ?? "");
  if (!found) return (agent ?? "–").slice(0, 40);
  return `${found[1] === "Edg" ? "Edge" : found[1]} ${found[2]}`;
}
