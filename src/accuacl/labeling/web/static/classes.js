// The class buttons. Each of the first thirty has a key; with more classes there is a search field, and the nine that
// were used last come first, each in a place of its own, so that its key stays the same.
const KEYS = [..."1234567890qwertyiopdhjklzxvbnm"]; // letters that are no command
const MANY = 9; // classes beyond which there is a search field
const SLOTS = 9;
const box = document.getElementById("classes");
const search = document.getElementById("search");
const find = document.getElementById("find");
const none = document.getElementById("none");
let all = [];
let shown = [];
let drawn = "";
let choose = () => {};
let slots = []; // [class id, when it was used last], by place
let uses = 0;

export function onChoose(act) {
  choose = act;
}

// While an example is shown, no class changes its key: a merged one keeps its place, disabled, until the next example.
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
  const there = new Map(classes.map((one) => [one.id, one]));
  slots = slots.filter(([id]) => there.has(id));
  const recent = slots.map(([id]) => ({ ...there.get(id), recent: true }));
  const ids = new Set(recent.map((one) => one.id));
  return [...recent, ...classes.filter((one) => !ids.has(one.id))];
}

function use(one) {
  uses += 1;
  const there = slots.find(([id]) => id === one.id);
  if (there) there[1] = uses;
  else if (slots.length < SLOTS) slots.push([one.id, uses]);
  else slots[slots.indexOf(slots.reduce((a, b) => (b[1] < a[1] ? b : a)))] = [one.id, uses];
}

function inPlace(classes) {
  const there = new Map(classes.map((one) => [one.id, one]));
  const old = all.map((one) => (there.has(one.id) ? { ...one, ...there.get(one.id) } : { ...one, gone: true }));
  const known = new Set(all.map((one) => one.id));
  return [...old, ...classes.filter((one) => !known.has(one.id))];
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
const keyOf = (one, i) => (all.length <= KEYS.length || one.recent ? KEYS[i] : undefined);

function draw() {
  shown = matches();
  const searching = isSearching();
  box.replaceChildren(
    ...shown.map((one, i) => button(one, searching ? (i ? undefined : "Enter") : keyOf(one, i), searching && i === 0)),
  );
  search.setAttribute("aria-description", searching ? found(shown) : "");
}

const found = (list) => (list.length ? `Enter chooses ${list[0].name}` : "No class name contains this");

function button(one, key, first) {
  const element = document.createElement("button");
  element.dataset.id = one.id;
  element.disabled = Boolean(one.gone);
  element.classList.toggle("first", first);
  if (key) {
    const hint = document.createElement("kbd");
    hint.textContent = key;
    hint.setAttribute("aria-hidden", "true");
    element.append(hint);
    element.setAttribute("aria-keyshortcuts", key);
  }
  const name = document.createElement("span");
  name.textContent = one.name;
  element.append(name);
  element.addEventListener("click", () => pick(one));
  return element;
}

function pick(one) {
  if (!one || one.gone) return;
  if (search.value) {
    search.value = "";
    draw();
  }
  search.blur();
  if (!choose(one)) return;
  use(one);
  press(one.id);
}

// The class that is being saved is marked at once.
export function press(id) {
  unpress();
  box.querySelector(`button[data-id="${id}"]`)?.classList.add("pressed");
}

function unpress() {
  for (const one of box.querySelectorAll(".pressed")) one.classList.remove("pressed");
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
