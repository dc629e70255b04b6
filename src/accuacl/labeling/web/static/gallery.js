// The gallery: the batch grouped by the model's guess. The wrong ones are struck out, and one key confirms the rest.
import { get, newId, pause, post, send } from "/static/api.js";
import { struck } from "/static/cells.js";
import { at, make, neighbour } from "/static/elements.js";
import { Group } from "/static/groups.js";
import { GUARD, painted } from "/static/images.js";
import { onArrowsAndEnter, onKey, wasActive } from "/static/keys.js";
import { mark } from "/static/marks.js";
import { busy, change, closeNewest, lost, refused } from "/static/notes.js";
import { progress, waiting } from "/static/progress.js";

const NUMBERS = "1234567890"; // keys of classes
const RENEW = 30_000; // milliseconds; a lease lasts 120 s
const TELL = 1000; // milliseconds
const MOST = 100; // items in a request
/** @type {Group[]} */
let groups = [];
/** @type {any} */
let state = null;
/** @type {import("/static/api.js").Class[]} */
let classes = [];
let guesses = true; // whether the model has any for this round
/** @type {number[]} items that were struck out and wait to be labelled one by one */
let left = [];
let fresh = 0; // counts what has just been drawn: until it has been seen for a moment, nothing can be confirmed
const confirmed = []; // requests that can be undone

const cells = () => groups.flatMap((group) => group.cells);
const groupOf = (element) => groups.find((group) => group.element.contains(element));
const say = (text) => (at("said").textContent = text);

function draw(view) {
  state = view.state;
  progress(state);
  if (view.groups) {
    classes = view.classes;
    guesses = view.guesses;
    const known = view.groups.flatMap((group) => group.items);
    left = known.filter(({ item }) => struck.has(item)).map(({ item }) => item);
    const open = view.groups.map((group) => ({ ...group, items: group.items.filter(({ item }) => !struck.has(item)) }));
    groups = open.filter((group) => group.items.length).map((group) => new Group(group, classes, confirm));
    at("groups").replaceChildren(...groups.map((group) => group.element));
    at("numbers").replaceChildren(...numbered());
  }
  arrange();
  if (view.groups) focus(groups[0]?.cells[0]);
  if (view.groups) settle();
}

async function settle() {
  fresh += 1;
  at("groups").dataset.ready = "";
  await painted();
  await pause(GUARD);
  fresh -= 1;
  if (!fresh) at("groups").dataset.ready = "yes";
}

// The classes that a number key gives to the example with the focus.
function numbered() {
  return classes.slice(0, NUMBERS.length).map(({ id, name }, i) => {
    const pair = make("span");
    pair.append(make("kbd", NUMBERS[i]), " ", mark(id), ` ${name}`);
    return pair;
  });
}

// Which of the parts of the page are shown.
function arrange() {
  at("gallery").hidden = at("bar").hidden = !groups.length;
  if (left.length || confirmed.length) at("bar").hidden = false;
  at("struck").hidden = !left.length;
  at("struck-title").textContent = `${left.length} ${left.length === 1 ? "example is" : "examples are"} struck out`;
  const first = !guesses && state.phase === "labelling";
  at("no-guesses").hidden = !first;
  at("waiting").hidden = Boolean(groups.length || left.length || first);
  if (!at("waiting").hidden) waiting(state);
  at("undo-late").hidden = true; // there is a button of the gallery's own
  at("undo").disabled = !confirmed.length;
}

// The arrow keys go from cell to cell; the Tab key comes to one of each group.
function focus(cell, scroll = true) {
  if (!cell) return;
  for (const other of groupOf(cell.element)?.cells ?? []) other.box.tabIndex = other === cell ? 0 : -1;
  cell.box.focus({ preventScroll: true });
  if (scroll) cell.element.scrollIntoView({ block: "nearest" });
}

const current = () => cells().find((cell) => cell.element.contains(document.activeElement));

function move(key) {
  const all = cells();
  const here = current();
  if (!here) return focus(all[0]);
  const next = neighbour(all.map(({ element }) => element), here.element, key);
  focus(all.find(({ element }) => element === next));
}

// Choose from all classes: typing finds one by its name, and Enter or Escape goes back to the example.
function find(cell) {
  cell.strike(true);
  cell.select?.focus();
}

at("groups").addEventListener("keydown", (event) => {
  const cell = event.target.matches("select") && current();
  if (!cell || !["Enter", "Escape"].includes(event.key)) return;
  event.preventDefault();
  event.stopPropagation();
  focus(cell);
});

async function load() {
  const view = await change("/api/gallery", {});
  if (view) draw(view);
}

const nameOf = (wanted) => classes.find(({ id }) => id === wanted)?.name;

// How many were saved as what: "3 as cat, 1 as dog".
function summary(saved) {
  const counts = new Map();
  for (const { label } of saved) counts.set(label, (counts.get(label) ?? 0) + 1);
  return [...counts].map(([id, n]) => `${n} as ${nameOf(id)}`).join(", ");
}

// Label what has a class and has been on the screen; what is struck out without one is set aside.
async function confirm(group, click) {
  if (busy || fresh || !group) return;
  const wanted = group.cells.filter((cell) => cell.label !== null);
  const ready = wanted.filter((cell) => cell.seen);
  const unseen = wanted.find((cell) => !cell.seen);
  if (ready.length) {
    const request = newId();
    const labels = ready.map(({ item, label }) => ({ item, class_id: label }));
    const view = await change("/api/gallery/label", { labels, request });
    if (!view) return load();
    for (const text of new Set(view.refused)) refused(text);
    if (view.saved.length) confirmed.push(request);
    group.take(ready);
    say(view.saved.length ? `Saved: ${summary(ready.filter(({ item }) => view.saved.includes(item)))}.` : "Nothing was saved.");
    state = view.state;
    progress(state);
  }
  if (unseen) {
    say(`${wanted.length - ready.length} not saved: they were not on the screen yet.`);
    group.count();
    settle();
    return focus(unseen);
  }
  await setAside(group, click);
}

async function setAside(group, click) {
  left.push(...group.cells.map(({ item }) => item));
  const next = groups[groups.indexOf(group) + 1] ?? groups.find((other) => other !== group);
  groups = groups.filter((other) => other !== group);
  group.remove(click);
  arrange();
  settle();
  if (next) return focus(next.cells[0], !click);
  await load();
  if (!groups.length && left.length) at("one-by-one").focus();
}

async function undo() {
  if (busy || !confirmed.length) return;
  const view = await change("/api/gallery/undo", { batch: confirmed.pop(), request: newId() });
  if (!view) return;
  const n = view.undone.length;
  say(n ? `Undone: ${n}.` : "This round is closed, so nothing was undone. Correct labels under Review.");
  draw(view);
}

at("undo").addEventListener("click", undo);
onKey((key) => {
  const cell = current();
  const instead = classes[NUMBERS.indexOf(key)];
  if (key === "x") cell?.strike();
  else if (cell && instead) groupOf(cell.element)?.give(cell, instead.id);
  else if (cell && key === "/") find(cell);
  else if (key === "i" && cell) groupOf(cell.element)?.invert();
  else if (key === "u") undo();
  else if (key === "escape") return closeNewest();
  else return false;
  return true;
});
onArrowsAndEnter({
  move: (key) => groups.length && (move(key), true),
  enter: () => groups.length && (confirm(groupOf(document.activeElement) ?? groups[0]), true),
});

// It is recorded which guesses have been on the screen. Several are sent together, and none of them twice.
const shown = new Set();
const toTell = [];
async function tell() {
  const items = toTell.splice(0, MOST);
  if (items.length) await send("/api/gallery/seen", { items }).catch(() => toTell.push(...items));
}
at("groups").addEventListener("shown", ({ detail: item }) => {
  if (shown.has(item)) return;
  shown.add(item);
  toTell.push(item);
});
setInterval(tell, TELL);
addEventListener("pagehide", tell);

// The example that somebody works on comes first: of the others some may be given to whoever has none.
function inOrder() {
  const all = cells();
  const here = Math.max(0, all.indexOf(current()));
  return [...[...all.slice(here), ...all.slice(0, here)].map(({ item }) => item), ...left];
}
setInterval(async () => {
  const items = inOrder();
  if (!items.length || busy || !wasActive()) return;
  const { lost: gone } = await post("/api/gallery/renew", { items }).catch(() => ({ lost: [] }));
  if (gone.length && !busy) await load();
}, RENEW);
addEventListener("pagehide", () => {
  const items = cells().filter((cell) => cell.label !== null).map(({ item }) => item);
  if (items.length) send("/api/gallery/release", { items }).catch(() => {});
});
addEventListener("pageshow", (event) => event.persisted && location.reload());

async function watch() {
  for (let tick = 0; ; tick++) {
    await pause(700);
    if (busy || document.hidden || (groups.length && tick % 5)) continue;
    try {
      const view = await get("/api/state");
      if (busy) continue;
      lost("");
      const another = !state || view.state.task !== state.task || view.state.round !== state.round;
      state = view.state;
      progress(state);
      if (!groups.length && state.phase === "labelling" && (another || (guesses && state.free))) await load();
      else arrange();
    } catch {
      lost("The server does not respond; trying again.");
    }
  }
}

load().then(watch);
