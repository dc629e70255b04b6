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
