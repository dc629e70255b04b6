// How far the round is, what people wait for, and what the last training has brought.
const at = (id) => document.getElementById(id);

export function progress(state) {
  at("round-name").textContent = `Task ${state.task + 1}, round ${state.round + 1}${state.rounds ? ` of ${state.rounds}` : ""}`;
  const done = state.labelled + state.skipped;
  const skipped = state.skipped ? `, ${state.skipped} skipped` : "";
  at("round-count").textContent = state.total ? `${state.labelled} of ${state.total} labelled${skipped}` : "";
  bar("round-bar", done, state.total);
  at("preparing").hidden = !state.preparing || state.phase === "training";
  const how = state.text ? ` ${state.text}.` : "";
  at("preparing").textContent = state.preparing ? `The rest of this round is being chosen meanwhile.${how}` : "";
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
  const preparing = training && (state.preparing || !state.total || state.stage === "preparing");
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
export function learned({ trained }) {
  const batch = "Here is the next batch.";
  if (!trained) return `The model has been trained. ${batch}`;
  const { before, now, count } = trained;
  const change = before === null ? `Accuracy: ${now} %` : `Accuracy: ${before} → ${now} %`;
  const held = `${count} held-out example${count === 1 ? "" : "s"}`;
  return `The model has been trained. ${change}, on ${held}. ${batch}`;
}
