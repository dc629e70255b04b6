// Classes, for leads: add one, and the dialog that changes one; it is one for all, so that a page with many stays small.
import { post } from "/static/api.js";

const at = (id) => document.getElementById(id);

for (const button of document.querySelectorAll("[data-edit]")) {
  button.addEventListener("click", () => {
    const { edit, name, text, examples } = button.dataset;
    at("edit-title").textContent = name;
    at("rename-name").value = name;
    at("guide-text").value = text;
    at("guide-examples").value = examples;
    for (const verb of ["guide", "rename", "merge"]) at(verb).dataset.post = `/api/classes/${edit}/${verb}`;
    at("merge").reset();
    for (const option of at("merge-into").options) option.hidden = option.disabled = option.value === edit;
    for (const trouble of at("edit").querySelectorAll("[data-trouble]")) trouble.textContent = "";
    at("edit").showModal();
  });
}
at("edit-close").addEventListener("click", () => at("edit").close());

at("add-class").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = at("add-name").value.trim();
  const known = at("add-trouble").dataset.sure === name; // the second time it is meant
  try {
    const { near } = await post("/api/classes", { name, sure: known });
    if (!near?.length) return location.reload();
    at("add-trouble").dataset.sure = name;
    const names = near.map((one) => `“${one.name}”`).join(", ");
    at("add-trouble").textContent = `There is already ${names}. Press Add again if this is another class.`;
  } catch (error) {
    at("add-trouble").textContent = error.message;
  }
});
