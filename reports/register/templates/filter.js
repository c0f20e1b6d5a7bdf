// Shows the rows of the index that have the text and the verdict that are asked for.
"use strict";
const text = document.getElementById("text");
const verdict = document.getElementById("verdict");
const count = document.getElementById("count");
const rows = Array.from(document.querySelectorAll("tbody tr"));
function filter() {
  const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const content = row.textContent.toLowerCase();
    const fits = words.every((word) => content.includes(word)) && ["", row.dataset.verdict].includes(verdict.value);
    row.hidden = !fits;
    shown += fits;
  }
  count.textContent = `${shown} claim${shown === 1 ? "" : "s"}`;
}
text.addEventListener("input", filter);
verdict.addEventListener("change", filter);
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
filter();
