// The class buttons. Each of the first thirty has a key; with more classes there is a search field, and the nine that
// were used last come first, each in a place of its own, so that its key stays the same.
import { at, make } from "/static/elements.js";
import { isRepeated } from "/static/keys.js";

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
 */
export function setClasses(classes, another) {
  const now = another ? ordered(classes) : inPlace(classes);
  const text = JSON.stringify(now);
  if (text === drawn) return another && unpress(); // redrawing would take the focus from a button
  drawn = text;
  all = now;
  find.hidden = all.length <= MANY;
  none.hidden = all.length > 0;
  draw();
}

function ordered(classes) {
  if (classes.length <= KEYS.length) return classes;
  const byId = new Map(classes.map((c) => [c.id, c]));
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

// Classes whose names contain what is typed: equal names first, then those that begin with it, then the rest.
function matches() {
  const wanted = find.hidden ? "" : search.value.trim().toLowerCase();
  if (!wanted) return all;
  const order = ({ name }) => {
    const low = name.toLowerCase();
    return low === wanted ? 0 : low.startsWith(wanted) ? 1 : 2;
  };
  return all.filter(({ name }) => name.toLowerCase().includes(wanted)).sort((a, b) => order(a) - order(b));
}

const isSearching = () => !find.hidden && search.value.trim() !== "";

// The key of each class shown: of many classes only the recent ones have one.
const keyOf = (c, i) => (all.length <= KEYS.length || c.recent ? KEYS[i] : undefined);

function draw() {
  shown = matches();
  const searching = isSearching();
  box.replaceChildren(
    ...shown.map((c, i) => button(c, searching ? (i ? undefined : "Enter") : keyOf(c, i), searching && i === 0)),
  );
  search.setAttribute("aria-description", searching ? found(shown) : "");
}

const found = (list) => (list.length ? `Enter chooses ${list[0].name}` : "No class name contains this");

function button(c, key, first) {
  const element = make("button");
  element.dataset.id = c.id;
  element.disabled = Boolean(c.gone);
  element.classList.toggle("first", first);
  if (key) {
    const hint = make("kbd", key);
    hint.setAttribute("aria-hidden", "true");
    element.append(hint);
    element.setAttribute("aria-keyshortcuts", key);
  }
  element.append(make("span", c.name));
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
  if (event.key === "Enter") {
    event.preventDefault();
    if (search.value.trim()) pick(shown[0]);
  } else if (event.key === "Escape") {
    search.value = "";
    draw();
    search.blur();
  }
});
