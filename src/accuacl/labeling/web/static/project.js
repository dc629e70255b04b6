// Data that are dropped on the page: one file after another, then a task is made of them.
import { post } from "/static/api.js";

const at = (id) => document.getElementById(id);
const SHOWN = 5; // files that were refused, by name
let busy = false;

async function sendFile(upload, file) {
  const headers = { "Content-Type": "application/octet-stream" };
  const path = `/api/uploads/${upload}/files?name=${encodeURIComponent(file.name.slice(-200))}`;
  const answer = await fetch(path, { method: "POST", headers, body: file });
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).detail ?? answer.statusText);
}

function refuse(text) {
  const list = at("sent-trouble");
  if (list.childElementCount >= SHOWN) return;
  list.append(Object.assign(document.createElement("li"), { textContent: text }));
}

async function send(files) {
  if (busy || !files.length) return;
  busy = true;
  at("sent-trouble").replaceChildren();
  at("sent").hidden = false;
  let good = 0;
  try {
    const { upload } = await post("/api/uploads", {});
    for (const [i, file] of files.entries()) {
      at("sent").value = i / files.length;
      at("sent-said").textContent = `Sending ${i + 1} of ${files.length} …`;
      try {
        await sendFile(upload, file);
        good += 1;
      } catch (error) {
        refuse(`${file.name}: ${error.message}`);
      }
    }
    at("sent").value = 1;
    if (!good) throw new Error("Nothing was added.");
    at("sent-said").textContent = "Checking them …";
    const column = at("column")?.value || "text";
    const { task, count, bad } = await post(`/api/uploads/${upload}/finish`, { column });
    const left = bad + files.length - good;
    at("sent-said").textContent = `Task ${task} has been added: ${count} examples${left ? `, ${left} files left out` : ""}.`;
  } catch (error) {
    at("sent-said").textContent = error.message;
  } finally {
    busy = false;
    at("sent").hidden = true;
    at("files").value = "";
  }
}

at("files").addEventListener("change", () => send([...at("files").files]));
const drop = at("drop");
for (const name of ["dragenter", "dragover"]) {
  drop.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.add("over-it");
  });
}
drop.addEventListener("dragleave", () => drop.classList.remove("over-it"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over-it");
  send([...event.dataTransfer.files]);
});
