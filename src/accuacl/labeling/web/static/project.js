// Files become the next task: they are dropped or chosen, then sent one after another when a button says what for.
import { get, post } from "/static/api.js";
import { droppedFiles } from "/static/dropped.js";
import { at } from "/static/elements.js";

const SHOWN = 5; // files that were refused, by name
/** @type {File[]} */
let staged = [];
/** @type {any} the tasks, the present one and whether it is finished */
let plan = null;
let busy = false; // files are being sent; more can be staged meanwhile
const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

async function stage(files) {
  if (!files.length) return;
  try {
    plan = await get("/api/tasks");
  } catch (error) {
    refuse(error.message);
    return;
  }
  staged = at("files").multiple ? [...staged, ...files] : files.slice(0, 1);
  if (!busy) {
    at("sent-trouble").replaceChildren();
    at("sent-said").textContent = "";
  }
  const size = staged.reduce((sum, file) => sum + file.size, 0) / 2 ** 20;
  const what = staged.length === 1 ? staged[0].name : `${staged.length} files`;
  at("staged-said").textContent = `${what}, ${size < 0.1 ? "less than 0.1" : size.toFixed(1)} MB`;
  label();
  at("staged").hidden = false;
  at("add-later").focus();
}

// A task begins when those before it are done: at once, or when the present one ends, which can be said here too.
function label() {
  const next = plan.tasks.length + 1;
  const present = plan.present + 1;
  const free = plan.finished || !plan.tasks.length;
  at("add-later").textContent = free ? `Start task ${next}` : `Add as task ${next}`;
  at("add-now").hidden = free || next > present + 1;
  at("add-now").textContent = `End task ${present} and start task ${next}`;
  at("add-later").disabled = at("add-now").disabled = busy;
  at("staged-when").textContent = free ? "" : `Task ${next} begins when task ${next - 1} is done.`;
}

// What the buttons say stays true while files wait: a task may end meanwhile.
async function follow() {
  if (at("staged").hidden) return;
  plan = await get("/api/tasks").catch(() => plan);
  label();
}
addEventListener("project-changed", follow);

function unstage() {
  staged = [];
  at("staged").hidden = true;
  at("files").value = "";
}

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

// The number of files that the server has taken.
async function sendAll(upload, files) {
  let good = 0;
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
  return good;
}

async function add(now) {
  if (busy || !staged.length) return;
  const { present } = plan;
  if (now && !confirm(`End task ${present + 1} with the labels that it has?`)) return;
  busy = true;
  const files = staged;
  unstage();
  at("sent").hidden = false;
  try {
    const { upload } = await post("/api/uploads", {});
    const good = await sendAll(upload, files);
    if (!good) throw new Error("Nothing was added.");
    at("sent-said").textContent = "Checking them …";
    const column = at("column")?.value || "text";
    const { task, tasks, count, bad } = await post(`/api/uploads/${upload}/finish`, { column });
    const not = files.length - good; // these are no part of the task, whose own are those it leaves out
    const which = tasks > 1 ? `Tasks ${task} to ${task + tasks - 1} have` : `Task ${task} has`;
    const without = bad ? `, ${bad} left out` : "";
    const refused = not ? ` ${not === 1 ? "One file was" : `${not} files were`} refused.` : "";
    at("sent-said").textContent = `${which} been added: ${counted(count, "example")}${without}.${refused}`;
    if (now) await post(`/api/tasks/${present}/end`, {});
  } catch (error) {
    refuse(error.message);
  } finally {
    busy = false;
    at("sent").hidden = true;
    follow();
  }
}

at("files").addEventListener("change", () => stage([...at("files").files]));
at("add-later").addEventListener("click", () => add(false));
at("add-now").addEventListener("click", () => add(true));
at("add-not").addEventListener("click", () => {
  unstage();
  at("files").focus();
});

// Files can be dropped anywhere on the page: elsewhere the browser would leave it and open them.
for (const name of ["dragenter", "dragover"]) {
  addEventListener(name, (event) => {
    event.preventDefault();
    at("drop").classList.add("over-it");
  });
}
addEventListener("dragleave", (event) => event.relatedTarget ?? at("drop").classList.remove("over-it"));
addEventListener("drop", async (event) => {
  event.preventDefault();
  at("drop").classList.remove("over-it");
  stage(await droppedFiles(event.dataTransfer));
});
