// Elements of the page. Text is inserted as text, never as HTML.

/**
 * The element with an id. A page has all the elements that its scripts use.
 * @param {string} id
 * @returns {any}
 */
export const at = (id) => document.getElementById(id);

/**
 * All elements that a selector finds.
 * @param {string} selector
 * @param {ParentNode} inside
 * @returns {any[]}
 */
export const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} [text]
 * @param {string} [className]
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

/**
 * A text of people's data, which runs in the direction of its script.
 * @param {"p" | "span"} tag
 * @param {string} [text]
 * @param {string} [className]
 */
export function prose(tag, text, className) {
  return Object.assign(make(tag, text, className), { dir: "auto" });
}

/**
 * Names and values; a long value is below its name.
 * @param {[string, string][]} fields
 */
export function record(fields) {
  const list = make("dl", undefined, "record");
  for (const [name, value] of fields) {
    const pair = make("div", undefined, value.length > 60 ? "long" : "");
    pair.append(make("dt", name), Object.assign(make("dd", value), { dir: "auto" }));
    list.append(pair);
  }
  return list;
}

/**
 * An element of a drawing.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @returns {any}
 */
export function draw(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

/**
 * The element that an arrow key leads to, by what the screen shows: up and down go to the nearest one in the next row.
 * @template {Element} T
 * @param {T[]} elements
 * @param {T} here
 * @param {string} key
 * @returns {T | undefined}
 */
export function neighbour(elements, here, key) {
  const step = { arrowleft: -1, arrowright: 1 }[key.toLowerCase()];
  if (step) return elements[elements.indexOf(here) + step];
  const way = key.toLowerCase() === "arrowdown" ? 1 : -1;
  const place = (element) => {
    const box = element.getBoundingClientRect();
    return { element, x: box.left + box.width / 2, y: way * (box.top + box.height / 2) };
  };
  const from = place(here);
  const beyond = elements.map(place).filter(({ y }) => y > from.y + 4);
  const row = Math.min(...beyond.map(({ y }) => y));
  const inRow = beyond.filter(({ y }) => y < row + 4);
  return inRow.sort((a, b) => Math.abs(a.x - from.x) - Math.abs(b.x - from.x))[0]?.element;
}
