// Disputes, one after the other: who said what, the model's guess, and one key that settles it.
import { Refused, get, newId, pause, root } from "/static/api.js";
import { focusSearch, onChoose, pickKey, setClasses } from "/static/classes.js";
import { at, make } from "/static/elements.js";
import { GUARD, loadAhead } from "/static/images.js";
import { isRepeated, onKey } from "/static/keys.js";
import { mark } from "/static/marks.js";
import { busy, change, closeNewest, lost, refused } from "/static/notes.js";
import * as show from "/static/show.js";
import { zoomKey } from "/static/zoom.js";

const EVERY = 3000; // milliseconds between two questions for what others have changed
const AHEAD = 3;
/** @typedef {{ kind: string, person: string, id: number | null, name: string | null, time: number, seconds: number | null, shown: string | null }} Answer */
/** @typedef {import("/static/api.js").Example & { name: string, answers: Answer[], guess: any, gold: string | null, comments: string[] }} Dispute */
/** @type {Dispute[]} the first one is on the screen */
let queue = [];
/** @type {import("/static/api.js").Class[]} */
let classes = [];
let count = 0;
let drawn = ""; // what is on the screen
/** @type {number | null} */
let seen = null; // the item that has been on the screen for a moment: only this one can be settled
/** @type {number | null} */
let onScreen = null; // the item on the screen
/** @type {Set<number>} */
const later = new Set(); // items that somebody has put off
const decided = []; // requests that can be undone, with their items

const say = (text) => (at("said").textContent = text);

// What the server says is to settle, in its order, what was put off at the end.
function take(view) {
  ({ classes, count } = view);
  const first = queue[0]?.item;
  const put = (dispute) => (later.has(dispute.item) ? 1 : 0);
  queue = [...view.disputes].sort((a, b) => put(a) - put(b));
  const same = queue.findIndex(({ item }) => item === first && !later.has(item));
  if (same > 0) queue.unshift(...queue.splice(same, 1));
  draw();
}

function draw() {
  const [now] = queue;
  at("left").textContent = count ? `${count} ${count === 1 ? "example" : "examples"} on which people disagree` : "";
  at("desk").hidden = !now;
  at("nothing").hidden = Boolean(now);
  at("undo").disabled = !decided.length;
  at("undo-late").hidden = !decided.length;
  const text = JSON.stringify([now, classes]);
  if (!now) onScreen = seen = null;
  if (!now || text === drawn) return;
  drawn = text;
  loadAhead(now, queue.slice(1, 1 + AHEAD));
  setClasses(classes, true, candidates(now));
  at("said-by").replaceChildren(...now.answers.map(row));
  at("known").replaceChildren(...known(now));
  at("comments").replaceChildren(...now.comments.map((said) => Object.assign(make("li", said), { dir: "auto" })));
  at("history").setAttribute("href", `${root}/item/${now.item}`);
  if (onScreen !== now.item) present(now);
}

async function present(mine) {
  seen = null;
  onScreen = mine.item;
  at("desk").dataset.seen = "";
  await show.example(mine);
  at("why").textContent = mine.name;
  await pause(GUARD);
  if (onScreen !== mine.item) return;
  seen = mine.item;
  at("desk").dataset.seen = mine.item;
}

// The classes with keys: what most people have said comes first, the model's guess last.
function candidates({ answers, guess }) {
  const votes = new Map();
  for (const { id } of answers) if (id !== null) votes.set(id, (votes.get(id) ?? 0) + 1);
  const ids = [...votes].sort((a, b) => b[1] - a[1]).map(([id]) => id);
  if (guess && !ids.includes(guess.id)) ids.push(guess.id);
  const living = new Set(classes.map(({ id }) => id));
  return ids.filter((id) => living.has(id));
}

const NOTES = { opinion: "second opinion", correct: "changed it", decision: "decided" };

function row({ kind, person, id, name, time, seconds, shown }) {
  const line = make("tr");
  const who = Object.assign(make("th", person), { scope: "row" });
  const said = make("td");
  if (id !== null) said.append(mark(id), " ");
  said.append(Object.assign(make("b", name ?? "skipped"), { dir: "auto" }));
  if (NOTES[kind]) said.append(make("small", NOTES[kind]));
  const when = make("td");
  const stamp = make("time", new Date(1000 * time).toLocaleDateString([], { dateStyle: "medium" }));
  stamp.title = new Date(1000 * time).toLocaleString();
  stamp.dateTime = new Date(1000 * time).toISOString();
  const hour = new Date(1000 * time).toLocaleTimeString([], { timeStyle: "short" });
  const pace = seconds === null ? "" : `, after ${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  when.append(stamp, make("small", `${hour}${pace}`));
  line.append(who, said, when, make("td", shown ?? "no"));
  return line;
}

function known({ guess, gold }) {
  const said = [];
  if (guess) {
    const sure = guess.confidence === null ? "" : ` (${Math.round(100 * guess.confidence)} % confident)`;
    said.push("The model's guess: ", mark(guess.id), " ", make("b", guess.name), `${sure}.`);
  } else said.push("The model had no guess for it.");
  if (gold) said.push(" It is a gold example, known as ", make("b", gold), ".");
  return said;
}

onChoose((chosen) => {
  const [now] = queue;
  if (!now || busy || seen !== now.item) return false;
  settle(now, chosen);
  return true;
});

async function settle(now, chosen) {
  const request = newId();
  const view = await change("/api/settle", { item: now.item, class_id: chosen.id, request });
  if (!view) return load();
  decided.push({ request, item: now.item });
  later.delete(now.item);
  take(view);
  say(`Settled: ${chosen.name}.`);
}

function putOff() {
  const [now] = queue;
  if (!now || busy) return;
  if (queue.length === 1) return say("There is no other one.");
  later.delete(now.item); // so that what was put off last comes last
  later.add(now.item);
  queue.push(...queue.splice(0, 1));
  draw();
  say("It comes again at the end.");
}

async function undo() {
  const last = decided.at(-1);
  if (!last || busy) return;
  const view = await change("/api/relabel/undo", { batch: last.request, request: newId() });
  decided.pop();
  if (view) later.delete(last.item);
  await load(last.item);
  if (view) say("Undone.");
}

async function load(first) {
  try {
    const view = await get(`/api/disputes${first === undefined ? "" : `?first=${first}`}`);
    lost("");
    if (first !== undefined) queue = view.disputes.slice(0, 1);
    take(view);
  } catch (error) {
    if (error instanceof Refused && error.status < 500) refused(error.message);
    else lost("The server does not respond; trying again.");
  }
}

at("later").addEventListener("click", (event) => isRepeated(event) || putOff());
at("undo").addEventListener("click", undo);
at("undo-late").addEventListener("click", undo);
onKey((key) => {
  const act = { s: putOff, u: undo, h: () => at("history").click(), "/": focusSearch }[key];
  if (act) act();
  else if (key === "escape") return closeNewest() || zoomKey(key);
  else return pickKey(key) || zoomKey(key);
  return true;
});

async function watch() {
  for (;;) {
    await load();
    do await pause(EVERY);
    while (busy || document.hidden);
  }
}
watch();
