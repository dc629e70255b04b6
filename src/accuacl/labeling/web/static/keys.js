// Single-key shortcuts. They can be turned off, because speech input and screen readers may type letters themselves.
const box = document.getElementById("use-keys");
const KEPT = "accuacl-keys";

try {
  box.checked = localStorage.getItem(KEPT) !== "off";
  box.addEventListener("change", () => localStorage.setItem(KEPT, box.checked ? "on" : "off"));
} catch {
  // without storage the choice lasts as long as the page
}

export function onKey(act) {
  document.addEventListener("keydown", (event) => {
    if ((!box.checked && event.key !== "Escape") || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    const field = event.target.closest("input:not([type=checkbox]), select, textarea, dialog");
    if (field?.checkVisibility()) return; // a dialog that was just closed keeps the focus for some milliseconds
    if (act(event.key.toLowerCase())) event.preventDefault();
  });
}
