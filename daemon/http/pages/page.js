/* SPDX-License-Identifier: Apache-2.0 */
/* Renew the page every two seconds, without losing the reader's place, show an item by its key, and try queries. */
"use strict";

const periodMs = 2000;
let renewed = 0;

async function renew() {
  const response = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(10 * periodMs) });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const open = document.querySelector("details").open;
  page.querySelector("details").open = open;
  document.querySelector("main").replaceWith(page.querySelector("main"));
  document.querySelector("main").dataset.renewed = ++renewed;
  document.title = page.title;
}

async function step() {
  if (!document.hidden) {
    try {
      await renew();
      document.body.classList.remove("is-stale");
    } catch {
      document.body.classList.add("is-stale");
    }
  }
  setTimeout(step, periodMs);
}

/* The text is shown as it came: JavaScript would round large integers. */
async function lookUp(form) {
  const key = form.elements.key.value;
  history.replaceState(null, "", "?item=" + encodeURIComponent(key));
  try {
    const response = await fetch("items/" + encodeURIComponent(key), { cache: "no-store" });
    form.querySelector("pre").textContent = await response.text();
  } catch {
    form.querySelector("pre").textContent = "The daemon does not answer.";
  }
}

/* The daemon's page without scripts has the answer; its section replaces ours. What is refused before that is plain
 * text. */
async function tryQuery(form) {
  const shown = document.querySelector("#tried");
  shown.setAttribute("aria-busy", "true");
  try {
    const response = await fetch("try?" + new URLSearchParams(new FormData(form)), { cache: "no-store" });
    const text = await response.text();
    const answer = new DOMParser().parseFromString(text, "text/html").querySelector("#tried");
    if (answer)
      shown.replaceChildren(...answer.childNodes);
    else
      shown.textContent = `The daemon refuses: ${text.trim()} (status ${response.status})`;
  } catch {
    shown.textContent = "The daemon does not answer.";
  }
  shown.removeAttribute("aria-busy");
}

const form = document.querySelector("#look-up");
if (form) {
  form.hidden = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    lookUp(form);
  });
  form.elements.key.value = new URLSearchParams(location.search).get("item") ?? "";
  if (form.elements.key.value)
    lookUp(form);
}

const trial = document.querySelector("#try");
if (trial) {
  trial.hidden = false;
  trial.addEventListener("submit", (event) => {
    event.preventDefault();
    tryQuery(trial);
  });
}

setTimeout(step, periodMs);
