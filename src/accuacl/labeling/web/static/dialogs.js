// The dialogs of the labelling page: a new class, a flag, and what the classes mean. `about` is what the page has now.
import { get, newId, post, root } from "/static/api.js";
import { press } from "/static/classes.js";
import { at, make } from "/static/elements.js";
import { hasModifier, meantKey } from "/static/keys.js";

/** @type {any} */
let about = null;
/** @type {import("/static/api.js").Example | null} the one on the screen when the dialog was opened */
let asked = null;

export function openNew(now) {
  about = now;
  asked = now.seen();
  at("new-trouble").textContent = "";
  at("new-near").replaceChildren();
  at("new-name").value = "";
  at("new").showModal();
}

// Label the example with a class, if it is still the one that the dialog was opened for.
async function use(id, name) {
  const pick = about.pick();
  if (!pick || pick !== asked) return about.say(`There is a class ${name}.`);
  press(id);
  await about.save("/api/label", { item: pick.item, class_id: id }, `Saved: ${name}.`);
}

// A class that is called nearly the same is offered first.
function offer(near, again) {
  const box = at("new-near");
  box.replaceChildren(make("p", "There is already a class of nearly that name:"));
  for (const { id, name } of near) {
    const button = make("button", `Use “${name}”`);
    button.type = "button";
    button.addEventListener("click", () => {
      at("new").close();
      use(id, name);
    });
    box.append(button, " ");
  }
  const sure = make("button", "No, it is another one");
  sure.type = "button";
  sure.addEventListener("click", () => again());
  box.append(sure);
}

async function submit(how, sure) {
  const name = at("new-name").value.trim();
  const proposing = "propose" in at("new").dataset;
  try {
    const body = { name, sure, ...(proposing ? { request: newId() } : {}) };
    const { added, near, ...view } = await post(proposing ? "/api/proposals" : "/api/classes", body);
    if (near?.length) return offer(near, () => submit(how, true));
    at("new").close();
    about.draw(view);
    if (proposing) about.say(`${name} has been proposed; a lead decides.`);
    else if (how !== "add" && about.pick() && about.pick() === asked) await use(added, name);
    else about.say(`Class ${name} added.`);
  } catch (error) {
    at("new-trouble").textContent = error.message;
  }
}

at("new-cancel").addEventListener("click", () => at("new").close());
at("new-form").addEventListener("submit", (event) => {
  event.preventDefault();
  submit(event.submitter?.value, false);
});

export function flagIt(now) {
  if (!now.seen()) return;
  about = now;
  asked = now.seen();
  at("flag-trouble").textContent = "";
  at("flag-reason").value = "";
  at("flag-it").showModal();
}

at("flag-cancel").addEventListener("click", () => at("flag-it").close());
at("flag-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await post("/api/flag", { item: asked?.item, reason: at("flag-reason").value, request: newId() });
    at("flag-it").close();
    about.say("Flagged.");
  } catch (error) {
    at("flag-trouble").textContent = error.message;
  }
});

// Skip an example and say why: a reason of the list, by its number, or in one's own words.
export function sayWhy(now) {
  asked = now.answerable();
  if (!asked) return;
  about = now;
  at("skip-reason").value = "";
  at("skip-it").showModal();
  at("reasons").querySelector("button").focus();
}

at("skip-cancel").addEventListener("click", () => at("skip-it").close());
at("skip-it").addEventListener("keydown", (event) => {
  if (event.target === at("skip-reason") || hasModifier(event) || event.repeat) return;
  at("reasons").children[Number(meantKey(event)) - 1]?.click();
});
for (const button of at("reasons").children) {
  button.addEventListener("click", () => skipBecause(button.dataset.reason));
}
at("skip-form").addEventListener("submit", (event) => {
  event.preventDefault();
  skipBecause(at("skip-reason").value.trim());
});

function skipBecause(reason) {
  at("skip-it").close();
  if (about.answerable() === asked) about.skip(reason); // otherwise another example has come meanwhile
}

export async function showGuidelines() {
  const list = at("guidelines-list");
  list.replaceChildren(make("p", "Loading …"));
  at("guidelines").showModal();
  try {
    const { classes } = await get("/api/guidelines");
    list.replaceChildren(...classes.flatMap(section));
    if (!classes.length) list.append(make("p", "Nothing has been written yet. Leads write guidelines under Classes."));
  } catch (error) {
    list.replaceChildren(make("p", error.message));
  }
}
at("guidelines-close").addEventListener("click", () => at("guidelines").close());

function section({ name, text, examples }) {
  const words = make("p", text, "words");
  const row = make("div", undefined, "examples");
  for (const { item, kind, snip } of examples) {
    if (kind === "image") {
      const image = Object.assign(new Image(), { src: `${root}/item/${item}/thumb`, alt: `An example of ${name}` });
      row.append(image);
    } else row.append(make("blockquote", snip));
  }
  return [make("h3", name), words, row];
}
