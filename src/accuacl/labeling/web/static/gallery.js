// The gallery: the batch grouped by the model's guess. The wrong ones are struck out, and one key confirms the rest.
import { Refused, get, newId, pause, post, send } from "/static/api.js";
import { Cell, struck } from "/static/cells.js";
import { make } from "/static/elements.js";
import { onKey } from "/static/keys.js";
import { closeNewest, lost, refused } from "/static/notes.js";
import { progress, waiting } from "/static/progress.js";

const at = (id) => document.getElementById(id);
const RENEW = 30_000; // milliseconds; a lease lasts 120 s
let groups = []; // { id, name, cells, element, button }
let state = null;
let guesses = true; // whether the model has any for this round
let left = []; // items that were struck out and wait to be labelled one by one
let busy = false;
let active = false; // whether there was any input since the leases were last renewed
const confirmed = []; // requests that can be undone

const cells = () => groups.flatMap((group) => group.cells);
const groupOf = (element) => groups.find((group) => group.element.contains(element));
const say = (text) => (at("said").textContent = text);

function draw(view) {
  state = view.state;
  progress(state);
  if (view.groups) {
    guesses = view.guesses;
    const known = view.groups.flatMap((group) => group.items);
    left = known.filter(({ item }) => struck.has(item)).map(({ item }) => item);
    const open = view.groups.map((group) => ({ ...group, items: group.items.filter(({ item }) => !struck.has(item)) }));
    groups = open.filter((group) => group.items.length).map(drawGroup);
    at("groups").replaceChildren(...groups.map((group) => group.element));
  }
  arrange();
  if (view.groups) focus(groups[0]?.cells[0]);
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

function drawGroup({ class_id, name, items }) {
  const group = { id: class_id, name, cells: items.map((shown) => new Cell(shown, name)) };
  group.element = make("section", undefined, "group");
  const title = make("h2", name);
  title.id = `group-${class_id}`;
  group.element.setAttribute("aria-labelledby", title.id);
  group.count = make("span", "", "soft count");
  group.button = make("button", "", "main");
  group.button.addEventListener("click", () => confirm(group));
  const invert = make("button", "Invert");
  invert.setAttribute("aria-label", `Strike out the others of ${name} instead`);
  invert.addEventListener("click", () => invertGroup(group));
  const head = make("div", undefined, "head");
  head.append(title, group.count, invert, group.button);
  const list = make("ul", undefined, items[0].kind === "image" ? "sheet pictures" : "sheet rows");
  list.append(...group.cells.map((cell) => cell.element));
  group.element.append(head, list);
  group.element.addEventListener("change", () => count(group));
  count(group);
  return group;
}

function count(group) {
  const n = group.cells.filter((cell) => !cell.box.checked).length;
  group.count.textContent = `${n} of ${group.cells.length}`;
  group.button.replaceChildren(n ? `Confirm ${n} ` : "Set these aside ", make("kbd", "Enter"));
  group.button.setAttribute("aria-label", n ? `Confirm ${n} as ${group.name}` : `Set all of ${group.name} aside`);
}

// The arrow keys go from cell to cell; the Tab key comes to one of each group.
function focus(cell) {
  if (!cell) return;
  for (const other of groupOf(cell.element).cells) other.box.tabIndex = other === cell ? 0 : -1;
  cell.box.focus({ preventScroll: true });
  cell.element.scrollIntoView({ block: "nearest" });
}

const current = () => cells().find((cell) => cell.element.contains(document.activeElement));

function move(key) {
  const all = cells();
  const here = current();
  if (!here) return focus(all[0]);
  const i = all.indexOf(here);
  if (key === "arrowleft") return focus(all[i - 1]);
  if (key === "arrowright") return focus(all[i + 1]);
  const middle = ({ element }) => {
    const box = element.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };
  const [x, y] = middle(here);
  const way = key === "arrowdown" ? 1 : -1;
  const beyond = all.map((cell) => [cell, ...middle(cell)]).filter(([, , v]) => way * (v - y) > 4);
  const row = Math.min(...beyond.map(([, , v]) => way * (v - y)));
  const inRow = beyond.filter(([, , v]) => way * (v - y) < row + 4);
  focus(inRow.sort((a, b) => Math.abs(a[1] - x) - Math.abs(b[1] - x))[0]?.[0]);
}

function invertGroup(group) {
  for (const cell of group.cells) cell.strike();
  count(group);
}

// One request at a time; repeated until the server accepts or refuses it.
async function change(path, body) {
  busy = true;
  const again = (error) =>
    lost(`${error instanceof Refused ? error.message : "The server does not respond."} Not saved yet; trying again.`);
  try {
    return await post(path, body, again);
  } catch (error) {
    refused(error.message);
    return null;
  } finally {
    lost("");
    busy = false;
  }
}

async function load() {
  const view = await change("/api/gallery", {});
  if (view) draw(view);
}

// Label what is not struck out and has been on the screen; what is struck out is set aside.
async function confirm(group) {
  if (busy || !group) return;
  const wanted = group.cells.filter((cell) => !cell.box.checked);
  const ready = wanted.filter((cell) => cell.seen);
  const unseen = wanted.find((cell) => !cell.seen);
  if (ready.length) {
    const request = newId();
    const labels = ready.map(({ item }) => ({ item, class_id: group.id }));
    const view = await change("/api/gallery/label", { labels, request });
    if (!view) return load();
    for (const text of new Set(view.refused)) refused(text);
    if (view.saved.length) confirmed.push(request);
    group.cells = group.cells.filter((cell) => !ready.includes(cell));
    for (const cell of ready) cell.element.remove();
    say(`Saved: ${view.saved.length} as ${group.name}.`);
    state = view.state;
    progress(state);
  }
  if (unseen) {
    say(`${wanted.length - ready.length} not saved: they were not on the screen yet.`);
    count(group);
    return focus(unseen);
  }
  await setAside(group);
}

async function setAside(group) {
  left.push(...group.cells.map(({ item }) => item));
  const next = groups[groups.indexOf(group) + 1] ?? groups.find((other) => other !== group);
  groups = groups.filter((other) => other !== group);
  group.element.remove();
  arrange();
  if (next) return focus(next.cells[0]);
  await load();
  if (!groups.length && left.length) at("one-by-one").focus();
}

async function undo() {
  if (busy || !confirmed.length) return;
  const view = await change("/api/gallery/undo", { batch: confirmed.pop(), request: newId() });
  if (!view) return;
  const n = view.undone.length;
  say(n ? `Undone: ${n}.` : "This round is closed, so nothing was undone; correct labels under Review.");
  draw(view);
}

const help = () => at("help").showModal();
at("help-open").addEventListener("click", help);
at("help-close").addEventListener("click", () => at("help").close());
at("undo").addEventListener("click", undo);
onKey((key) => {
  if (key === "x") current()?.strike();
  else if (key === "i" && current()) invertGroup(groupOf(document.activeElement));
  else if (key === "u") undo();
  else if (key === "?") help();
  else if (key === "escape") return closeNewest();
  else return false;
  return true;
});
// These work also where single-key shortcuts are turned off, and while they are held down.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("dialog, a, button")) return;
  const key = event.key.toLowerCase();
  if (key.startsWith("arrow") && groups.length) move(key);
  else if (key === "enter" && groups.length && !event.repeat) confirm(groupOf(document.activeElement) ?? groups[0]);
  else return;
  event.preventDefault();
});

for (const name of ["keydown", "pointerdown", "pointermove", "wheel", "scroll", "touchstart"]) {
  addEventListener(name, () => (active = true), { passive: true, capture: true });
}
setInterval(async () => {
  const items = [...cells().map(({ item }) => item), ...left];
  if (!items.length || busy || !active) return;
  active = false;
  const { lost: gone } = await post("/api/gallery/renew", { items }).catch(() => ({ lost: [] }));
  if (gone.length && !busy) await load();
}, RENEW);
addEventListener("pagehide", () => {
  const items = cells().filter((cell) => !cell.box.checked).map(({ item }) => item);
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
