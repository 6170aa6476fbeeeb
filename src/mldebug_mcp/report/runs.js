// Filters and sorts the runs of a page; without it all of them are shown, those that need attention first.

const cards = [...document.querySelectorAll("#runs > li")];
const [search, cause, ending, order] = ["search", "cause", "ending", "order"].map((id) => document.getElementById(id));
const count = document.getElementById("count");

function number(card) {
  const value = parseFloat(card.dataset.result);
  return Number.isNaN(value) ? Infinity : value;
}

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const card of cards) {
    const text = card.textContent.toLowerCase();
    const fits =
      words.every((word) => text.includes(word)) &&
      (!cause.value || card.dataset.cause === cause.value) &&
      (!ending.value || card.dataset.ending === ending.value);
    card.hidden = !fits;
    shown += fits;
  }
  count.textContent = `${shown} of ${cards.length} shown`;
}

function sort() {
  const sorted = [...cards];
  if (order.value === "best") sorted.sort((a, b) => number(a) - number(b));
  if (order.value === "worst") sorted.sort((a, b) => number(b) - number(a));
  if (order.value === "name") sorted.sort((a, b) => (a.dataset.name < b.dataset.name ? -1 : 1));
  document.getElementById("runs").append(...sorted);
}

document.getElementById("filters").hidden = false;
for (const one of [search, cause, ending]) one.addEventListener("input", filter);
order.addEventListener("input", sort);
filter();
