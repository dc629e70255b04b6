// A page of cards follows the project without being loaded again: when something has changed, it is fetched, and its
// cards take the place of those that differ. The browser parses it, and runs nothing in it.
import { get, pause } from "/static/api.js";
import { all, at } from "/static/elements.js";

const EVERY = 2000; // milliseconds

function fetchPage() {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open("GET", location.href);
    request.responseType = "document";
    request.onload = () => (request.status === 200 && request.response ? done(request.response) : failed(request));
    request.onerror = () => failed(request);
    request.send();
  });
}

// A card keeps its place in the page while somebody is in it; it is replaced the next time. The stamp of what is shown.
/** @param {Document} page */
function replace(page) {
  let left = false;
  const [old] = all(".cards");
  const before = new Map([...old.children].map((card) => [card.id, card]));
  const [cards] = all(".cards", page);
  const wanted = [...cards.children].map((card) => {
    const here = before.get(card.id);
    if (!here) return document.adoptNode(card);
    if (!("live" in here.dataset) || here.outerHTML === card.outerHTML) return here;
    if (here.contains(document.activeElement)) {
      left = true;
      return here;
    }
    const now = document.adoptNode(card);
    here.replaceWith(now);
    return now;
  });
  const kept = new Set(wanted);
  for (const card of [...old.children]) if (!kept.has(card)) card.remove();
  wanted.forEach((card, i) => old.children[i] !== card && old.insertBefore(card, old.children[i] ?? null));
  return left ? "" : cards.dataset.stamp;
}

// A form of a card was sent: the cards are fetched at once, and also if nothing has changed, as its buttons are disabled.
let posted = false;
/** @type {(value?: any) => void} */
let wake = () => {};
addEventListener("posted", () => {
  posted = true;
  /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
  wake();
});

async function watch() {
  let { stamp } = all(".cards")[0].dataset;
  for (;;) {
    try {
      if (posted || (await get("/api/changes")).stamp !== stamp) {
        const page = await fetchPage();
        posted = false;
        stamp = replace(page);
        at("live-said").textContent = "The page has been brought up to date.";
        dispatchEvent(new Event("project-changed"));
      }
    } catch {
      await pause(EVERY); // the server does not respond, or the session has ended; tried again
    }
    if (!posted) await Promise.race([pause(EVERY), new Promise((done) => (wake = done))]);
    while (document.hidden) await pause(EVERY);
  }
}
watch();
