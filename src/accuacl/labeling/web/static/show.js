// Drawing: the example, why it was chosen, the progress. Text is inserted as text, never as HTML.

import { forget, imageOf, painted } from "/static/images.js";
import { look } from "/static/zoom.js";

const at = (id) => document.getElementById(id);

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

// Resolved with whether the example can be seen, when it is on the screen.
export async function example(pick) {
  const view = at("view");
  at("why").replaceChildren(...reasons(pick));
  view.scrollTop = 0;
  view.setAttribute("aria-busy", "true");
  if (pick.kind !== "image") {
    look(null);
    view.replaceChildren(pick.kind === "text" ? make("p", pick.text, "text") : table(pick.fields));
    await painted();
    view.setAttribute("aria-busy", "false");
    return true;
  }
  const img = imageOf(pick);
  view.replaceChildren(img);
  look(img, `/item/${pick.item}/full`);
  try {
    await img.ready;
  } catch {
    forget(pick);
    look(null);
    img.replaceWith(make("p", "This image cannot be shown. Skip it.", "bad"));
    return false;
  }
  await painted();
  view.setAttribute("aria-busy", "false");
  return true;
}

function table(fields) {
  const rows = fields.map(([name, value]) => {
    const row = make("tr");
    const head = make("th", name);
    head.scope = "row";
    row.append(head, make("td", value));
    return row;
  });
  const body = make("tbody");
  body.append(...rows);
  const whole = make("table");
  whole.append(body);
  return whole;
}

// Its rank and its scores in one line; what the scores mean, for those who open it.
function reasons(pick) {
  const line = make("summary", "Why this one: ");
  line.append(make("b", `choice ${pick.rank + 1} of ${pick.of}`));
  for (const [name, value] of Object.entries(pick.scores)) {
    if (name === "draw") line.append(", drawn at random"); // the number drawn says nothing
    else line.append(`, ${name} `, make("b", score(value)));
  }
  const list = make("ul");
  list.append(...Object.entries(pick.meanings).map(([name, text]) => make("li", `${name}: ${text}`)));
  const details = make("details");
  details.append(line, list);
  return [details];
}

const score = (value) => (value === null ? "–" : Number(value).toPrecision(3));

export function progress(state) {
  at("round-name").textContent = `Task ${state.task + 1}, round ${state.round + 1}${state.rounds ? ` of ${state.rounds}` : ""}`;
  const done = state.labelled + state.skipped;
  const skipped = state.skipped ? `, ${state.skipped} skipped` : "";
  at("round-count").textContent = state.total ? `${state.labelled} of ${state.total} labelled${skipped}` : "";
  bar("round-bar", done, state.total);
  const { used, total } = state.budget;
  at("budget-count").textContent = total ? `${total - used} of ${total} labels left` : "";
  bar("budget-bar", used, total);
}

function bar(id, value, max) {
  at(id).max = max || 1;
  at(id).value = Math.min(value, max || 1);
}

export function waiting(state) {
  const training = state.phase === "training";
  const phase = state.phase === "labelling" && state.free ? "waiting" : state.phase;
  at("waiting-title").textContent = training && !state.total ? "Preparing the first examples" : TITLES[phase];
  at("train-bar").hidden = !training;
  if (training && state.progress !== null) at("train-bar").value = state.progress;
  else at("train-bar").removeAttribute("value");
  at("waiting-text").textContent = state.text || TEXTS[phase]?.(state) || "";
  at("undo-late").hidden = !state.undo || training;
}

const TITLES = {
  training: "The model is learning",
  labelling: "Others are labelling the rest of this round",
  done: "Everything that was asked for is labelled",
  empty: "There is nothing to label yet",
  waiting: "One moment, please",
};
const TEXTS = {
  training: () => "The next examples will appear here.",
  labelling: () => "If someone leaves an example unfinished, it will appear here.",
  done: ({ given, items }) =>
    `${given} of ${items} examples have a label; the model answers for the others. ` +
    "When data are added, the next examples will appear here.",
  empty: () => "When data are added, the first examples will appear here.",
};

// What came of the last training.
export function learned({ trained }) {
  const batch = "Here is the next batch.";
  if (!trained) return `The model has been trained. ${batch}`;
  const { before, now, count } = trained;
  const change = before === null ? `It is ${now} % right` : `Accuracy: ${before} → ${now} %`;
  return `The model has been trained. ${change}, on ${count} held-out examples. ${batch}`;
}
