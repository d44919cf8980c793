// Tables as CSV, and files that the browser saves.

/** @param {unknown} value */
function cell(value) {
  const text = String(value ?? "");
  // A spreadsheet takes a text with one of these at its start for a formula.
  const safe = /^[=+\-@\t\r]/.test(text) && typeof value === "string" ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A row for each record, with its line's end. @param {readonly string[]} names @param {Record<string, any>} record */
export const csvLine = (names, record) => `${names.map((name) => cell(record[name])).join(",")}\r\n`;

/** The names as the first row, then the records. @param {readonly string[]} names @param {Record<string, any>[]} records */
export const csvOf = (names, records) => [`${names.join(",")}\r\n`, ...records.map((record) => csvLine(names, record))].join("");

/** Lets the browser save a file. @param {string} name @param {BlobPart[]} parts @param {string} type */
export function saveFile(name, parts, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
