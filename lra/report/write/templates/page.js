// Sorting and filtering of tables. The page reads the same without it; nothing is fetched.
"use strict";

const rowsOf = (body) => [...body.rows].filter((row) => !row.classList.contains("group"));

/** Sort key of a row: a number where the cell has one, else its words. */
function key(row, column) {
  const cell = row.cells[column];
  if (cell === undefined) return "";
  return cell.dataset.v === undefined ? cell.textContent.trim().toLowerCase() : Number(cell.dataset.v);
}

/** Numbers before words, so that failures stay below; words by the alphabet. */
function compare(one, other, sign) {
  const numbers = [typeof one, typeof other].map((kind) => kind === "number");
  if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;
  return sign * (numbers[0] ? one - other : one.localeCompare(other, "en", { numeric: true }));
}

/** Sort each group of a table by a column: upwards, downwards, as it was. */
function sort(table, heading) {
  const next = { none: "ascending", ascending: "descending", descending: "none" };
  const order = next[heading.getAttribute("aria-sort") ?? "none"];
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  if (order !== "none") heading.setAttribute("aria-sort", order);
  const column = heading.cellIndex;
  const sign = order === "descending" ? -1 : 1;
  for (const body of table.tBodies) {
    const rows = rowsOf(body).sort((a, b) =>
      order === "none" ? a.dataset.n - b.dataset.n : compare(key(a, column), key(b, column), sign) || a.dataset.n - b.dataset.n);
    body.append(...rows);
  }
}

for (const table of document.querySelectorAll("table")) {
  let number = 0;
  for (const body of table.tBodies) for (const row of rowsOf(body)) row.dataset.n = number++;
  if (number < 2) continue;
  for (const heading of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(table, heading));
    heading.append(button);
  }
}

/** Show the rows of all tables whose names have the words, and their number. */
function filter(words, told) {
  let shown = 0;
  for (const body of document.querySelectorAll("tbody")) {
    const rows = rowsOf(body);
    for (const row of rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(words);
      shown += !row.hidden;
    }
    body.hidden = rows.length > 0 && rows.every((row) => row.hidden);
  }
  told.textContent = words ? `${shown} ${shown === 1 ? "row" : "rows"}` : "";
}

const header = document.querySelector("header[data-filtered]");
if (header && document.querySelector("tbody")) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  const told = document.createElement("span");
  label.className = "filter";
  input.type = "search";
  told.setAttribute("role", "status");
  label.append("Show rows whose name contains ", input, told);
  input.addEventListener("input", () => filter(input.value.trim().toLowerCase(), told));
  header.append(label);
}
