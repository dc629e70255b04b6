// Elements of the page. Text is inserted as text, never as HTML.
export function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

// Names and values; a long value is below its name.
export function record(fields) {
  const list = make("dl", undefined, "record");
  for (const [name, value] of fields) {
    const pair = make("div", undefined, value.length > 60 ? "long" : "");
    pair.append(make("dt", name), make("dd", value));
    list.append(pair);
  }
  return list;
}
