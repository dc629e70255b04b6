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

/** @param {(key: string) => any} act gets a key; whether it was one of its own */
export function onKey(act) {
  document.addEventListener("keydown", (event) => {
    if ((!box.checked && event.key !== "Escape") || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    const field = /** @type {Element} */ (event.target).closest("input:not([type=checkbox]), select, textarea, dialog");
    if (field?.checkVisibility()) return; // a dialog that was just closed keeps the focus for some milliseconds
    if (act(event.key.toLowerCase())) event.preventDefault();
  });
}
