// The fields that a JSON Schema gives an input: how each is written in a form, what is wrong with it, and the input with another value.
import { asNumber, parseExact } from "./json_exact.js";
import { member, parse, write } from "./json_text.js";

/**
 * @typedef {import("./json_text.js").Node} Node
 * @typedef {"text" | "long" | "number" | "whole" | "switch" | "choice" | "file" | "object" | "json"} Kind
 * @typedef {{path: string[], title: string, text: string, kind: Kind, isNeeded: boolean, isNullable: boolean, choices: {value: string, title: string}[], usual: string,
 *   fields: Field[], rules: any}} Field
 *   `choices` have JSON texts, `usual` is the default as JSON text or "", `fields` are those of an object, `rules` is the schema itself
 */

/** Objects within more objects are written as JSON. */
const DEPTH_MAX = 4;
/** Most fields of a form. */
const FIELDS_MAX = 100;
const LONG_CHARACTERS = 200;
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const WHOLE = /^-?(0|[1-9]\d*)$/;
/** What a form calculates with. */
const LIMITS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"];
const FILE_FORMATS = ["binary", "byte", "base64", "data-url"];

/** The fields of an input, or none where the schema names no members. @param {any} schema @returns {Field[]} */
export function fieldsOf(schema) {
  return schema && typeof schema === "object" ? membersOf(plain(schema, schema), schema, []) : [];
}

/** @param {any} schema @param {any} root @param {string[]} path @returns {Field[]} */
function membersOf(schema, root, path) {
  const needed = Array.isArray(schema.required) ? schema.required : [];
  const members = schema.properties && typeof schema.properties === "object" ? Object.entries(schema.properties) : [];
  return members.slice(0, FIELDS_MAX).map(([name, one]) => fieldOf(plain(one, root), root, [...path, name], needed.includes(name)));
}

/** @param {any} schema @param {any} root @param {string[]} path @param {boolean} isNeeded @returns {Field} */
function fieldOf(schema, root, path, isNeeded) {
  const name = path[path.length - 1];
  const kind = kindOf(schema, path.length);
  return {
    path,
    title: typeof schema.title === "string" ? schema.title : name,
    text: typeof schema.description === "string" ? schema.description : "",
    kind,
    isNeeded,
    isNullable: schema.nullable === true || (Array.isArray(schema.type) && schema.type.includes("null")),
    choices: kind === "choice" ? choicesOf(schema) : [],
    usual: schema.default === undefined ? "" : JSON.stringify(schema.default),
    fields: kind === "object" ? membersOf(schema, root, path) : [],
    rules: { ...schema, ...limitsOf(schema) },
  };
}

/**
 * The limits that are numbers. `exclusiveMinimum: true`, as OpenAPI 3.0 writes it, says that `minimum` itself is too little.
 * @param {any} schema
 * @returns {Record<string, number | undefined>}
 */
function limitsOf(schema) {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum, ...lengths } = Object.fromEntries(LIMITS.map((limit) => [limit, asNumber(schema[limit])]));
  const limits = {
    ...lengths,
    ...(exclusiveMinimum === true ? { minimum: null, exclusiveMinimum: minimum } : { minimum, exclusiveMinimum }),
    ...(exclusiveMaximum === true ? { maximum: null, exclusiveMaximum: maximum } : { maximum, exclusiveMaximum }),
  };
  return Object.fromEntries(Object.entries(limits).map(([limit, value]) => [limit, typeof value === "number" ? value : undefined]));
}

/** A schema with its references inside the document resolved, and `nullable` in place of the branch that only permits null. @param {any} schema @param {any} root */
function plain(schema, root) {
  let found = schema && typeof schema === "object" ? schema : {};
  // A reference can lead to a reference; a circle of them ends here.
  for (let step = 0; step < 8; step += 1) {
    const { $ref, anyOf, oneOf, allOf, ...rest } = found;
    const all = anyOf ?? oneOf ?? allOf ?? [];
    const branches = all.filter((/** @type {any} */ one) => one?.type !== "null");
    const next = typeof $ref === "string" ? target($ref, root) : branches.length === 1 ? branches[0] : null;
    if (!next || typeof next !== "object") return found;
    found = { ...next, ...rest, ...(branches.length < all.length && { nullable: true }) };
  }
  return {};
}

/** @param {string} reference such as `#/$defs/Size` @param {any} root */
function target(reference, root) {
  if (!reference.startsWith("#/")) return {};
  const names = reference.slice(2).split("/").map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  return names.reduce((value, name) => (value && typeof value === "object" && Object.hasOwn(value, name) ? value[name] : undefined), root) ?? {};
}

/** @param {any} schema @param {number} depth @returns {Kind} */
function kindOf(schema, depth) {
  if (choicesOf(schema).length > 0) return "choice";
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((/** @type {unknown} */ type) => type !== "null");
  if (types.length !== 1) return "json";
  switch (types[0]) {
    case "string":
      if (schema.contentEncoding === "base64" || FILE_FORMATS.includes(schema.format)) return "file";
      return !schema.format && !schema.pattern && (asNumber(schema.maxLength) ?? LONG_CHARACTERS) >= LONG_CHARACTERS ? "long" : "text";
    case "number":
      return "number";
    case "integer":
      return "whole";
    case "boolean":
      return "switch";
    case "object":
      return depth < DEPTH_MAX && Object.keys(schema.properties ?? {}).length > 0 ? "object" : "json";
    default:
      return "json";
  }
}

/** @param {any} schema @returns {{value: string, title: string}[]} */
function choicesOf(schema) {
  const named = (schema.oneOf ?? schema.anyOf ?? []).filter((/** @type {any} */ one) => one && "const" in one);
  if (named.length > 0) return named.map((/** @type {any} */ one) => choice(one.const, one.title));
  if (Array.isArray(schema.enum)) return schema.enum.map((/** @type {any} */ value) => choice(value));
  return "const" in schema ? [choice(schema.const)] : [];
}

/** @param {any} value @param {any} [title] */
const choice = (value, title) => ({ value: JSON.stringify(value), title: typeof title === "string" ? title : typeof value === "string" ? value : JSON.stringify(value) });

/** The value of a field in an input. @param {Node | null} input @param {string[]} path @returns {Node | null} */
export const valueAt = (input, path) => path.reduce((/** @type {Node | null} */ node, name) => member(node, name), input);

/** The input with another value at a path; null takes the member out. @param {Node | null} input @param {string[]} path @param {Node | null} value @returns {Node} */
export function withValue(input, [name, ...rest], value) {
  /** @type {[string, Node][]} */
  const entries = input?.kind === "object" ? input.entries : [];
  const at = entries.findIndex(([key]) => key === name);
  const next = rest.length > 0 ? withValue(at < 0 ? null : entries[at][1], rest, value) : value;
  // An object that held this value alone goes with it.
  const isGone = next === null || (value === null && next.kind === "object" && next.entries.length === 0);
  if (isGone) return { kind: "object", entries: entries.filter(([key]) => key !== name) };
  if (at < 0) return { kind: "object", entries: [...entries, [name, next]] };
  return { kind: "object", entries: entries.map(([key, old], place) => (place === at ? [key, next] : [key, old])) };
}

/**
 * The input as the form shows it: a switch that is needed and has no value is on or off, by its default.
 * @param {Field[]} fields
 * @param {Node | null} input
 * @returns {Node | null}
 */
export function withSwitches(fields, input) {
  return fields.reduce((/** @type {Node | null} */ one, field) => {
    const node = valueAt(one, field.path);
    if (field.kind === "object" && (node ? node.kind === "object" : field.isNeeded)) return withSwitches(field.fields, one);
    const isUnsaid = field.kind === "switch" && field.isNeeded && !node;
    return isUnsaid ? withValue(one, field.path, { kind: "literal", text: String(field.usual === "true") }) : one;
  }, input);
}

/** Whether a value is the `null` that its schema permits. @param {Field} field @param {Node | null} node */
const isPermittedNull = ({ isNullable }, node) => isNullable && node?.kind === "literal" && node.text === "null";

/** The value as the text of its field. @param {Field} field @param {Node | null} node */
export function written(field, node) {
  const { kind } = field;
  const isText = kind === "text" || kind === "long" || kind === "file";
  // The text “null” would be a value of its own.
  if (!node || (isText && isPermittedNull(field, node))) return "";
  if (isText && node.kind === "string") return node.text;
  return kind === "choice" ? JSON.stringify(parseExact(write(node))) : write(node);
}

/**
 * What the text of a field stands for, or what is wrong with it. Nothing stands for no member.
 * @param {Field} field
 * @param {string} text
 * @returns {{value: Node | null, fault: string}}
 */
export function readAs(field, text) {
  const { kind, title } = field;
  if (kind === "text" || kind === "long" || kind === "file") return { value: text === "" ? null : { kind: "string", text }, fault: text === "" ? "" : lengthFault(field, text) };
  const trimmed = text.trim();
  if (trimmed === "") return { value: null, fault: "" };
  if (trimmed === "null" && field.isNullable) return { value: { kind: "literal", text: trimmed }, fault: "" };
  if (kind === "whole" && !WHOLE.test(trimmed)) return { value: null, fault: `${title} takes a whole number.` };
  if (kind === "number" && !NUMBER.test(trimmed)) return { value: null, fault: `${title} takes a number, such as 0.5.` };
  const value = parse(trimmed);
  if (!value || !isJson(trimmed)) return { value: null, fault: `${title} takes JSON, such as ["a", 2].` };
  return { value, fault: kind === "whole" || kind === "number" ? rangeFault(field, Number(trimmed)) : "" };
}

/** @param {string} text */
function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** @param {Field} field @param {number} number */
function rangeFault({ title, rules }, number) {
  if (number < rules.minimum) return `${title} is at least ${rules.minimum}.`;
  if (number > rules.maximum) return `${title} is at most ${rules.maximum}.`;
  if (number <= rules.exclusiveMinimum) return `${title} is more than ${rules.exclusiveMinimum}.`;
  return number >= rules.exclusiveMaximum ? `${title} is less than ${rules.exclusiveMaximum}.` : "";
}

/** @param {Field} field @param {string} text */
function lengthFault({ title, rules, kind }, text) {
  const characters = [...text.slice(0, 1000000)].length;
  if (kind !== "file" && characters < rules.minLength) return `${title} has at least ${rules.minLength} characters.`;
  return kind !== "file" && characters > rules.maxLength ? `${title} has at most ${rules.maxLength} characters.` : "";
}

/**
 * The first thing that is wrong with an input as the form shows it, or "".
 * @param {Field[]} fields
 * @param {Node | null} input
 * @param {Record<string, string>} wrong the texts that stand for no value, by the path of their field
 * @returns {string}
 */
export function formFault(fields, input, wrong) {
  for (const field of fields) {
    const fault = field.kind === "object" ? objectFault(field, input, wrong) : valueFault(field, valueAt(input, field.path), wrong[nameOf(field)]);
    if (fault) return fault;
  }
  return "";
}

/** @param {Field} field @param {Node | null} input @param {Record<string, string>} wrong */
function objectFault(field, input, wrong) {
  const node = valueAt(input, field.path);
  const isNull = isPermittedNull(field, node);
  const isThere = (node !== null && !isNull) || Object.keys(wrong).some((name) => name.startsWith(`${nameOf(field)}/`));
  return isThere || (field.isNeeded && !isNull) ? formFault(field.fields, input, wrong) : "";
}

/** @param {Field} field @param {Node | null} node @param {string | undefined} typed what stands for no value */
function valueFault(field, node, typed) {
  if (typed === undefined && isPermittedNull(field, node)) return "";
  const text = typed ?? written(field, node);
  return text === "" && field.isNeeded && node?.kind !== "string" ? `${field.title} needs a value.` : readAs(field, text).fault;
}

/** What identifies a field in its form. @param {Field} field */
export const nameOf = (field) => `/${field.path.join("/")}`;

/** How many members of an input no field shows. @param {Field[]} fields @param {Node | null} input */
export const othersIn = (fields, input) => (input?.kind === "object" ? input.entries.filter(([name]) => !fields.some(({ path }) => path[0] === name)).length : 0);

/** An input made of the defaults and examples of a schema, or null where it has none. @param {any} schema @returns {any} */
export function sampleOf(schema) {
  const given = schema?.default ?? schema?.examples?.[0];
  if (given && typeof given === "object" && !Array.isArray(given)) return given;
  const values = fieldsOf(schema).flatMap(({ path, rules }) => {
    const value = rules.default ?? rules.examples?.[0];
    return value === undefined || value === null ? [] : [[path[0], value]];
  });
  return values.length > 0 ? Object.fromEntries(values) : null;
}
