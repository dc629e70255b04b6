// The index of a server with several projects: open one, or make a new one.
import { post } from "/static/api.js";
import { all, at } from "/static/elements.js";
import { sendEarly } from "/static/forms.js";

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

at("new")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = at("new").querySelector("button");
  button.disabled = true;
  at("new-trouble").textContent = "";
  at("new-said").textContent = "Please wait …";
  const [name, kind, classes] = ["name", "kind", "classes"].map((field) => at(`new-${field}`).value);
  const body = { name, kind, classes, per_round: at("new-per-round").valueAsNumber, rounds: at("new-rounds").valueAsNumber };
  try {
    const { next } = await post("/api/projects", body);
    location.assign(next);
  } catch (error) {
    at("new-trouble").textContent = error.message;
    at("new-said").textContent = "";
    button.disabled = false;
  }
});
sendEarly([at("new")].filter(Boolean));
