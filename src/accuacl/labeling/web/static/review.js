// Select many answers and give them another label, or a comment.
import { newId, post } from "/static/api.js";

const at = (id) => document.getElementById(id);
const boxes = [...document.querySelectorAll("#grid input")];
const chosen = () => boxes.filter((box) => box.checked).map((box) => Number(box.value));

function count() {
  const n = chosen().length;
  at("chosen").textContent = n ? `${n} selected` : "Nothing is selected";
  at("select-all").textContent = n && n === boxes.length ? "Select none" : "Select all here";
}

at("grid").addEventListener("change", count);
at("select-all").addEventListener("click", () => {
  const all = chosen().length < boxes.length;
  for (const box of boxes) box.checked = all;
  count();
});

async function send(path, body) {
  const items = chosen();
  const tell = (text) => (at("review-trouble").textContent = text);
  if (!items.length) return tell("Select something first.");
  try {
    await post(path, { items, ...body, request: newId() }, () => tell("The server does not respond; trying again."));
    location.reload();
  } catch (error) {
    tell(error.message);
  }
}

at("relabel").addEventListener("submit", (event) => {
  event.preventDefault();
  send("/api/relabel", { class_id: Number(at("new-label").value) });
});
at("comment").addEventListener("submit", (event) => {
  event.preventDefault();
  send("/api/comment", { text: at("comment-text").value });
});
at("gold")?.addEventListener("click", () => send("/api/gold", { gold: true }));
at("not-gold")?.addEventListener("click", () => send("/api/gold", { gold: false }));
at("unflag")?.addEventListener("click", () => send("/api/unflag", {}));
for (const field of at("filters").querySelectorAll("select")) {
  field.addEventListener("change", () => at("filters").requestSubmit());
}
boxes.forEach((box) => (box.checked = false)); // browsers restore them
count();
