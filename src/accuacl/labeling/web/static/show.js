// Drawing: the example, and why it was chosen.

import { root } from "/static/api.js";
import { at, make, prose, record } from "/static/elements.js";
import { arrived, imageOf, painted } from "/static/images.js";
import { look } from "/static/zoom.js";

let now = null; // the example that was drawn last

/**
 * Resolved with whether the example can be seen: when it is on the screen, or when it is clear that it cannot be shown.
 * @param {import("/static/api.js").Example} pick
 */
export async function example(pick) {
  now = pick;
  const view = at("view");
  at("why").replaceChildren(...("scores" in pick ? [reasons(pick)] : []));
  view.scrollTop = 0;
  if (pick.kind === "image") return image(pick, view);
  look(null);
  view.replaceChildren(pick.kind === "text" ? prose("p", pick.text, "text") : record(pick.fields ?? []));
  if (pick.kind === "file") view.append(player(pick.file, pick.media));
  await painted();
  return true;
}

/**
 * What a browser can play, plays; everything else is a link.
 * @param {string} [address]
 * @param {string} [media]
 */
function player(address, media) {
  const plays = media === "audio" || media === "video";
  const element = make(plays ? media : "a", plays ? undefined : "Open the file", "file");
  if (!plays) return Object.assign(element, { href: address, target: "_blank", rel: "noreferrer" });
  return Object.assign(element, { src: address, controls: true, preload: "auto" });
}

/**
 * Play or pause the sound or video that is shown; whether the key was for it. What has the focus keeps its own key.
 * @param {string} key
 */
export function playKey(key) {
  const media = /** @type {HTMLMediaElement | null} */ (at("view").querySelector("audio, video"));
  if (key !== " " || !media || document.activeElement?.closest("button, a, summary, audio, video")) return false;
  if (media.paused) media.play().catch(() => {}); // what cannot be played says so in the player
  else media.pause();
  return true;
}

async function image(pick, view) {
  const img = imageOf(pick);
  const note = make("p", "Loading the image …", "loading");
  note.setAttribute("role", "status");
  img.classList.add("coming");
  view.replaceChildren(img, note);
  look(img, `${root}/item/${pick.item}/full`);
  const here = await arrived(img, () => now === pick, (text) => (note.textContent = text));
  if (now !== pick) return false;
  if (!here) {
    look(null);
    img.remove();
    note.textContent = "This image cannot be shown. Skip it.";
    note.className = "bad";
    return false;
  }
  img.classList.remove("coming");
  note.remove();
  await painted();
  return true;
}

// Its rank and its scores in one line; what the scores mean, for those who open it.
function reasons(pick) {
  const line = make("summary", "Why this one: ");
  line.append(make("b", `choice ${pick.rank + 1} of ${pick.of}`));
  for (const [name, value] of Object.entries(pick.scores)) {
    if (name === "draw") line.append(", drawn at random"); // the number drawn says nothing
    else line.append(`, ${name} `, make("b", score(value)));
  }
  const list = make("ul");
  list.append(...Object.entries(pick.meanings).map(([name, text]) => make("li", `${name}: ${text}`)));
  const details = make("details");
  details.append(line, list);
  return details;
}

const score = (value) => (value === null ? "–" : Number(value).toPrecision(3));
