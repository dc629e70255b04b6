// Forms with data-post are sent as JSON; then comes the page in data-next, or the same one again.
import { post } from "/static/api.js";

async function submit(form, trouble) {
  const fields = Object.fromEntries(new FormData(form));
  for (const button of form.querySelectorAll("button")) button.disabled = true;
  try {
    await post(form.dataset.post, fields);
    location.replace(form.dataset.next ?? location.href);
  } catch (error) {
    if (trouble) trouble.textContent = error.message;
    for (const button of form.querySelectorAll("button")) button.disabled = false;
  }
}

for (const form of document.querySelectorAll("form[data-post]")) {
  const trouble = form.querySelector("[data-trouble]");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!form.dataset.sure || confirm(form.dataset.sure)) submit(form, trouble);
  });
}

// A login link has the token behind the #, which browsers keep to themselves: not in logs, not in Referer.
function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  const field = document.getElementById("token");
  if (!token || !field) return;
  history.replaceState(null, "", location.pathname);
  field.value = token;
  field.form.requestSubmit();
}
takeToken();
addEventListener("hashchange", takeToken);
