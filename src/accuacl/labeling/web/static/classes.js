// The class buttons: number keys for the first nine shown, a search field when there are more.
const MANY = 9;
const box = document.getElementById("classes");
const search = document.getElementById("search");
const find = document.getElementById("find");
const none = document.getElementById("none");
let all = [];
let shown = [];
let drawn = "";
let choose = () => {};

export function onChoose(act) {
  choose = act;
}

// While an example is shown, no class changes its key: a merged one keeps its place, disabled, until the next example.
export function setClasses(classes, another) {
  const now = another ? classes : inPlace(classes);
  const text = JSON.stringify(now);
  if (text === drawn) return; // redrawing would take the focus from a button
  drawn = text;
  all = now;
  find.hidden = all.length <= MANY;
  none.hidden = all.length > 0;
  draw();
}

function inPlace(classes) {
  const there = new Map(classes.map((one) => [one.id, one]));
  const old = all.map((one) => there.get(one.id) ?? { ...one, gone: true });
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

function draw() {
  shown = matches();
  const searching = isSearching();
  const keys = searching ? ["Enter"] : ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
  box.replaceChildren(...shown.map((one, i) => button(one, keys[i], searching && i === 0)));
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
  choose(one);
}

export function pickNumber(i) {
  if (!isSearching()) pick(shown[i]);
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
