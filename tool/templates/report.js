"use strict";
// Sorts the table of a button by its column: numbers from the largest, texts from the first.
function sort(button) {
  const head = button.closest("th");
  const table = head.closest("table");
  const column = head.cellIndex;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const value = (row) => row.cells[column].dataset.value;
  const numbers = rows.some((row) => value(row) !== undefined);
  const before = head.getAttribute("aria-sort");
  const descending = before === null ? numbers : before === "ascending";
  const compare = numbers
    ? (a, b) => Number(value(a)) - Number(value(b))
    : (a, b) => a.cells[column].textContent.localeCompare(b.cells[column].textContent, undefined, { numeric: true });
  rows.sort((a, b) => (descending ? compare(b, a) : compare(a, b)));
  body.append(...rows);
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  const order = descending ? "descending" : "ascending";
  head.setAttribute("aria-sort", order);
  document.getElementById("sorted").textContent = `${table.caption.textContent}: sorted by ${button.textContent}, ${order}`;
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("th button");
  if (button) sort(button);
});
