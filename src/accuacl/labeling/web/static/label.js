// The labelling page: one example at a time, leased while it is shown. Every answer of the server has the state of the
// round and what to show, so one function draws them all.
import { Refused, get, newId, pause, post, send } from "/static/api.js";
import { focusSearch, onChoose, pickNumber, setClasses } from "/static/classes.js";
import { onKey } from "/static/keys.js";
import * as show from "/static/show.js";

const at = (id) => document.getElementById(id);
const RENEW = 30_000; // milliseconds; a lease lasts 120 s
let pick = null;
let state = null;
let busy = false;
let batch = null; // the round of the last example
let draws = 0; // counts, so that a state requested before the last drawing is recognised as outdated

function draw(view) {
  draws += 1;
  state = view.state;
  show.progress(state);
  const another = view.pick !== undefined && view.pick?.item !== pick?.item;
  setClasses(view.classes, another);
  at("undo").disabled = !state.undo;
  if (another) {
    pick = view.pick;
    at("guessed").textContent = "";
    if (pick) show.example(pick);
  }
  at("desk").hidden = !pick;
  at("waiting").hidden = Boolean(pick);
  if (!pick) show.waiting(state, state.undo);
  const round = `${state.task}/${state.round}`;
  if (pick && batch !== round) {
    if (batch) say("The model has been trained. Here is the next batch.");
    batch = round;
  }
}

const say = (text) => (at("said").textContent = text);

// What to say while a request is repeated until the server has accepted it.
const repeating = (error) =>
  error instanceof Refused
    ? `${error.message} Your answer is not saved yet; trying again.`
    : "The server does not respond. Your answer is not saved yet; trying again.";

// One change at a time. If the server refuses it, the reason is shown, and the next example comes.
async function change(path, body, done) {
  if (busy) return;
  busy = true;
  try {
    const view = await post(path, { ...body, request: newId() }, (error) => show.trouble(repeating(error)));
    show.trouble("");
    draw(view);
    if (done) say(done);
  } catch (error) {
    show.trouble(error.message);
    if (error.status === 409) await post("/api/next", {}).then(draw, () => {});
  } finally {
    busy = false;
  }
}

const next = () => change("/api/next", {});
const skip = () => pick && change("/api/skip", { item: pick.item }, "Skipped.");
const undo = () => state?.undo && change("/api/undo", {}, "Undone.");
onChoose((one) => pick && change("/api/label", { item: pick.item, class_id: one.id }, `Saved: ${one.name}.`));

async function guess() {
  const mine = pick;
  if (!mine) return;
  try {
    const { name, confidence } = await get(`/api/guess/${encodeURIComponent(mine.item)}`);
    if (mine !== pick) return; // the guess is for the previous example
    const sure = confidence === null ? "" : ` (${Math.round(100 * confidence)} % confident)`;
    at("guessed").textContent = name ? `The model's guess: ${name}${sure}` : "The model has no guess yet.";
  } catch (error) {
    if (mine === pick) show.trouble(error.message);
  }
}

// The dialog for a new class.
const dialog = at("new");
let asked = null; // the example on the screen when it was opened
const openNew = () => {
  asked = pick;
  at("new-trouble").textContent = "";
  at("new-name").value = "";
  dialog.showModal();
};
at("new-cancel").addEventListener("click", () => dialog.close());
at("new-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const use = event.submitter?.value !== "add";
  const name = at("new-name").value.trim();
  try {
    const { added, ...view } = await post("/api/classes", { name, request: newId() });
    dialog.close();
    draw(view);
    if (use && pick && pick === asked) await change("/api/label", { item: pick.item, class_id: added }, `Saved: ${name}.`);
    else say(`Class ${name} added.`);
  } catch (error) {
    at("new-trouble").textContent = error.message;
  }
});

at("add").addEventListener("click", openNew);
at("skip").addEventListener("click", skip);
at("undo").addEventListener("click", undo);
at("undo-late").addEventListener("click", undo);
at("guess").addEventListener("click", guess);
onKey((key) => {
  const act = { a: openNew, s: skip, u: undo, g: guess, "/": focusSearch }[key];
  if (act) act();
  else if (/^[1-9]$/.test(key)) pickNumber(Number(key) - 1);
  else return false;
  return true;
});

// The lease is renewed while the page is open, and released when the page is left.
setInterval(() => {
  const mine = pick;
  if (!mine || busy) return;
  const lost = ({ status }) => status === 409 && mine === pick && next();
  send("/api/renew", { item: mine.item }).then(lost, () => {}); // tried again in half a minute
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
      show.trouble("");
      draw(view);
      if (!pick && state.phase === "labelling" && state.free > 0) await next();
    } catch {
      show.trouble("The server does not respond; trying again.");
    }
  }
}

next().then(watch);
