// Another key has signed in with this browser: what is shown belongs to the key of before.

/** Loads the page again. Where something is typed, asks before that is lost. */
export default function loadAgain() {
  const fields = /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("textarea, input:not([type=checkbox], [type=radio])"));
  const isTyped = [...fields].some(({ value }) => value);
  if (!isTyped || confirm("Another key has signed in with this browser. Load this page again with it? What is typed here is lost.")) location.reload();
}
