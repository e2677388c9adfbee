/* SPDX-License-Identifier: Apache-2.0 */
/* Renew the page every two seconds, without losing the reader's place. */
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

setTimeout(step, periodMs);
