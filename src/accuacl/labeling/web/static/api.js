// Talking to the server. A request that changes something has an id of its own, so that repeating it after its answer
// was lost changes nothing twice.

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

// crypto.randomUUID does not exist on pages that come over plain HTTP from another machine.
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

let leaving = false;

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export async function get(path) {
  return answer(await fetch(path));
}

// Repeated until the server accepts or refuses it; `lost` is called with each error in between.
export async function post(path, body, lost = () => {}) {
  for (let wait = 250; ; wait = Math.min(2 * wait, 4000)) {
    try {
      return await answer(await send(path, body));
    } catch (error) {
      if (error instanceof Refused && error.status < 500) throw error;
      lost(error);
      await pause(wait);
    }
  }
}

// Sent once; works while the page is being left too.
export function send(path, body) {
  const headers = { "Content-Type": "application/json" };
  return fetch(path, { method: "POST", headers, body: JSON.stringify(body), keepalive: true });
}

async function answer(response) {
  if (response.ok) return response.json();
  const said = await response.json().catch(() => ({}));
  if (response.status === 401 && location.pathname !== "/login" && !leaving) {
    leaving = true; // a second request that is refused must not interrupt the way to the login
    const here = location.pathname + location.search;
    location.assign(here === "/" ? "/login" : `/login?next=${encodeURIComponent(here)}`);
  }
  throw new Refused(response.status, typeof said.detail === "string" ? said.detail : response.statusText);
}
