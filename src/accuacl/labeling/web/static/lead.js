// What leads bring in and take out beside the tasks: files of labels and gold answers, predictions for new data, and
// items that are to be forgotten.
import { post, root, sendFile } from "/static/api.js";
import { at, make } from "/static/elements.js";
import { sendEarly } from "/static/forms.js";

/**
 * Do something that takes a while, with its button disabled.
 * @param {string} id of the form; its words are in ID-said, and what goes wrong in ID-trouble
 * @param {() => Promise<string>} act gives the sentence that says what was done
 */
function onSubmit(id, act) {
  at(id)?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = at(id).querySelector("button");
    at(`${id}-trouble`).replaceChildren();
    at(`${id}-said`).textContent = "Please wait …";
    button.disabled = true;
    try {
      at(`${id}-said`).textContent = await act();
    } catch (error) {
      at(`${id}-said`).textContent = "";
      at(`${id}-trouble`).replaceChildren(make("li", error.message));
    } finally {
      button.disabled = false;
    }
  });
}

onSubmit("import", async () => {
  const [file] = at("import-file").files;
  const name = encodeURIComponent(file.name.slice(-200));
  if (at("import-what").value === "gold") {
    const { gold, labelled, total } = await sendFile(`/api/gold/file?name=${name}`, file);
    return `${gold} gold examples, of which ${labelled} are labelled so far; ${total} in all.`;
  }
  const classes = at("import-classes").checked;
  const taken = await sendFile(`/api/labels/file?name=${name}&new_classes=${classes}`, file);
  const more = taken.refusals - taken.refused.length;
  at("import-trouble").replaceChildren(...taken.refused.map((text) => make("li", text)));
  if (more) at("import-trouble").append(make("li", `${more} more rows`));
  const waiting = taken.waiting ? `, ${taken.waiting} wait for their task to begin` : "";
  const refused = taken.refusals ? `, ${taken.refusals} rows refused` : "";
  return `${taken.labels} labels taken, ${taken.known} were there already${waiting}${refused}.`;
});

onSubmit("predict", async () => {
  const { upload } = await post("/api/uploads", {});
  for (const file of at("predict-files").files) {
    await sendFile(`/api/uploads/${upload}/files?name=${encodeURIComponent(file.name.slice(-200))}`, file);
  }
  const column = encodeURIComponent(at("predict-column")?.value || "text");
  const link = Object.assign(make("a"), { href: `${root}/export?upload=${upload}&column=${column}`, download: "" });
  document.body.append(link);
  link.click();
  link.remove();
  return "The file is being made; your browser saves it, with predictions.csv in it.";
});

onSubmit("forget", async () => {
  const items = at("forget-items").value;
  const count = items.split("\n").filter((line) => line.trim()).length;
  if (!confirm(`Forget ${count === 1 ? "this item" : `these ${count} items`} for good, with all labels?`)) return "";
  const { items: gone, sentences } = await post("/api/forget", { items });
  at("forget-items").value = "";
  return `${gone} ${gone === 1 ? "item is" : "items are"} forgotten. ${sentences.join(" ")}`;
});

sendEarly(["import", "predict", "forget"].map(at).filter(Boolean));
