// Loaded before the page is drawn. A form that is sent before its script is there waits for it, see `sendEarly`: the
// browser would send it by itself, and put what was typed into the address.
addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || !(form instanceof HTMLFormElement) || form.method !== "post") return;
  event.preventDefault();
  form.dataset.early = "";
});
