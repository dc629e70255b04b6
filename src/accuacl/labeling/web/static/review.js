// Select many answers and give them another label, or a comment.
import { newId, post } from "/static/api.js";
import { all, at } from "/static/elements.js";
import { sendEarly } from "/static/forms.js";

const boxes = all("#grid input");
const chosen = () => boxes.filter((box) => box.checked).map((box) => Number(box.value));

function count() {
  const n = chosen().length;
  at("chosen").textContent = n ? `${n} selected` : "Nothing is selected";
  const others = boxes.some((box) => box.checked && "others" in box.dataset); // annotators change only their own
  if (at("relabel")) at("relabel").hidden = others;
  if (at("relabel") && at("not-yours")) at("not-yours").hidden = !others;
  at("select-all").textContent = n && n === boxes.length ? "Select none" : "Select all here";
}

at("grid").addEventListener("change", count);
at("select-all").addEventListener("click", () => {
  const select = chosen().length < boxes.length;
  for (const box of boxes) box.checked = select;
  count();
});

// Nothing in the grid shows what `done` says, so the page is not loaded again then.
async function send(path, body, done) {
  const items = chosen();
  const tell = (text) => (at("review-trouble").textContent = text);
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
boxes.forEach((box) => (box.checked = false)); // browsers restore them
count();
sendEarly(all("section.bar form"));
