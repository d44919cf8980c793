// What the settings of a new endpoint are: the API's document says it.
import * as api from "./api.js";
import { signal } from "./dom.js";
import { me } from "./session.js";

const DOCUMENT = "/v1/openapi.json";

/** The settings of a new endpoint by their names, as JSON Schema; undefined until they are read. */
export const newSettings = signal(/** @type {Record<string, any> | undefined} */ (undefined));

let isAsked = false;

/** Reads them, unless that was done. Without an answer they stay undefined, and the next call asks again. */
export async function readNewSettings() {
  if (isAsked) return;
  isAsked = true;
  try {
    newSettings.value = JSON.parse(await api.text("GET", DOCUMENT)).components.schemas.EndpointCreateInput?.properties;
  } catch {
    isAsked = false;
  }
}

// Modules of a page are loaded before it is shown, when a link to it is pointed at.
if (me.peek()) void readNewSettings();
