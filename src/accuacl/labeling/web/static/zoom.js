// Looking closely at an image: zoom, pan, brightness, contrast, and hard pixels instead of smooth ones.
import { at } from "/static/elements.js";

const view = at("view");
const tools = at("tools");
const MOST = 16;
/** @type {HTMLImageElement | null} */
let img = null;
let full = ""; // the address of the image in more pixels, fetched when someone zooms in
let scale = 1;
let x = 0;
let y = 0;
/** @type {Map<number, number[]>} the fingers on the image, or the mouse: [x, y], from the middle of the view */
const held = new Map();

export function look(image, address) {
  img = image;
  full = address ?? "";
  tools.hidden = at("adjust").hidden = !img;
  reset();
}

function reset() {
  scale = 1;
  x = y = 0;
  apply();
}

// How far the middle of the image may be from that of the view: its edges never come inside those of the view.
function reach() {
  const [width, height] = [img?.clientWidth ?? 0, img?.clientHeight ?? 0];
  const fit = Math.min(width / (img?.naturalWidth || width || 1), height / (img?.naturalHeight || height || 1));
  const beyond = (size, room) => Math.max(0, (scale * fit * (size || room) - room) / 2);
  return [beyond(img?.naturalWidth, width), beyond(img?.naturalHeight, height)];
}

const within = (value, most) => Math.min(most, Math.max(-most, value));

function apply() {
  if (!img) return;
  const [across, down] = reach();
  x = within(x, across);
  y = within(y, down);
  img.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
  img.style.filter = `brightness(${at("brightness").value}%) contrast(${at("contrast").value}%)`;
  img.classList.toggle("pixels", at("pixels").checked);
  view.classList.toggle("zoomed", scale > 1);
  at("zoom-level").textContent = `${Math.round(100 * scale)} %`;
}

// Zoom around a point of the view, given from its middle.
function zoom(factor, px = 0, py = 0) {
  if (!img) return;
  const now = Math.min(MOST, Math.max(1, scale * factor));
  x = now === 1 ? 0 : px - ((px - x) * now) / scale;
  y = now === 1 ? 0 : py - ((py - y) * now) / scale;
  scale = now;
  if (scale > 1 && full) {
    const mine = img;
    const fine = new Image();
    fine.src = full;
    full = "";
    fine.decode().then(() => mine === img && (img.src = fine.src), () => {});
  }
  apply();
}

const fromMiddle = (event) => {
  const box = view.getBoundingClientRect();
  return [event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2];
};

view.addEventListener(
  "wheel",
  (event) => {
    if (!img || !(event.ctrlKey || scale > 1)) return; // a wheel alone scrolls the page, until one has zoomed in
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, ...fromMiddle(event));
  },
  { passive: false },
);
view.addEventListener("dblclick", (event) => (scale > 1 ? reset() : zoom(3, ...fromMiddle(event))));
// One finger, or the mouse, moves the image once it is zoomed in; two fingers zoom and move it.
view.addEventListener("pointerdown", (event) => {
  if (!img) return;
  held.set(event.pointerId, fromMiddle(event));
  if (scale > 1 || held.size > 1) view.setPointerCapture(event.pointerId);
});
view.addEventListener("pointermove", (event) => {
  const before = held.get(event.pointerId);
  if (!before) return;
  const now = fromMiddle(event);
  held.set(event.pointerId, now);
  const other = [...held].find(([id]) => id !== event.pointerId)?.[1];
  if (scale === 1 && !other) return;
  const share = other ? 0.5 : 1; // the middle between two fingers moves half as far as one of them
  x += share * (now[0] - before[0]);
  y += share * (now[1] - before[1]);
  if (!other) return apply();
  const far = (point) => Math.max(1, Math.hypot(point[0] - other[0], point[1] - other[1]));
  zoom(far(now) / far(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
});
for (const name of ["pointerup", "pointercancel", "pointerleave"]) {
  view.addEventListener(name, (event) => held.delete(event.pointerId));
}

at("zoom-in").addEventListener("click", () => zoom(1.5));
at("zoom-out").addEventListener("click", () => zoom(1 / 1.5));
at("zoom-reset").addEventListener("click", () => {
  at("brightness").value = at("contrast").value = 100;
  reset();
});
at("adjust").addEventListener("click", () => {
  at("adjust").ariaExpanded = tools.classList.toggle("open"); // on a phone, where they are closed at first
});
for (const id of ["brightness", "contrast", "pixels"]) at(id).addEventListener("input", apply);

// Keys of the zoomed view; whether it was one.
export function zoomKey(key) {
  if (!img) return false;
  const step = 60;
  const moves = { arrowleft: [step, 0], arrowright: [-step, 0], arrowup: [0, step], arrowdown: [0, -step] };
  if (key === "+" || key === "=") zoom(1.5);
  else if (key === "-") zoom(1 / 1.5);
  else if (key === "escape" && scale > 1) reset();
  else if (moves[key] && scale > 1) {
    x += moves[key][0];
    y += moves[key][1];
    apply();
  } else return false;
  return true;
}
