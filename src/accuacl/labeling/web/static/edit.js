// Classes, for leads: the dialog that changes one. It is one for all, so that a page with many stays small.
import { all, at } from "/static/elements.js";

for (const button of all("[data-edit]")) {
  button.addEventListener("click", () => {
    const { edit, name, text, examples } = button.dataset;
    at("edit-title").textContent = name;
    at("rename-name").value = name;
    at("guide-text").value = text;
    at("guide-examples").value = examples;
    delete at("rename").dataset.known;
    for (const verb of ["guide", "rename", "merge"]) at(verb).dataset.post = `/api/classes/${edit}/${verb}`;
    at("merge").reset();
    for (const option of at("merge-into").options) option.hidden = option.disabled = option.value === edit;
    for (const trouble of at("edit").querySelectorAll("[data-trouble]")) trouble.textContent = "";
    at("edit").showModal();
  });
}
at("edit-close").addEventListener("click", () => at("edit").close());
