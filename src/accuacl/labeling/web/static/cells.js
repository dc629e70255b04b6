// One example of the gallery. It can be confirmed once it has been on the screen, whole.
import { make, record } from "/static/elements.js";
import { painted } from "/static/images.js";

const KEPT = "accuacl-struck";
const watched = new WeakMap(); // an edge: its cell
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) watched.get(target)?.meet(target);
  },
  { rootMargin: "0px 0px -48px 0px" }, // where the bar lies over the page
);

export class Cell {
  constructor(shown, name) {
    this.item = shown.item;
    this.seen = false;
    this.element = make("li");
    this.element.dataset.item = shown.item;
    this.element.dataset.seen = "";
    this.box = make("input");
    this.box.type = "checkbox";
    this.box.tabIndex = -1;
    this.box.checked = struck.has(this.item);
    this.box.setAttribute("aria-label", `Strike out example ${this.item}: it is not ${name}`);
    this.box.addEventListener("change", () => struck.set(this.item, this.box.checked));
    this.edges = [make("span", undefined, "edge"), make("span", undefined, "edge")];
    const label = make("label", undefined, "cell");
    const sure = shown.confidence === null ? "" : `${Math.round(100 * shown.confidence)} %`;
    label.append(this.box, this.edges[0], this.content(shown), make("span", sure, "what"), this.edges[1]);
    this.element.append(label);
    this.watch();
  }

  content(shown) {
    if (shown.kind === "text") return make("span", shown.text, "said");
    if (shown.kind !== "image") return record(shown.fields);
    this.img = new Image();
    this.img.alt = `Example ${shown.item}`;
    this.img.draggable = false;
    this.img.src = shown.image;
    const frame = make("span", undefined, "thumb");
    frame.append(this.img);
    return frame;
  }

  // Its two edges are looked for only once its image is there; one that cannot be shown is struck out.
  async watch() {
    try {
      await this.img?.decode();
    } catch {
      this.img.replaceWith(make("span", "This image cannot be shown.", "snip"));
      this.box.checked = true;
      struck.set(this.item, true);
      return;
    }
    for (const edge of this.edges) {
      watched.set(edge, this);
      watcher.observe(edge);
    }
  }

  async meet(edge) {
    watcher.unobserve(edge);
    this.edges = this.edges.filter((other) => other !== edge);
    if (this.edges.length) return;
    await painted();
    this.seen = true;
    this.element.dataset.seen = "yes";
  }

  strike(on = !this.box.checked) {
    if (this.box.checked !== on) this.box.click();
  }
}

// What has been struck out is remembered while the tab is open: these are labelled one by one.
export const struck = {
  items: new Set(JSON.parse(sessionStorage.getItem(KEPT) ?? "[]")),
  has(item) {
    return this.items.has(item);
  },
  set(item, on) {
    if (on) this.items.add(item);
    else this.items.delete(item);
    sessionStorage.setItem(KEPT, JSON.stringify([...this.items]));
  },
};
