// Elements of the page. Text is inserted as text, never as HTML.
export function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

// Names and values.
export function table(fields) {
  const rows = fields.map(([name, value]) => {
    const row = make("tr");
    const head = make("th", name);
    head.scope = "row";
    row.append(head, make("td", value));
    return row;
  });
  const body = make("tbody");
  body.append(...rows);
  const whole = make("table");
  whole.append(body);
  return whole;
}
