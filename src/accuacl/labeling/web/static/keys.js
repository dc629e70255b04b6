// Single-key shortcuts, and the dialog that lists them. They can be turned off, because speech input and screen readers may
// type letters themselves.
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

const help = () => at("help").showModal();
at("help-open").addEventListener("click", help);
at("help-close").addEventListener("click", () => at("help").close());

/** @param {(key: string, shift: boolean) => any} act gets a key; whether it was one of its own */
export function onKey(act) {
  document.addEventListener("keydown", (event) => {
    if ((!box.checked && event.key !== "Escape") || hasModifier(event) || event.repeat) return;
    const field = /** @type {Element} */ (event.target).closest("input:not([type=checkbox]), select, textarea, dialog");
    if (field?.checkVisibility()) return; // a dialog that was just closed keeps the focus for some milliseconds
    const key = meantKey(event);
    if (key === "?") help();
    else if (!act(key, event.shiftKey)) return;
    event.preventDefault();
  });
}

/** @param {KeyboardEvent} event */
export const hasModifier = (event) => event.ctrlKey || event.altKey || event.metaKey;

/**
 * The arrow keys and Enter, which work also where single-key shortcuts are turned off; the arrows while they are held down.
 * @param {{ move: (key: string) => any, enter: () => any }} acts whether the key was one of theirs
 */
export function onArrowsAndEnter({ move, enter }) {
  document.addEventListener("keydown", (event) => {
    const target = /** @type {Element} */ (event.target);
    if (hasModifier(event)) return;
    if (target.closest("dialog, a, button, select, summary, textarea, input:not([type=checkbox])")) return;
    const key = event.key.toLowerCase();
    if (key.startsWith("arrow") ? move(key) : key === "enter" && !event.repeat && enter()) event.preventDefault();
  });
}

let active = false;
for (const name of ["keydown", "pointerdown", "pointermove", "wheel", "scroll", "touchstart"]) {
  addEventListener(name, () => (active = true), { passive: true, capture: true });
}

/** Whether somebody has done anything since this was asked last: a page that is only open keeps nothing from others. */
export function wasActive() {
  const was = active;
  active = false;
  return was;
}
