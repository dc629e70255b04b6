// Talking to the server. A request that changes something has an id of its own, so that repeating it after its answer
// was lost changes nothing twice.

/**
 * @typedef {{ id: number, name: string }} Class
 *
 * What is shown of an item; its rank, scores and their meanings only where these tell nothing that must not be known.
 * @typedef {{
 *   item: number, kind: string, image?: string, text?: string, fields?: [string, string][], file?: string, media?: string,
 *   rank?: number, of?: number, scores?: Record<string, number | null>, meanings?: Record<string, string>,
 * }} Example
 *
 * The state of the round. The counts of all people are missing where a person is told of their own answers alone.
 * @typedef {{
 *   phase: "labelling" | "training" | "empty" | "done" | "waiting", text: string, stage: string, preparing: boolean,
 *   progress: number | null, task: number, round: number, rounds: number, free: boolean, undo: boolean,
 *   own: { labelled: number, skipped: number },
 *   trained: { before: number | null, now: number, count: number } | null,
 *   total?: number, labelled?: number, skipped?: number, opinions?: number, budget?: { used: number, total: number },
 *   given?: number, items?: number,
 * }} State
 *
 * @typedef {{ state: State, classes: Class[], pick?: Example | null, ahead?: Example[] }} View
 */

export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} text
   */
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

// crypto.randomUUID does not exist on pages that come over plain HTTP from another machine.
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

/** The path below which this project is, where a server has several; "" where it has one. */
export const root = document.documentElement.dataset.root ?? "";

let leaving = false;

/** @param {number} ms */
export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** @param {string} path */
export async function get(path) {
  return answer(await fetch(root + path));
}

/**
 * Repeated until the server accepts or refuses it; `lost` is called with each error in between.
 * @param {string} path
 * @param {object} body
 * @param {(error: unknown) => void} lost
 */
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

/**
 * Sent once; works while the page is being left too.
 * @param {string} path
 * @param {object} body
 */
export function send(path, body) {
  const headers = { "Content-Type": "application/json" };
  return fetch(root + path, { method: "POST", headers, body: JSON.stringify(body), keepalive: true });
}

/**
 * A file is sent as it is, with its name beside it.
 * @param {string} path
 * @param {File} file
 * @param {Record<string, any>} more what else is asked for
 */
export async function sendFile(path, file, more = {}) {
  const query = new URLSearchParams({ name: file.name.slice(-200), ...more });
  const headers = { "Content-Type": "application/octet-stream" };
  return answer(await fetch(`${root}${path}?${query}`, { method: "POST", headers, body: file }));
}

/** @param {Response} response */
async function answer(response) {
  if (response.ok) return response.json();
  const said = await response.json().catch(() => ({}));
  if (response.status === 401 && location.pathname !== `${root}/login` && !leaving) {
    leaving = true; // a second request that is refused must not interrupt the way to the login
    const here = location.pathname.slice(root.length) + location.search;
    location.assign(root + (here === "/" ? "/login" : `/login?next=${encodeURIComponent(here)}`));
  }
  throw new Refused(response.status, typeof said.detail === "string" ? said.detail : response.statusText);
}
