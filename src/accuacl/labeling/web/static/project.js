// Data become the next task: files are dropped or chosen, or a place on the server is; then a button says what for. Of a
// table the columns are shown first, to be told what they are for.
import { get, post, sendFile } from "/static/api.js";
import { droppedFiles } from "/static/dropped.js";
import { at, make } from "/static/elements.js";

/** @typedef {{ column?: string, task?: string | null, label?: string, id?: string, ignored?: string[] }} Columns */

const SHOWN = 5; // files that were refused, by name
const { kind } = at("add-data").dataset;
const ROLES = {
  texts: { "": "not used", text: "the texts", label: "labels", task: "names of tasks" },
  tables: { "": "learn from it", id: "names of the rows", label: "labels", task: "names of tasks", ignored: "leave out" },
  vectors: { "": "as it is", label: "labels", task: "names of tasks" },
};
/** @type {File[]} */
let staged = [];
let upload = ""; // what a table was sent under, before it is added
let place = ""; // on the server
/** @type {any} the tasks, the present one and whether it is finished */
let plan = null;
let busy = false; // files are being sent; more can be staged meanwhile
const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

async function stage(files) {
  if (!files.length || !(await begin())) return;
  staged = at("files").multiple ? [...new Set([...staged, ...files])] : files.slice(0, 1);
  const size = staged.reduce((sum, file) => sum + file.size, 0) / 2 ** 20;
  const what = staged.length === 1 ? staged[0].name : `${staged.length} files`;
  at("staged-said").textContent = `${what}, ${size < 0.1 ? "less than 0.1" : size.toFixed(1)} MB`;
  if (kind !== "images") {
    try {
      discard();
      ({ upload } = await post("/api/uploads", {}));
      await sendFile(`/api/uploads/${upload}/files`, staged[0]);
      showColumns(await post(`/api/uploads/${upload}/preview`, {}));
    } catch (error) {
      refuse(`${staged[0].name}: ${error.message}`);
      unstage();
      return;
    }
  }
  showStaged();
}

async function stagePlace(chosen) {
  if (!(await begin())) return;
  unstage();
  place = chosen;
  at("staged-said").textContent = `${chosen}, on the server`;
  try {
    if (kind !== "images" && kind !== "files") showColumns(await post("/api/places/preview", { place }));
  } catch (error) {
    refuse(error.message);
    unstage();
    return;
  }
  showStaged();
}

// The plan is fetched, and what was said of earlier files is removed.
async function begin() {
  try {
    plan = await get("/api/tasks");
  } catch (error) {
    refuse(error.message);
    return false;
  }
  if (!busy) {
    at("sent-trouble").replaceChildren();
    at("sent-said").textContent = "";
  }
  return true;
}

function showStaged() {
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
  place = "";
  at("staged").hidden = true;
  at("columns").replaceChildren();
  at("columns-box").hidden = true;
  at("files").value = "";
}

function discard() {
  if (upload) post(`/api/uploads/${upload}/discard`, {}).catch(() => {});
  upload = "";
}

// Columns

function showColumns({ columns, rows }) {
  const fixed = kind === "tables" && plan.tasks.length > 0; // the first table has settled what columns are for
  const head = make("tr");
  const uses = make("tr");
  const usual = usualText(columns);
  for (const { name } of columns) {
    head.append(Object.assign(make("th", name), { scope: "col" }));
    const cell = make("td");
    cell.append(fixed ? "as in the first task" : roles(name, name === usual));
    uses.append(cell);
  }
  const lines = (columns[0]?.values ?? []).map((_, i) => {
    const line = make("tr");
    for (const { values } of columns) line.append(make("td", values[i]));
    return line;
  });
  at("columns").replaceChildren(head, uses, ...lines);
  at("columns-said").textContent = `${counted(rows, "row")}, ${counted(columns.length, "column")}`;
  at("columns-box").hidden = false;
}

function roles(name, isText) {
  const select = make("select");
  select.dataset.column = name;
  select.setAttribute("aria-label", `What ${name} is for`);
  for (const [role, text] of Object.entries(ROLES[kind])) select.append(new Option(text, role));
  select.value = isText ? "text" : ["id", "task"].includes(name) && name in ROLES[kind] ? name : "";
  return select;
}

// The column called text, or the one with the longest values.
function usualText(columns) {
  if (kind !== "texts") return undefined;
  const length = ({ values }) => values.reduce((sum, value) => sum + value.length, 0);
  const longest = columns.reduce((a, b) => (b && length(b) > length(a) ? b : a), columns[0]);
  return (columns.find(({ name }) => name === "text") ?? longest)?.name;
}

/** @returns {Columns} */
function chosenColumns() {
  const selects = [...at("columns").querySelectorAll("select")];
  if (!selects.length) return {};
  const of = (role) => selects.filter(({ value }) => value === role).map(({ dataset }) => dataset.column);
  for (const role of ["text", "id", "label", "task"]) {
    if (of(role).length > 1) throw new Error(`${of(role).join(" and ")} cannot both be ${ROLES[kind][role]}.`);
  }
  if (kind === "texts" && !of("text").length) throw new Error("Say which column has the texts.");
  const [column = "text"] = of("text");
  return { column, task: of("task")[0] ?? "", label: of("label")[0] ?? "", id: of("id")[0] ?? "", ignored: of("ignored") };
}

// Adding

function refuse(text) {
  const list = at("sent-trouble");
  if (list.childElementCount >= SHOWN) return;
  list.append(make("li", text));
}

// The number of files that the server has taken.
async function sendAll(under, files) {
  let good = 0;
  for (const [i, file] of files.entries()) {
    at("sent").value = i / files.length;
    at("sent-said").textContent = `Sending ${i + 1} of ${files.length} …`;
    try {
      await sendFile(`/api/uploads/${under}/files`, file);
      good += 1;
    } catch (error) {
      refuse(`${file.name}: ${error.message}`);
    }
  }
  at("sent").value = 1;
  return good;
}

// The answer of the server, and how many files it has refused.
async function addStaged(columns) {
  const files = staged;
  const [from, under] = [place, upload];
  upload = "";
  unstage();
  at("sent-said").textContent = "Checking them …";
  if (from) return { added: await post("/api/places/add", { place: from, ...columns }), not: 0 };
  if (under) return { added: await post(`/api/uploads/${under}/finish`, columns), not: 0 };
  at("sent").hidden = false;
  const { upload: begun } = await post("/api/uploads", {});
  const good = await sendAll(begun, files);
  if (!good) throw new Error("Nothing was added.");
  at("sent-said").textContent = "Checking them …";
  return { added: await post(`/api/uploads/${begun}/finish`, {}), not: files.length - good };
}

async function add(now) {
  if (busy || !(staged.length || place)) return;
  const { present } = plan;
  at("sent-trouble").replaceChildren();
  let columns = {};
  try {
    columns = chosenColumns();
  } catch (error) {
    refuse(error.message);
    return;
  }
  if (now && !confirm(`End task ${present + 1} with the labels that it has?`)) return;
  busy = true;
  try {
    const { added, not } = await addStaged(columns); // those refused are no part of the task, whose own are left out
    const { task, tasks, count, bad } = added;
    const which = tasks > 1 ? `Tasks ${task} to ${task + tasks - 1} have` : `Task ${task} has`;
    const without = bad ? `, ${bad} left out` : "";
    const refused = not ? ` ${not === 1 ? "One file was" : `${not} files were`} refused.` : "";
    at("sent-said").textContent = `${which} been added: ${counted(count, "example")}${without}.${refused}`;
    if (now) await post(`/api/tasks/${present}/end`, {});
  } catch (error) {
    at("sent-said").textContent = "";
    refuse(error.message);
  } finally {
    busy = false;
    at("sent").hidden = true;
    follow();
  }
}

at("files").addEventListener("change", () => stage([...at("files").files]));
stage([...at("files").files]); // chosen before this script was there
at("add-later").addEventListener("click", () => add(false));
at("add-now").addEventListener("click", () => add(true));
at("add-not").addEventListener("click", () => {
  unstage();
  discard();
  at("files").focus();
});

// Places on the server

async function look(under) {
  const list = at("places");
  try {
    const { folders, files, more } = await get(`/api/places?under=${encodeURIComponent(under)}`);
    const lines = [];
    if (under) lines.push(placeButton("..", () => look(under.includes("/") ? under.slice(0, under.lastIndexOf("/")) : "")));
    for (const folder of folders) lines.push(placeButton(`${folder.split("/").at(-1)}/`, () => look(folder)));
    const folder = kind === "images" || kind === "files";
    for (const file of folder ? [] : files) lines.push(placeButton(file.split("/").at(-1), () => stagePlace(file)));
    list.replaceChildren(...lines);
    at("places-said").textContent = `${under || "Folders on the server"}${more ? ": the first 500" : ""}`;
    at("places-use").hidden = !folder || !under;
    at("places-use").dataset.place = under;
    at("places-use").textContent = `Use ${under}${files.length ? ` (${files.length}${more ? " or more" : ""} files, and those below)` : ""}`;
    list.querySelector("button")?.focus();
  } catch (error) {
    at("places-said").textContent = error.message;
  }
}

function placeButton(text, act) {
  const line = make("li");
  const button = make("button", text, "small");
  button.addEventListener("click", act);
  line.append(button);
  return line;
}

at("places-open")?.addEventListener("click", () => {
  at("places-box").hidden = !at("places-box").hidden;
  at("places-open").setAttribute("aria-expanded", String(!at("places-box").hidden));
  if (!at("places-box").hidden) look("");
});
at("places-use")?.addEventListener("click", () => stagePlace(at("places-use").dataset.place));

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
