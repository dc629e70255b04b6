// Images are loaded before they are needed, and nobody can answer for one that has not been on the screen.
import { pause } from "/static/api.js";

/** @typedef {HTMLImageElement & { address: string, ready: Promise<void> }} LoadingImage */
/** @type {Map<number, LoadingImage>} by item */
const loaded = new Map();
const TRIES = 3; // failures, while the server answers, after which an image is given up
const LATER = [401, 429, 502, 503, 504]; // logged out, too many requests, a server that restarts: no word on the image

/**
 * The image of a pick, loading or loaded. One that could not be loaded ahead is let go, and loaded again when it is shown.
 * @param {any} pick
 */
export function imageOf(pick) {
  let img = loaded.get(pick.item);
  if (!img) {
    img = loading(pick.image, `Example ${pick.item}`);
    img.ready.catch(() => loaded.get(pick.item) === img && loaded.delete(pick.item));
    loaded.set(pick.item, img);
  }
  return img;
}

/**
 * An image that begins to load; `img.ready` is resolved when it is decoded.
 * @param {string} address
 * @param {string} alt
 * @returns {LoadingImage}
 */
export function loading(address, alt) {
  const img = new Image();
  img.alt = alt;
  img.draggable = false;
  img.src = address;
  const ready = img.decode();
  ready.catch(() => {}); // `arrived` asks why
  return Object.assign(img, { address, ready });
}

// Load what comes next, and let go of everything else.
export function loadAhead(pick, ahead) {
  const wanted = [pick, ...ahead].filter((example) => example?.kind === "image");
  const items = new Set(wanted.map(({ item }) => item));
  for (const item of [...loaded.keys()]) if (!items.has(item)) loaded.delete(item);
  for (const example of wanted) imageOf(example);
}

// Resolved with whether an image has been decoded. While it is `wanted`, it is loaded again after each failure, with
// growing pauses, and `say` is called. It is given up only if the server has no such image, or if it fails several
// times although the server answers.
export async function arrived(img, wanted, say) {
  if (await decoded(img.ready)) return true;
  for (let failures = 0, wait = 250; wanted(); wait = Math.min(2 * wait, 8000)) {
    const status = await ask(img.address);
    if (status === 404) return false;
    if (status === 200) {
      img.src = img.address;
      if (await decoded(img.decode())) return true;
    }
    if (status && !LATER.includes(status)) failures += 1;
    if (failures === TRIES) return false;
    say(status ? "This image could not be loaded; trying again." : "The server does not respond; trying again.");
    await pause(wait);
  }
  return false;
}

const decoded = (ready) => ready.then(() => true, () => false);

// What the server answers now, whatever the browser has kept: a status, or 0 if there is no answer.
async function ask(address) {
  try {
    const answer = await fetch(address, { cache: "reload" });
    await answer.blob();
    return answer.status;
  } catch {
    return 0;
  }
}

// Milliseconds after something new was painted in which answers are ignored: nobody has seen it by then, and the second
// half of a double press would answer it.
export const GUARD = 250;

// Resolved when what is in the page now has been painted: after the frame that shows it. Hidden pages have no frames.
/** @returns {Promise<void>} */
export const painted = () =>
  new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())));
