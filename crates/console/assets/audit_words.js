// What the entries of the audit log say, in words.

const VERBS = /** @type {Record<string, string>} */ ({ DELETE: "Delete", PATCH: "Change", PUT: "Change" });
const SESSIONS = /** @type {Record<string, string>} */ ({ ended: "Sign out of", replaced: "Session of", expired: "Session of" });

/** What was asked for. @param {any} entry */
export function what(entry) {
  if (entry.event === "newAddress") return "First use from this address";
  if (entry.event === "session") return `${SESSIONS[entry.outcome] ?? "Sign in to"} the console`;
  // Such as `v1`, `endpoints`, its id, and what of the endpoint is changed.
  const parts = (entry.path ?? "").split("/").filter(Boolean);
  const last = parts[parts.length - 1] ?? "";
  const verb = VERBS[entry.method];
  // The fields say what it does.
  if (parts[0] === "v2") return "Bulk task";
  if (verb) return parts.length > 3 ? `${verb} the ${last.replaceAll("-", " ")} of` : verb;
  // A POST to the list of a kind makes one; a POST below a resource is named by its last part.
  if (parts.length <= 2) return "Make";
  return /^[a-z-]+$/.test(last) && !(entry.resource ?? "").endsWith(last) ? last[0].toUpperCase() + last.slice(1).replaceAll("-", " ") : "Change";
}
