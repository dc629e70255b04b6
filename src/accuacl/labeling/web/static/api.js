// Talking to the server. A request that changes something carries an id of its own, so that sending it again after
// a lost answer changes nothing twice.

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

// crypto.randomUUID is missing where the page comes over plain HTTP from another machine.
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export async function get(path) {
  return answer(await fetch(path));
}

// Sent until the server has answered; `lost` is told while it cannot be reached.
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

// Once, and also while the page is being left.
export function send(path, body) {
  const headers = { "Content-Type": "application/json" };
  return fetch(path, { method: "POST", headers, body: JSON.stringify(body), keepalive: true });
}

async function answer(response) {
  if (response.ok) return response.json();
  const said = await response.json().catch(() => ({}));
  if (response.status === 401 && location.pathname !== "/login") location.assign("/login");
  throw new Refused(response.status, typeof said.detail === "string" ? said.detail : response.statusText);
}
