// Answers in a grid: many are selected and given another label or a comment, one is enlarged. Everything has a key.
import { get, newId, post } from "/static/api.js";
import { all, at, make, neighbour, prose, record } from "/static/elements.js";
import { sendEarly } from "/static/forms.js";
import { hasModifier, onArrowsAndEnter, onKey } from "/static/keys.js";
import { mark } from "/static/marks.js";

const boxes = all("#grid input");
const cells = boxes.map((box) => ({ box, element: box.closest("li") }));
const chosen = () => boxes.filter((box) => box.checked).map((box) => Number(box.value));
const tell = (text) => (at("review-trouble").textContent = text);

function count() {
  const n = chosen().length;
  at("chosen").textContent = n ? `${n} selected` : "Nothing is selected";
  const others = boxes.some((box) => box.checked && "others" in box.dataset); // annotators change only their own
  if (at("relabel")) at("relabel").hidden = others;
  if (at("relabel") && at("not-yours")) at("not-yours").hidden = !others;
  at("select-all").textContent = n && n === boxes.length ? "Select none" : "Select all here";
}

function selectAll() {
  const select = chosen().length < boxes.length;
  for (const box of boxes) box.checked = select;
  count();
}

// Nothing in the grid shows what `done` says, so the page is not loaded again then.
async function send(path, body, done) {
  const items = chosen();
  if (!items.length) return tell("Select something first.");
  try {
    await post(path, { items, ...body, request: newId() }, () => tell("The server does not respond; trying again."));
    if (!done) return location.reload();
    for (const box of boxes) box.checked = false;
    count();
    tell("");
    at("chosen").textContent = done(items.length);
  } catch (error) {
    tell(error.message);
  }
}

at("grid").addEventListener("change", count);
at("select-all").addEventListener("click", selectAll);
at("relabel")?.addEventListener("submit", (event) => {
  event.preventDefault();
  send("/api/relabel", { class_id: Number(at("new-label").value) });
});
at("comment").addEventListener("submit", (event) => {
  event.preventDefault();
  send("/api/comment", { text: at("comment-text").value });
});
at("use-examples")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const [option] = at("example-of").selectedOptions;
  const done = (n) => `${n} ${n === 1 ? "is now an example" : "are now examples"} of ${option.text}.`;
  send(`/api/classes/${option.value}/examples`, {}, done);
});
at("gold")?.addEventListener("click", () => send("/api/gold", { gold: true }));
at("not-gold")?.addEventListener("click", () => send("/api/gold", { gold: false }));
at("unflag")?.addEventListener("click", () => send("/api/unflag", {}));

// The grid by keys

const current = () => cells.find(({ element }) => element.contains(document.activeElement));

function go(cell) {
  cell?.box.focus({ preventScroll: true });
  cell?.element.scrollIntoView({ block: "nearest" });
}

function move(key) {
  const here = current();
  if (!here) return go(cells[0]);
  const next = neighbour(cells.map(({ element }) => element), here.element, key);
  go(cells.find(({ element }) => element === next));
}

// One example, enlarged

/** @type {any} the cell that is enlarged */
let large = null;

async function enlarge(cell) {
  if (!cell) return;
  large = cell;
  const item = Number(cell.box.value);
  at("large-title").textContent = `Item ${item}`;
  at("large-view").replaceChildren(make("p", "Loading …", "soft"));
  at("large-about").textContent = "";
  at("large-comments").replaceChildren();
  at("large-chosen").checked = cell.box.checked;
  at("large-before").disabled = cell === cells[0];
  at("large-after").disabled = cell === cells.at(-1);
  at("large-history").setAttribute("href", cell.element.querySelector(".by a").getAttribute("href"));
  if (!at("large").open) at("large").showModal();
  at("large-view").focus();
  try {
    const shown = await get(`/api/review/${item}`);
    if (large === cell) fill(shown);
  } catch (error) {
    if (large === cell) at("large-view").replaceChildren(make("p", error.message, "bad"));
  }
}

function fill(shown) {
  const title = make("span", shown.label);
  title.dir = "auto";
  at("large-title").replaceChildren(...(shown.class_id === null ? [] : [mark(shown.class_id), " "]), title);
  at("large-view").replaceChildren(content(shown));
  const who = shown.person ? [`by ${shown.person}, ${new Date(1000 * shown.time).toLocaleString()}`] : [];
  const sure = shown.confidence === null ? "" : ` (${Math.round(100 * shown.confidence)} %)`;
  const guess = shown.guess ? [`model's guess: ${shown.guess}${sure}`] : [];
  at("large-about").textContent = [shown.name, ...who, ...guess].join(" · ");
  at("large-comments").replaceChildren(...shown.comments.map((text) => Object.assign(make("li", text), { dir: "auto" })));
}

function content(shown) {
  if (shown.kind === "text") return prose("p", shown.text, "text");
  if (shown.kind !== "image") return record(shown.fields);
  const image = new Image();
  image.alt = `Item ${shown.item}`;
  image.src = shown.image;
  return image;
}

const beside = (step) => enlarge(cells[cells.indexOf(large) + step]);

function selectLarge(select) {
  large.box.checked = at("large-chosen").checked = select;
  count();
}

// The keyboard is back in the grid at once: the event "close" may come after the next key.
function closeLarge() {
  at("large").close();
  if (large) go(large);
  large = null;
}

at("large-before").addEventListener("click", () => beside(-1));
at("large-after").addEventListener("click", () => beside(1));
at("large-chosen").addEventListener("change", () => selectLarge(at("large-chosen").checked));
at("large-close").addEventListener("click", closeLarge);
at("large").addEventListener("close", () => at("large").open || closeLarge()); // by a phone's back gesture
at("large").addEventListener("keydown", (event) => {
  if (hasModifier(event)) return;
  if (event.key === "ArrowLeft") beside(-1);
  else if (event.key === "ArrowRight") beside(1);
  else if (event.key === "x" && !event.repeat) selectLarge(!large.box.checked);
  else if (event.key === "Escape") closeLarge();
  else return;
  event.preventDefault();
});
at("grid").addEventListener("dblclick", (event) => enlarge(cells.find(({ element }) => element.contains(event.target))));

// On a phone the filters that are seldom used are hidden until somebody wants them, or has.
const showFilters = (open) => (at("more-filters").ariaExpanded = String(at("filters").classList.toggle("open", open)));
at("more-filters").addEventListener("click", () => showFilters());
if (all("#filters .rare select").some((select) => select.value)) showFilters(true);

// All keys

onKey((key, shift) => {
  const cell = current();
  const acts = {
    x: () => cell?.box.click(),
    a: selectAll,
    e: () => enlarge(cell ?? cells[0]),
    h: () => cell?.element.querySelector(".by a").click(),
    l: () => at("new-label")?.focus(),
    c: () => at("comment-text").focus(),
    t: () => at("example-of")?.focus(),
    g: () => at(shift ? "not-gold" : "gold")?.click(),
    f: () => at("unflag")?.click(),
    u: () => all("#undo-relabel button")[0]?.click(),
    "/": () => at("q").focus(),
    n: () => at("after")?.click(),
    p: () => at("before")?.click(),
  };
  acts[key]?.();
  return key in acts;
});
onArrowsAndEnter({
  move: (key) => cells.length && (current() || !document.activeElement?.matches("input")) && (move(key), true),
  enter: () => current() && (enlarge(current()), true),
});

boxes.forEach((box) => (box.checked = false)); // browsers restore them
count();
sendEarly(all("section.bar form"));
