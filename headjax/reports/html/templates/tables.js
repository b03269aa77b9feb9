// A click on a column's name sorts its table, a second one the other way.

function sortBy(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const up = heads[column].getAttribute("aria-sort") !== "ascending";
  heads.forEach((cell) => cell.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows];
  const keys = new Map(rows.map((row) => [row, cellKey(row.cells[column])]));
  rows.sort((a, b) => (up ? 1 : -1) * compare(keys.get(a), keys.get(b)));
  table.tBodies[0].append(...rows);
}

function cellKey(cell) {
  const text = (cell.title || cell.textContent).replace("\u2212", "-");
  const value = parseFloat(text);
  if (!cell.classList.contains("n")) return text;
  return Number.isNaN(value) ? -Infinity : value;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

function letTablesBeSorted() {
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      cell.firstChild.addEventListener("click", () => sortBy(table, column));
    });
  }
}
