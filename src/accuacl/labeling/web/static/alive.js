// Every page. Pages say when the server is gone, and when it is back. Those on which people answer say so themselves, with what has
// not been saved.
import { Refused, get, pause } from "/static/api.js";
import { at, make } from "/static/elements.js";

const EVERY = 5000; // milliseconds
const AGAIN = 1000; // while it is gone
const BACK = 4000; // how long it is said that it is back

const box = make("div", undefined, "over");
const note = make("p", undefined, "note bad");
note.id = "gone";
note.hidden = true;
note.setAttribute("role", "alert");
box.append(note);

async function isThere() {
  try {
    await get("/api/changes");
    return true;
  } catch (error) {
    return error instanceof Refused && error.status < 502; // it has answered
  }
}

async function watch() {
  for (let there = true; ; ) {
    await pause(there ? EVERY : AGAIN);
    if (document.hidden) continue;
    const before = there;
    there = await isThere();
    if (!there) note.textContent = "The server does not respond; trying again. What you change now is not saved.";
    else if (!before) note.textContent = "The server is back.";
    note.classList.toggle("bad", !there);
    if (!there || !before) note.hidden = false;
    if (there && !before) pause(BACK).then(() => (note.hidden = note.textContent === "The server is back." || note.hidden));
  }
}

// On a phone the list of pages scrolls: the present one is in view.
document.querySelector(".top [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

if (!at("trouble")) {
  document.body.append(box);
  watch();
}
