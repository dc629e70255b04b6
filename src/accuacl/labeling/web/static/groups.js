// A group of the gallery: the examples that the model takes for one class, with a button that confirms them.
import { Cell } from "/static/cells.js";
import { make } from "/static/elements.js";
import { isRepeated } from "/static/keys.js";
import { mark } from "/static/marks.js";

const FEW = 4; // pictures that take the whole width
const FAR = 40; // pixels that the pointer is moved on purpose
const ENDS = ["pointermove", "keydown", "wheel"];

export class Group {
  constructor({ class_id, name, items }, classes, confirm) {
    this.id = class_id;
    this.name = name;
    this.cells = items.map((shown) => new Cell(shown, this, classes));
    const few = items.length < FEW && items[0].kind === "image";
    this.element = make("section", undefined, few ? "group few" : "group");
    const title = make("h2");
    title.append(mark(class_id), " ", Object.assign(make("span", name), { dir: "auto" }));
    title.id = `group-${class_id}`;
    this.element.setAttribute("aria-labelledby", title.id);
    this.counted = make("span", "", "soft count");
    this.button = make("button", "", "main");
    this.button.addEventListener("click", (event) => isRepeated(event) || confirm(this, event));
    const invert = make("button", "Invert");
    invert.setAttribute("aria-label", `Strike out the others of ${name} instead`);
    invert.addEventListener("click", () => this.invert());
    const head = make("div", undefined, "head");
    head.append(title, this.counted, invert, this.button);
    const list = make("ul", undefined, items[0].kind === "image" ? "sheet pictures" : "sheet rows");
    list.append(...this.cells.map((cell) => cell.element));
    this.element.append(head, list);
    this.element.addEventListener("change", () => this.count());
    this.count();
  }

  count() {
    const right = this.cells.filter((cell) => !cell.box.checked).length;
    const others = this.cells.filter((cell) => cell.chosen !== null).length;
    const what = [right && `${right} as ${this.name}`, others && `${others} as another class`].filter(Boolean);
    this.counted.textContent = `${right} of ${this.cells.length}`;
    this.button.replaceChildren(what.length ? `Confirm ${right + others} ` : "Set these aside ", make("kbd", "Enter"));
    this.button.setAttribute("aria-label", what.length ? `Confirm ${what.join(", ")}` : `Set all of ${this.name} aside`);
  }

  // Strike out the others instead; what has been given another class keeps it.
  invert() {
    for (const cell of this.cells) if (cell.chosen === null) cell.strike();
  }

  give(cell, id) {
    cell.choose(id);
    this.count();
  }

  // Away with it. After a click nothing moves until the pointer does: the button of the next group would come to lie
  // under it.
  remove(click) {
    if (!click?.detail) return this.element.remove();
    const gap = make("div", undefined, this.element.classList.contains("few") ? "gap few" : "gap");
    gap.style.height = `${this.element.getBoundingClientRect().height}px`;
    this.element.replaceWith(gap);
    const isNear = ({ clientX, clientY }) => Math.hypot(clientX - click.clientX, clientY - click.clientY) < FAR;
    const close = (event) => {
      if (event.type === "pointermove" && isNear(event)) return;
      gap.remove();
      for (const name of ENDS) removeEventListener(name, close);
    };
    for (const name of ENDS) addEventListener(name, close);
  }

  take(done) {
    this.cells = this.cells.filter((cell) => !done.includes(cell));
    for (const cell of done) cell.element.remove();
  }
}
