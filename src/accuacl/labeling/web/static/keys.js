// Single-key shortcuts. They can be turned off, because speech input and screen readers may type letters themselves.
import { at } from "/static/elements.js";

const box = at("use-keys");
const KEPT = "accuacl-keys";

try {
  box.checked = localStorage.getItem(KEPT) !== "off";
  box.addEventListener("change", () => localStorage.setItem(KEPT, box.checked ? "on" : "off"));
} catch {
  // without storage the choice lasts as long as the page
}

// Whether a click is the second one of a double click, which is not meant for what the first one brought.
/** @param {MouseEvent} event */
export const isRepeated = (event) => event.detail > 1;

/**
 * The key that somebody means, on any keyboard: in the row of digits it is the digit, which French keyboards have under
 * Shift, and where letters are not Latin ones it is the letter in that place of an English keyboard.
 * @param {{ key: string, code: string, shiftKey: boolean }} event
 */
export function meantKey({ key, code, shiftKey }) {
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(code);
  if (digit && !shiftKey && key.length === 1) return digit[1];
  const letter = /^Key([A-Z])$/.exec(code);
  return (letter && key.length === 1 && key > "~" ? letter[1] : key).toLowerCase();
}

/** @param {(key: string, shift: boolean) => any} act gets a key; whether it was one of its own */
export function onKey(act) {
  document.addEventListener("keydown", (event) => {
    if ((!box.checked && event.key !== "Escape") || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    const field = /** @type {Element} */ (event.target).closest("input:not([type=checkbox]), select, textarea, dialog");
    if (field?.checkVisibility()) return; // a dialog that was just closed keeps the focus for some milliseconds
    if (act(meantKey(event), event.shiftKey)) event.preventDefault();
  });
}
