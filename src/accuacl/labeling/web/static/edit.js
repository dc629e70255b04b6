// The dialog that renames or merges a class: one for all classes, so that a page with many of them stays small.
const at = (id) => document.getElementById(id);

for (const button of document.querySelectorAll("[data-edit]")) {
  button.addEventListener("click", () => {
    const { edit, name } = button.dataset;
    at("edit-title").textContent = name;
    at("rename-name").value = name;
    at("rename").dataset.post = `/api/classes/${edit}/rename`;
    at("merge").dataset.post = `/api/classes/${edit}/merge`;
    at("merge").reset();
    for (const option of at("merge-into").options) option.hidden = option.disabled = option.value === edit;
    for (const trouble of at("edit").querySelectorAll("[data-trouble]")) trouble.textContent = "";
    at("edit").showModal();
  });
}
at("edit-close").addEventListener("click", () => at("edit").close());
