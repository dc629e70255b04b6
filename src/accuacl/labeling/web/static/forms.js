// Forms with data-post are sent as JSON; then the page in data-next is opened, or this one reloaded. A card that follows
// the project is brought up to date instead: a reload would lose what is typed or chosen elsewhere on the page.
import { post } from "/static/api.js";
import { all, at, make } from "/static/elements.js";

/**
 * @param {HTMLFormElement} form
 * @param {HTMLElement | null} trouble where to say what goes wrong
 */
async function submit(form, trouble) {
  /** @type {Record<string, any>} */
  const fields = Object.fromEntries(new FormData(form));
  const tell = (text) => trouble && (trouble.textContent = text);
  const named = fields.name ?? fields.names; // one class, or one in each line
  if (named && form.dataset.known === named) fields.sure = true; // sent again after the question below
  for (const button of form.querySelectorAll("button")) button.disabled = true;
  try {
    const { near } = await post(form.dataset.post ?? "", fields, () => tell("The server does not respond; trying again."));
    if (near?.length) {
      form.dataset.known = named;
      const names = near.map(({ name }) => `“${name}”`).join(", ");
      const again = form.querySelector("button")?.textContent;
      if (fields.names) throw new Error(`These look alike: ${names}. Press ${again} again if they are different classes.`);
      throw new Error(`There is already ${names}. Press ${again} again if this is another class.`);
    }
    if (form.closest("[data-live]")) dispatchEvent(new Event("posted"));
    else location.replace(form.dataset.next ?? location.href);
  } catch (error) {
    tell((error.status === 401 && trouble?.dataset.refused) || error.message);
    for (const button of form.querySelectorAll("button")) button.disabled = false;
  }
}

/**
 * Send the forms that somebody has sent before there was a script for them: see early.js.
 * @param {HTMLFormElement[]} forms
 */
export function sendEarly(forms) {
  for (const form of forms) {
    if (!("early" in form.dataset)) continue;
    delete form.dataset.early;
    form.requestSubmit();
  }
}

/**
 * A form that does something that takes a while, with its button disabled meanwhile.
 * @param {string} id of the form; its words are in ID-said, and what goes wrong in ID-trouble
 * @param {() => Promise<string | undefined>} act gives the sentence that says what was done
 */
export function onSubmit(id, act) {
  const form = at(id);
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    at(`${id}-trouble`).replaceChildren();
    at(`${id}-said`).textContent = "Please wait …";
    button.disabled = true;
    try {
      at(`${id}-said`).textContent = (await act()) ?? "";
    } catch (error) {
      at(`${id}-said`).textContent = "";
      at(`${id}-trouble`).replaceChildren(make("li", error.message));
    } finally {
      button.disabled = false;
    }
  });
  if (form) sendEarly([form]);
}

// Also the forms of cards that are drawn later.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || !form.dataset.post) return;
  event.preventDefault();
  if (!form.dataset.sure || confirm(form.dataset.sure)) submit(form, form.querySelector("[data-trouble]"));
});
sendEarly(all("form[data-post]"));

// A login link has the token behind the #, which browsers do not send: it appears in no log and no Referer. Whoever is
// logged in is asked first: somebody else may have sent the link, to have them work under another name.
function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  const field = at("token");
  if (!token || !field) return;
  history.replaceState(null, "", location.pathname + location.search);
  field.value = token;
  if ("asks" in field.form.dataset) field.form.hidden = false;
  else field.form.requestSubmit();
}
takeToken();
addEventListener("hashchange", takeToken);
