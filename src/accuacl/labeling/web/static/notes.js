// What goes wrong. What the server refused stays until it is read and closed; a lost connection is said while it lasts.
// Both lie over the page, so that nothing moves under the pointer.
import { Refused, post } from "/static/api.js";
import { at, make } from "/static/elements.js";

const MOST = 3;

export function lost(text) {
  at("trouble").hidden = !text;
  at("trouble").textContent = text;
}

export function refused(text) {
  const list = at("errors");
  for (const old of list.querySelectorAll("p")) if (old.firstChild.textContent === text) old.remove();
  const note = make("p", undefined, "note bad");
  const close = make("button", "Close", "small");
  close.addEventListener("click", () => note.remove());
  note.append(make("span", text), close);
  list.append(note);
  while (list.childElementCount > MOST) list.firstElementChild.remove();
}

// Close the newest; whether there was one.
export function closeNewest() {
  const note = at("errors").lastElementChild;
  note?.remove();
  return Boolean(note);
}

export let busy = false; // whether a change waits for its answer: the pages make one at a time

/**
 * What the server answers to a change, which is sent until it is accepted or refused; null if it is refused.
 * @param {string} path
 * @param {object} body
 */
export async function change(path, body) {
  const again = (error) =>
    lost(`${error instanceof Refused ? error.message : "The server does not respond."} Your answer is not saved yet; trying again.`);
  busy = true;
  try {
    return await post(path, body, again);
  } catch (error) {
    refused(error.message);
    return null;
  } finally {
    busy = false;
    lost("");
  }
}
