// The map of the pool: a dot for each example, which is shown when the pointer or the arrow keys come to it.
import { get, root } from "/static/api.js";
import { at, draw, make } from "/static/elements.js";
import { mark, markOf } from "/static/marks.js";

const STATES = ["unlabelled", "picked", "labelled", "skipped"];
const SAID = ["not labelled", "to be labelled now", "labelled", "skipped"];
const ORDER = [0, 3, 2, 1]; // what is drawn last lies on top
const LISTED = 16; // classes with their marks beside the map, those with most examples
/** @typedef {{ item: number, x: number, y: number, state: number, label: number }} MapPoint */
/** @type {MapPoint[]} */
let points = [];
/** @type {Map<number, any>} by item */
let dots = new Map();
/** @type {Record<number, string>} */
let names = {};
let images = false;
/** @type {MapPoint | null} the point that is shown */
let current = null;

// A dot; of a labelled example it has the colour and the shape of its class.
/** @param {MapPoint} point */
function shape({ x, y, label }, r, kind) {
  if (label < 0) return draw("circle", { cx: x, cy: y, r, class: kind });
  const marked = `${kind} ${markOf(label)}`;
  const corners = { m1: [[-r, -r], [r, -r], [r, r], [-r, r]], m2: [[0, -1.35 * r], [1.35 * r, 0], [0, 1.35 * r], [-1.35 * r, 0]], m3: [[0, -1.3 * r], [1.2 * r, r], [-1.2 * r, r]] };
  const path = corners[markOf(label).split(" ")[1]];
  if (!path) return draw("circle", { cx: x, cy: y, r, class: marked });
  return draw("polygon", { points: path.map(([a, b]) => `${x + a},${y + b}`).join(" "), class: marked });
}

async function load() {
  let view;
  try {
    view = await get("/api/map");
  } catch (error) {
    at("map-text").textContent = error.message;
    return;
  }
  points = view.points.map(([item, x, y, state, label]) => ({ item, x, y: 1000 - y, state, label }));
  names = view.classes;
  images = view.images;
  at("map-box").hidden = !points.length;
  const few = points.length < view.total ? `${points.length} of ${view.total} examples` : `All ${view.total} examples`;
  at("map-text").textContent = points.length
    ? `${few}. Similar ones lie close together (first two principal components of the model's inputs).`
    : "The map appears when the first examples have been prepared.";
  options();
  drawAll();
}

function options() {
  const chosen = at("map-class").value;
  const used = [...new Set(points.map((point) => point.label))].filter((label) => label >= 0).sort((a, b) => a - b);
  at("map-class").replaceChildren(new Option("all", ""), ...used.map((label) => new Option(names[label], String(label))));
  at("map-class").value = used.includes(Number(chosen)) ? chosen : "";
  const counts = new Map(used.map((label) => [label, points.filter((point) => point.label === label).length]));
  const listed = [...used].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0)).slice(0, LISTED);
  at("map-classes").replaceChildren(
    ...listed.map((label) => {
      const line = make("li");
      line.append(mark(label), ` ${names[label]}`);
      return line;
    }),
  );
  at("map-classes").hidden = !listed.length;
}

function drawAll() {
  const svg = draw("svg", { viewBox: "-20 -20 1040 1040", "aria-hidden": "true" });
  const only = at("map-class").value;
  dots = new Map();
  for (const state of ORDER) {
    for (const point of points.filter((drawn) => drawn.state === state)) {
      const off = only && String(point.label) !== only;
      const kind = `${STATES[state]}${off ? " off" : ""}`;
      const dot = shape(point, state === 0 || off ? 6 : 11, kind);
      dot.point = point;
      dots.set(point.item, dot);
      svg.append(dot);
    }
  }
  at("map").replaceChildren(svg);
  const item = current?.item;
  const same = points.find((point) => point.item === item);
  current = same ?? null;
  if (same) dots.get(same.item).classList.add("here");
}

async function show(point) {
  if (!point || point === current) return;
  if (current) dots.get(current.item)?.classList.remove("here");
  current = point;
  dots.get(point.item).classList.add("here");
  const what = point.label >= 0 ? names[point.label] : SAID[point.state];
  const link = Object.assign(make("a", `Item ${point.item}: ${what}`), { href: `${root}/item/${point.item}` });
  if (images) {
    const image = new Image();
    image.alt = "";
    image.src = `${root}/item/${point.item}/thumb`;
    at("map-item").replaceChildren(image, link);
    return;
  }
  at("map-item").replaceChildren(link);
  try {
    const { snip } = await get(`/api/item/${point.item}`);
    if (current === point) at("map-item").append(make("p", snip));
  } catch {
    // it is said without its text
  }
}

// The example that a finger means: the nearest one, if it is near.
function near(event) {
  const box = at("map").getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top].map((away) => (1040 * away) / box.width - 20);
  const far = (point) => Math.hypot(point.x - x, point.y - y);
  const best = points.reduce((nearest, other) => (far(other) < far(nearest) ? other : nearest));
  return far(best) < 80 ? best : null;
}

// The nearest example in a direction: within 45 degrees of it, as the crow flies.
function beside([dx, dy]) {
  const from = current ?? { x: 500, y: 500 };
  let best = null;
  let least = Infinity;
  for (const point of points) {
    const [x, y] = [point.x - from.x, point.y - from.y];
    const along = x * dx + y * dy;
    const across = Math.abs(x * dy - y * dx);
    const far = Math.hypot(x, y);
    if (point !== current && along > 0 && across <= along && far < least) [best, least] = [point, far];
  }
  return best;
}

at("map").addEventListener("pointerover", (event) => event.target.point && show(event.target.point));
at("map").addEventListener("click", (event) => {
  if (event.pointerType === "touch") show(near(event)); // a finger cannot point first; the link beside the map leads on
  else if (event.target.point) location.assign(`${root}/item/${event.target.point.item}`);
});
at("map").addEventListener("keydown", (event) => {
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (event.key === "Enter" && current) location.assign(`${root}/item/${current.item}`);
  if (!way) return;
  event.preventDefault();
  show(beside(way));
});
at("map").addEventListener("focus", () => !current && show(points.find((point) => point.state === 1) ?? points[0]));
at("map-class").addEventListener("change", drawAll);
addEventListener("project-changed", load);
load();
