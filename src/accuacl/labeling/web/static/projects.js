// The index of a server with several projects: open one, or make a new one.
import { post } from "/static/api.js";
import { all, at } from "/static/elements.js";
import { onSubmit } from "/static/forms.js";

for (const button of all("[data-open]")) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const { next } = await post(`/api/projects/${encodeURIComponent(button.dataset.open)}/open`, {});
      location.assign(next);
    } catch (error) {
      at("open-trouble").textContent = error.message;
      button.disabled = false;
    }
  });
}

onSubmit("new", async () => {
  const [name, kind, classes] = ["name", "kind", "classes"].map((field) => at(`new-${field}`).value);
  const body = { name, kind, classes, per_round: at("new-per-round").valueAsNumber, rounds: at("new-rounds").valueAsNumber };
  const { next } = await post("/api/projects", body);
  location.assign(next);
  return new Promise(() => {}); // the button stays disabled until the next page is there
});
