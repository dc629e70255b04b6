// One example of the gallery. It can be confirmed once it has been on the screen, whole. One that is struck out can be
// given its class in place, or is labelled later.
import { make, prose, record } from "/static/elements.js";
import { arrived, loading, painted } from "/static/images.js";

const KEPT = "accuacl-struck";
/** @type {Map<number, number>} an item: the class that it was given, also while the page is drawn again */
const given = new Map();
const watched = new WeakMap(); // an edge: its cell
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) watched.get(target)?.meet(target);
  },
  { rootMargin: "0px 0px -48px 0px" }, // where the bar lies over the page
);

export class Cell {
  /**
   * @param {any} shown
   * @param {import("/static/groups.js").Group} group
   * @param {import("/static/api.js").Class[]} classes
   */
  constructor(shown, group, classes) {
    this.item = shown.item;
    this.group = group;
    this.classes = classes;
    /** @type {number | null} the class that it is given instead of the group's */
    this.chosen = null;
    /** @type {any} */
    this.select = null; // the field in which that is chosen, once it is struck out
    /** @type {any} */
    this.img = null;
    this.broken = false;
    this.seen = false;
    this.element = make("li");
    this.element.dataset.item = shown.item;
    this.element.dataset.seen = "";
    this.box = make("input");
    this.box.type = "checkbox";
    this.box.tabIndex = -1;
    this.box.checked = struck.has(this.item);
    this.box.setAttribute("aria-label", `Strike out example ${this.item}: it is not ${group.name}`);
    this.box.addEventListener("change", () => this.struckOut());
    this.edges = [make("span", undefined, "edge"), make("span", undefined, "edge")];
    const label = make("label", undefined, "cell");
    const sure = shown.confidence === null ? "" : `${Math.round(100 * shown.confidence)} %`;
    label.append(this.box, this.edges[0], this.content(shown), make("span", sure, "what"), this.edges[1]);
    this.element.append(label);
    const instead = given.get(this.item);
    if (instead !== undefined && classes.some(({ id }) => id === instead)) this.choose(instead);
    this.watch();
  }

  content(shown) {
    if (shown.kind === "text") return prose("span", shown.text, "said");
    if (shown.kind !== "image") return record(shown.fields);
    this.img = loading(shown.image, `Example ${shown.item}`);
    const frame = make("span", undefined, "thumb");
    frame.append(this.img);
    return frame;
  }

  // Its two edges are looked for only once its image is there; one that cannot be shown is struck out.
  async watch() {
    if (this.img && !(await this.isThere())) return;
    for (const edge of this.edges) {
      watched.set(edge, this);
      watcher.observe(edge);
    }
  }

  async isThere() {
    const note = make("span", "", "snip");
    const wanted = () => this.element.isConnected;
    const here = await arrived(this.img, wanted, (text) => {
      note.textContent = text;
      this.img.replaceWith(note);
    });
    if (here) note.replaceWith(this.img);
    if (here || !wanted()) return here;
    note.textContent = "This image cannot be shown.";
    this.img.replaceWith(note);
    this.broken = true;
    this.box.checked = true;
    this.struckOut();
    this.group.count();
    return false;
  }

  async meet(edge) {
    watcher.unobserve(edge);
    this.element.dispatchEvent(new CustomEvent("shown", { bubbles: true, detail: this.item }));
    this.edges = this.edges.filter((other) => other !== edge);
    if (this.edges.length) return;
    await painted();
    this.seen = true;
    this.element.dataset.seen = "yes";
  }

  strike(on = !this.box.checked) {
    if (this.box.checked !== on) this.box.click();
  }

  // The class that it is labelled with when the group is confirmed; null: none.
  get label() {
    return this.box.checked ? this.chosen : this.group.id;
  }

  struckOut() {
    struck.set(this.item, this.box.checked);
    given.delete(this.item);
    this.select?.remove();
    this.select = this.chosen = null;
    this.element.classList.remove("moved");
    if (!this.box.checked || this.broken) return;
    this.select = make("select", undefined, "instead");
    this.select.setAttribute("aria-label", `Class of example ${this.item}`);
    const others = this.classes.filter(({ id }) => id !== this.group.id);
    this.select.append(new Option("label it later", ""), ...others.map(({ id, name }) => new Option(name, String(id))));
    this.select.addEventListener("change", () => this.choose(this.select.value === "" ? null : Number(this.select.value)));
    this.element.append(this.select);
  }

  // Give it another class than the group's; null: label it later.
  choose(id) {
    if (id === this.group.id) return this.strike(false);
    if (!this.box.checked) {
      this.box.checked = true;
      this.struckOut();
    }
    if (!this.select) return;
    this.select.value = id ?? "";
    this.chosen = id;
    struck.set(this.item, id === null);
    if (id === null) given.delete(this.item);
    else given.set(this.item, id);
    this.element.classList.toggle("moved", id !== null);
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
