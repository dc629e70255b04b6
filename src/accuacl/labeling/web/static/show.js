// Drawing: the example, and why it was chosen.

import { make, record } from "/static/elements.js";
import { forget, imageOf, painted } from "/static/images.js";
import { look } from "/static/zoom.js";

const at = (id) => document.getElementById(id);

// Resolved with whether the example can be seen, when it is on the screen.
export async function example(pick) {
  const view = at("view");
  at("why").replaceChildren(...reasons(pick));
  view.scrollTop = 0;
  view.setAttribute("aria-busy", "true");
  if (pick.kind !== "image") {
    look(null);
    view.replaceChildren(pick.kind === "text" ? make("p", pick.text, "text") : record(pick.fields));
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
