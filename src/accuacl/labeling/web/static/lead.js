// What leads bring in and take out beside the tasks: files of labels and gold answers, predictions for new data, and
// items that are to be forgotten.
import { post, root, sendFile } from "/static/api.js";
import { at, make } from "/static/elements.js";
import { onSubmit } from "/static/forms.js";

onSubmit("import", async () => {
  const [file] = at("import-file").files;
  if (at("import-what").value === "gold") {
    const { gold, labelled, total } = await sendFile("/api/gold/file", file);
    return `${gold} gold examples, of which ${labelled} are labelled so far; ${total} in all.`;
  }
  const taken = await sendFile("/api/labels/file", file, { new_classes: at("import-classes").checked });
  const more = taken.refusals - taken.refused.length;
  at("import-trouble").replaceChildren(...taken.refused.map((text) => make("li", text)));
  if (more) at("import-trouble").append(make("li", `${more} more rows`));
  const waiting = taken.waiting ? `, ${taken.waiting} wait for their task to begin` : "";
  const refused = taken.refusals ? `, ${taken.refusals} rows refused` : "";
  return `${taken.labels} labels taken, ${taken.known} were there already${waiting}${refused}.`;
});

onSubmit("predict", async () => {
  const { upload } = await post("/api/uploads", {});
  for (const file of at("predict-files").files) await sendFile(`/api/uploads/${upload}/files`, file);
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
