// The class buttons. Each of the first thirty has a key; with more classes there is a search field, and the nine that
// were used last come first, each in a place of its own, so that its key stays the same.
import { at, make, neighbour } from "/static/elements.js";
import { hasModifier, isRepeated } from "/static/keys.js";
import { mark, markOf } from "/static/marks.js";
import { found } from "/static/words.js";

const KEYS = [..."1234567890qwertyiopdhjklzxvbnm"]; // letters that are no command
const MANY = 9; // classes beyond which there is a search field
const SLOTS = 9;
const box = at("classes");
const search = at("search");
const find = at("find");
const none = at("none");
/** @typedef {import("/static/api.js").Class & { recent?: boolean, gone?: boolean }} ShownClass */
/** @type {ShownClass[]} */
let all = [];
/** @type {ShownClass[]} */
let shown = [];
let drawn = "";
/** @type {(chosen: ShownClass) => boolean} */
let choose = () => false;
/** @type {[number, number][]} class id, and when it was used last, by place */
let slots = [];
let uses = 0;
let marked = 0; // the place of the class that Enter chooses, among those that the search has found
/** @type {number[] | null} the only classes with keys, which come first */
let named = null;
const empty = none.textContent ?? "";

/**
 * @param {(chosen: ShownClass) => boolean} act gets the class that was chosen; whether it is being saved
 */
export function onChoose(act) {
  choose = act;
}

/**
 * While an example is shown, no class changes its key: a merged one keeps its place, disabled, until the next example.
 * @param {import("/static/api.js").Class[]} classes
 * @param {boolean} another
 * @param {number[]} [first] the only classes with keys; without them all that there are keys for
 */
export function setClasses(classes, another, first) {
  named = first ?? null;
  const now = another ? ordered(classes) : inPlace(classes);
  const text = JSON.stringify(now);
  if (text === drawn) return another && unpress(); // redrawing would take the focus from a button
  drawn = text;
  all = now;
  find.hidden = all.length <= (named?.length ?? MANY);
  draw();
}

function ordered(classes) {
  const byId = new Map(classes.map((c) => [c.id, c]));
  if (named) return [...named.map((id) => byId.get(id)), ...classes.filter(({ id }) => !named?.includes(id))];
  if (classes.length <= KEYS.length) return classes;
  slots = slots.filter(([id]) => byId.has(id));
  const recent = slots.map(([id]) => ({ ...byId.get(id), recent: true }));
  const ids = new Set(recent.map(({ id }) => id));
  return [...recent, ...classes.filter(({ id }) => !ids.has(id))];
}

function use(used) {
  uses += 1;
  const slot = slots.find(([id]) => id === used.id);
  if (slot) slot[1] = uses;
  else if (slots.length < SLOTS) slots.push([used.id, uses]);
  else slots[slots.indexOf(slots.reduce((a, b) => (b[1] < a[1] ? b : a)))] = [used.id, uses];
}

function inPlace(classes) {
  const byId = new Map(classes.map((c) => [c.id, c]));
  const old = all.map((c) => (byId.has(c.id) ? { ...c, ...byId.get(c.id) } : { ...c, gone: true }));
  const known = new Set(all.map(({ id }) => id));
  return [...old, ...classes.filter(({ id }) => !known.has(id))];
}

const isSearching = () => !find.hidden && search.value.trim() !== "";

// The key of each class shown: of many classes only the recent ones have one.
const keyOf = (c, i) => {
  if (named) return named.includes(c.id) ? KEYS[i] : undefined;
  return all.length <= KEYS.length || c.recent ? KEYS[i] : undefined;
};

function draw() {
  const searching = isSearching();
  shown = searching ? found(all, search.value) : all;
  marked = 0;
  box.replaceChildren(...shown.map((c, i) => button(c, searching ? undefined : keyOf(c, i))));
  none.hidden = shown.length > 0;
  none.textContent = all.length ? `No class matches “${search.value.trim()}”.` : empty;
  highlight();
}

// Mark the class that Enter chooses.
function highlight() {
  const searching = isSearching();
  [...box.children].forEach((element, i) => {
    const first = searching && i === marked;
    element.classList.toggle("first", first);
    element.querySelector(".enter")?.remove();
    if (!first) return;
    element.prepend(Object.assign(make("kbd", "Enter", "enter"), { ariaHidden: "true" }));
    element.scrollIntoView({ block: "nearest" });
  });
  search.setAttribute("aria-description", searching && shown[marked] ? `Enter chooses ${shown[marked].name}` : "");
}

function button(c, key) {
  const element = make("button");
  element.dataset.id = c.id;
  element.disabled = Boolean(c.gone);
  element.classList.add(...markOf(c.id).split(" "));
  if (key) {
    const hint = make("kbd", key);
    hint.setAttribute("aria-hidden", "true");
    element.append(hint);
    element.setAttribute("aria-keyshortcuts", key);
  }
  element.append(mark(c.id), Object.assign(make("span", c.name), { dir: "auto" }));
  element.addEventListener("click", (event) => isRepeated(event) || pick(c));
  return element;
}

function pick(chosen) {
  if (!chosen || chosen.gone) return;
  if (search.value) {
    search.value = "";
    draw();
  }
  search.blur();
  if (!choose(chosen)) return;
  use(chosen);
  press(chosen.id);
}

// The class that is being saved is marked at once.
export function press(id) {
  unpress();
  box.querySelector(`button[data-id="${id}"]`)?.classList.add("pressed");
}

function unpress() {
  for (const pressed of box.querySelectorAll(".pressed")) pressed.classList.remove("pressed");
}

// Whether the key is that of a class.
export function pickKey(key) {
  const i = KEYS.indexOf(key);
  if (i < 0 || isSearching() || !shown[i] || !keyOf(shown[i], i)) return false;
  pick(shown[i]);
  return true;
}

export function focusSearch() {
  if (!find.hidden) search.focus();
}

search.addEventListener("input", draw);
search.addEventListener("keydown", (event) => {
  const within = isSearching() && shown.length;
  if (event.key === "Enter") {
    event.preventDefault();
    if (within) pick(shown[marked]);
  } else if (event.key === "Escape") {
    search.value = "";
    draw();
    search.blur();
  } else if (within && ["ArrowDown", "ArrowUp"].includes(event.key)) {
    event.preventDefault();
    const buttons = [...box.children];
    const next = neighbour(buttons, buttons[marked], event.key);
    const beside = marked + (event.key === "ArrowDown" ? 1 : -1);
    marked = next ? buttons.indexOf(next) : Math.min(shown.length - 1, Math.max(0, beside));
    highlight();
  }
});
// From button to button.
box.addEventListener("keydown", (event) => {
  const here = event.target.closest("button");
  if (!event.key.startsWith("Arrow") || !here || hasModifier(event)) return;
  event.preventDefault();
  event.stopPropagation();
  neighbour([...box.children], here, event.key)?.focus();
});
