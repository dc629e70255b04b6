// How far the round is, what people wait for, and what the last training has brought.
import { at } from "/static/elements.js";

/** @typedef {import("/static/api.js").State} State */

/** @param {State} state */
export function progress(state) {
  at("round-name").textContent = `Task ${state.task + 1}, round ${state.round + 1}${state.rounds ? ` of ${state.rounds}` : ""}`;
  const { own } = state;
  const blind = state.total === undefined; // whoever may be asked for second opinions knows of their own answers alone
  const alone = own.labelled === state.labelled && own.skipped === state.skipped;
  at("own-count").textContent = alone ? "" : `You: ${own.labelled} labelled${skips(own)}`;
  at("round-count").textContent = state.total ? counts(state) : "";
  at("round-bar").hidden = at("budget").hidden = blind;
  if (!blind) bar("round-bar", (state.labelled ?? 0) + (state.skipped ?? 0), state.total);
  const others = !state.preparing && state.phase === "labelling" && state.stage === "preparing"; // for later rounds
  at("preparing").hidden = !(state.preparing || others) || state.phase === "training";
  const how = state.text ? ` ${state.text}.` : "";
  const meanwhile = state.preparing ? "The rest of this round is being chosen meanwhile." : "";
  at("preparing").textContent = others ? how.trim() : meanwhile && meanwhile + how;
  const { used, total } = state.budget ?? { used: 0, total: 0 };
  at("budget-count").textContent = total ? `${Math.max(0, total - used)} of ${total} labels left` : "";
  bar("budget-bar", used, total);
}

const skips = ({ skipped }) => (skipped ? `, ${skipped} skipped` : "");

function counts(state) {
  const second = state.opinions ? `, ${state.opinions} to be labelled by a second person` : "";
  return `${state.labelled} of ${state.total} labelled${skips(state)}${second}`;
}

function bar(id, value, max) {
  at(id).max = max || 1;
  at(id).value = Math.min(value, max || 1);
}

/** @param {State} state */
export function waiting(state) {
  const training = state.phase === "training";
  const phase = state.phase === "labelling" && state.free ? "waiting" : state.phase;
  const preparing = training && (state.preparing || state.total === 0 || state.stage === "preparing");
  at("waiting-title").textContent = preparing ? "Preparing the next examples" : TITLES[phase];
  at("train-bar").hidden = !training;
  if (training && state.progress !== null) at("train-bar").value = state.progress;
  else at("train-bar").removeAttribute("value");
  at("waiting-text").textContent = preparing ? (state.text ? `${state.text}. ${PREPARING}` : PREPARING) : state.text || TEXTS[phase]?.(state) || "";
  at("undo-late").hidden = !state.undo || training;
}

const TITLES = {
  training: "The model is learning",
  labelling: "Others are labelling the rest of this round",
  done: "Everything that was asked for is labelled",
  empty: "There is nothing to label yet",
  waiting: "One moment, please",
};
const PREPARING =
  "Before it chooses, the model looks at every example of the task once. The next ones will appear here by themselves.";
const TEXTS = {
  training: () => "The next examples will appear here.",
  labelling: () => "If someone leaves an example unfinished, it will appear here.",
  done: ({ given, items }) =>
    `${given} of ${items} examples have a label; the model predicts the others. ` +
    "When data are added, the next examples appear here.",
  empty: () => "When data are added, the first examples will appear here.",
};

// What came of the last training.
/** @param {State} state */
export function learned({ trained }) {
  const batch = "Here is the next batch.";
  if (!trained) return `The model has been trained. ${batch}`;
  const { before, now, count } = trained;
  const change = before === null ? `Accuracy: ${now} %` : `Accuracy: ${before} → ${now} %`;
  const held = `${count} held-out example${count === 1 ? "" : "s"}`;
  return `The model has been trained. ${change}, on ${held}. ${batch}`;
}
