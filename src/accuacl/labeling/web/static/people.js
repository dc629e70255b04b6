// Invitations: a link that is shown once, to be copied or scanned.
import { post } from "/static/api.js";
import { all, at, draw, make } from "/static/elements.js";
import { sendEarly } from "/static/forms.js";

const QUIET = 4; // modules of white around the code, which scanners need

function drawCode(rows) {
  const size = rows.length + 2 * QUIET;
  const view = { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": "QR code of the link", "shape-rendering": "crispEdges" };
  const dark = rows.flatMap((row, y) => [...row].map((bit, x) => (bit === "1" ? `M${x + QUIET} ${y + QUIET}h1v1h-1z` : "")));
  const svg = draw("svg", view);
  svg.append(draw("path", { d: dark.join("") }));
  return svg;
}

async function invite(path, body) {
  at("invite-trouble").textContent = "";
  try {
    const { link, until, code, here } = await post(path, body);
    at("invitation-link").value = link;
    at("invitation-until").textContent = until;
    at("invitation-said").textContent = "";
    const words = (here ?? "").split(/(--[a-z][a-z-]*)/); // every second one is an option of the command
    at("invitation-here").replaceChildren(...words.map((word, i) => (i % 2 ? make("code", word) : word)));
    at("invitation-send").hidden = Boolean(here);
    at("invitation-code").replaceChildren(...(here ? [] : [drawCode(code)]));
    at("invitation").hidden = false;
    at("invitation").focus();
  } catch (error) {
    at("invite-trouble").textContent = error.message;
  }
}

at("invite").addEventListener("submit", (event) => {
  event.preventDefault();
  invite("/api/people", { name: at("invite-name").value, lead: at("invite-lead").checked });
});
sendEarly([at("invite")]);
for (const button of all("[data-invite]")) {
  button.addEventListener("click", () => invite(`/api/people/${button.dataset.invite}/invite`, {}));
}
at("invitation-copy").addEventListener("click", async () => {
  at("invitation-link").select();
  try {
    await navigator.clipboard.writeText(at("invitation-link").value);
    at("invitation-said").textContent = "Copied.";
  } catch {
    at("invitation-said").textContent = "Press Ctrl+C to copy it."; // over plain HTTP browsers do not allow more
  }
});
