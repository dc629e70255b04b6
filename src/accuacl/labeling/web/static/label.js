// The labelling page: one example at a time, leased while somebody works on it. Every answer of the server has the state
// of the round and what to show, so one function draws them all.
import { get, newId, pause, send } from "/static/api.js";
import { focusSearch, onChoose, pickKey, setClasses } from "/static/classes.js";
import { at } from "/static/elements.js";
import { GUARD, loadAhead } from "/static/images.js";
import { isRepeated, onKey, wasActive } from "/static/keys.js";
import { busy, change, closeNewest, lost, refused } from "/static/notes.js";
import { learned, progress, waiting } from "/static/progress.js";
import * as show from "/static/show.js";
import { flagIt, openNew, sayWhy, showGuidelines } from "/static/dialogs.js";
import { zoomKey } from "/static/zoom.js";

const RENEW = 30_000; // milliseconds; a lease lasts 120 s
/** @typedef {import("/static/api.js").Example} Example */
/** @type {Example | null} */
let pick = null;
/** @type {Example | null} */
let fresh = null; // the pick that has just been painted: answers to it are ignored, as nobody can have seen it
/** @type {Example | null} */
let seen = null; // the pick that was painted before; only this one can be answered
/** @type {Example | null} */
let broken = null; // the pick whose image cannot be shown; it can only be skipped
/** @type {import("/static/api.js").State | null} */
let state = null;
let batch = ""; // the round of the last example
let draws = 0; // counts, so that a state requested before the last drawing is recognised as outdated

/** @param {import("/static/api.js").View} view */
function draw(view) {
  draws += 1;
  state = view.state;
  progress(state);
  const another = view.pick !== undefined && view.pick?.item !== pick?.item;
  setClasses(view.classes, another);
  at("undo").disabled = !state.undo;
  if (view.pick !== undefined) loadAhead(view.pick, view.ahead ?? []);
  if (another) {
    pick = view.pick ?? null;
    at("guessed").textContent = "";
    if (pick) present(pick);
  }
  at("desk").hidden = !pick;
  at("waiting").hidden = Boolean(pick);
  if (!pick) waiting(state);
  const round = `${state.task}/${state.round}`;
  if (pick && batch !== round) {
    if (batch) say(learned(state));
    batch = round;
  }
}

// An example can be answered a moment after it has been painted. One that cannot be shown can only be skipped.
/** @param {Example} mine */
async function present(mine) {
  fresh = seen = broken = null;
  at("desk").dataset.seen = at("desk").dataset.broken = "";
  const visible = await show.example(mine);
  if (mine !== pick) return;
  fresh = mine;
  await pause(GUARD);
  if (mine !== pick) return;
  fresh = null;
  if (visible) seen = mine;
  else broken = mine;
  at("desk").dataset[visible ? "seen" : "broken"] = mine.item;
}

const say = (text) => (at("said").textContent = text);

/**
 * If the server refuses a change, the reason is shown, and the next example comes.
 * @param {string} path
 * @param {object} body
 * @param {string} [done] what to say then
 */
async function save(path, body, done) {
  if (busy) return;
  const view = await change(path, { ...body, request: newId() });
  const now = view ?? (await change("/api/next", {}));
  if (now) draw(now);
  if (view && done) say(done);
}

const next = () => save("/api/next", {});

/** @param {string} [reason] */
function skip(reason = "") {
  if (!pick || busy || fresh === pick) return;
  if (seen !== pick && broken !== pick) return say("Not skipped: this example was not on the screen yet.");
  save("/api/skip", { item: pick.item, reason }, reason ? `Skipped: ${reason}.` : "Skipped.");
}

const undo = () => state?.undo && save("/api/undo", {}, "Undone.");
onChoose((chosen) => {
  if (!pick || busy || fresh === pick) return false;
  if (seen !== pick) {
    say(`Not saved: this example ${broken === pick ? "cannot be shown" : "was not on the screen yet"}.`);
    return false;
  }
  save("/api/label", { item: pick.item, class_id: chosen.id }, `Saved: ${chosen.name}.`);
  return true;
});

async function guess() {
  const mine = pick;
  if (!mine) return;
  try {
    const { name, confidence } = await get(`/api/guess/${encodeURIComponent(mine.item)}`);
    if (mine !== pick) return; // the guess is for the previous example
    const sure = confidence === null ? "" : ` (${Math.round(100 * confidence)} % confident)`;
    at("guessed").textContent = name ? `The model's guess: ${name}${sure}` : "There is no guess of the model to show.";
  } catch (error) {
    if (mine === pick) refused(error.message);
  }
}

const about = { seen: () => seen, pick: () => pick, answerable: () => seen ?? broken, draw, say, save, skip };
at("add").addEventListener("click", () => openNew(about));
at("flag").addEventListener("click", () => flagIt(about));
at("guide").addEventListener("click", showGuidelines);
at("skip").addEventListener("click", (event) => isRepeated(event) || skip());
at("skip-why").addEventListener("click", () => sayWhy(about));
at("more").addEventListener("click", () => {
  at("more").ariaExpanded = at("actions").classList.toggle("open"); // on a phone, where the bar has the most used ones
});
at("undo").addEventListener("click", undo);
at("undo-late").addEventListener("click", undo);
at("guess").addEventListener("click", guess);
onKey((key, shift) => {
  if (key === "s" && shift) return (sayWhy(about), true);
  const keys = { a: () => openNew(about), f: () => flagIt(about), c: showGuidelines };
  const act = { ...keys, s: () => skip(), u: undo, g: guess, "/": focusSearch }[key];
  if (act) act();
  else if (key === "escape") return closeNewest() || zoomKey(key);
  else return pickKey(key) || zoomKey(key) || show.playKey(key);
  return true;
});

// The lease is renewed while somebody is there.
setInterval(() => {
  const mine = pick;
  if (!mine || busy || !wasActive()) return;
  send("/api/renew", { item: mine.item }).then(
    ({ status }) => void (status === 409 && mine === pick && next()),
    () => {}, // tried again in half a minute
  );
}, RENEW);
addEventListener("pagehide", () => pick && send("/api/release", { item: pick.item }).catch(() => {}));
addEventListener("pageshow", (event) => event.persisted && location.reload());

async function watch() {
  for (let tick = 0; ; tick++) {
    await pause(700);
    if (busy || document.hidden || (pick && tick % 5)) continue; // less often while there is an example to label
    try {
      const before = draws;
      const view = await get("/api/state");
      if (busy || draws !== before) continue;
      lost("");
      draw(view);
      if (!pick && view.state.phase === "labelling" && view.state.free) await next();
    } catch {
      lost("The server does not respond; trying again.");
    }
  }
}

next().then(watch);
