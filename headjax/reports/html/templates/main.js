// The page's state is one view; whatever changes it draws the view again.

const DATA = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const AXES = ["model", "task", "quantity"];
const view = { entry: null, chosen: [], open: null, cursor: null };
const memory = {};

const unique = (values) => [...new Set(values)];

// The entry with these labels, or the nearest: earlier labels count more.
function nearest(wanted) {
  let left = DATA.maps;
  for (const name of AXES) {
    const same = left.filter((entry) => entry[name] === wanted[name]);
    if (same.length) left = same;
  }
  return left[0];
}

function optionsOf(axis) {
  const before = AXES.slice(0, AXES.indexOf(axis));
  const fits = (e) => before.every((name) => e[name] === view.entry[name]);
  return unique(DATA.maps.filter(fits).map((entry) => entry[axis]));
}

function drawSwitches() {
  const { entry } = view;
  const made = AXES.map((axis) => {
    const options = optionsOf(axis);
    const at = options.indexOf(entry[axis]);
    const names = options.map((name) => name || "none");
    return choice(axis, names, at, (i) => {
      return show(nearest({ ...entry, [axis]: options[i] }), axis);
    });
  });
  entry.switches.forEach(({ name, values }, k) => {
    made.push(
      choice(name, values, view.chosen[k], (i) => {
        view.chosen[k] = i;
        return show(entry, name);
      }),
    );
  });
  byId("switches").replaceChildren(...made);
}

async function show(entry, changed) {
  if (entry !== view.entry) {
    const kept = entry.switches.map(({ name }) => {
      const k = view.entry?.switches.findIndex((s) => s.name === name) ?? -1;
      return k < 0 ? 0 : view.chosen[k];
    });
    view.chosen = entry.switches.map(({ values }, k) =>
      Math.min(kept[k], values.length - 1),
    );
    view.entry = entry;
  }
  for (const name of ["mean", "low", "high"]) {
    const values = await unpack(entry[name]);
    view[name] = values && tableAt(values, entry[name].shape, view.chosen);
  }
  view.largest = byEffect(view.mean);
  const inside = view.open && view.open[0] < entry.layers.length
    && view.open[1] < entry.heads.length;
  if (!inside) view.open = view.largest[0] ?? [0, 0];
  view.cursor = null;
  drawSwitches();
  describeMap();
  drawLargest();
  await redraw();
  await drawPaper(entry);
  if (changed) byId("switches").elements[changed]?.focus();
}

// Heads [row, column], the largest in size first; those without a value fail.
function byEffect(mean) {
  return mean
    .flatMap((line, row) => line.map((_, column) => [row, column]))
    .filter(([r, c]) => !Number.isNaN(mean[r][c]) && mean[r][c] !== 0)
    .sort((a, b) => Math.abs(mean[b[0]][b[1]]) - Math.abs(mean[a[0]][a[1]]));
}

function describeMap() {
  const { entry, chosen } = view;
  const about = [entry.model, entry.task, entry.file].filter(Boolean);
  if (entry.examples_n) about.push(`mean of ${entry.examples_n} examples`);
  if (entry.averaged) about.push(`averaged over ${entry.averaged}`);
  const said = entry.title[0].toUpperCase() + entry.title.slice(1);
  byId("map-title").textContent = said;
  byId("map-about").textContent = about.join(" \u00b7 ");
  const calls = [meanCall(entry, chosen)];
  if (view.low && entry.code.interval) {
    calls.push(intervalCall(entry, chosen));
  }
  recompute(byId("map-again"), calls);
  const what = [entry.title, ...about].join(", ");
  byId("map-box").setAttribute("aria-label", `${what}, layer by head`);
}

function drawLargest() {
  const { entry, mean, low, high } = view;
  const body = element("tbody");
  for (const [row, column] of view.largest.slice(0, 8)) {
    const name = headName(entry, row, column);
    const button = element("button", { type: "button" }, name);
    button.addEventListener("click", () => inTurn(() => open(row, column)));
    const signed = entry.colour.signed;
    const cells = [number(mean[row][column], signed)];
    if (low) cells.push(interval(low[row][column], high[row][column], signed));
    const line = element("tr", {}, element("td", {}, button));
    line.append(...cells.map((text) => element("td", { class: "n" }, text)));
    body.append(line);
  }
  byId("largest-rows").replaceChildren(element("table", {}, body));
}

async function redraw() {
  await drawMap(view, byId("map"), DATA.colours, (row, column) => {
    inTurn(() => open(row, column));
  });
  await drawHead();
}

async function open(row, column) {
  view.open = [row, column];
  await redraw();
  byId("head-title").focus({ preventScroll: true });
  const stacked = byId("head").offsetTop > byId("map-figure").offsetTop + 50;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const behavior = still ? "auto" : "smooth";
  if (stacked) byId("head").scrollIntoView({ behavior, block: "start" });
}

async function drawHead() {
  const { entry, open: [row, column], mean, low, high, chosen } = view;
  view.head = [entry.layers[row], entry.heads[column]];
  byId("head-title").textContent = headName(entry, row, column);
  const signed = entry.colour.signed;
  const said = [number(mean[row][column], signed)];
  if (low) said.push(interval(low[row][column], high[row][column], signed));
  if (entry.units) said.push(entry.units);
  byId("head-value").textContent = said.filter(Boolean).join(" ");
  recompute(byId("head-again"), [meanCall(entry, chosen, view.head)]);
  const parts = byId("head-parts");
  const height = parts.offsetHeight;
  parts.style.minHeight = `${height}px`; // or the page would jump
  parts.replaceChildren();
  await drawExamples(view, parts, DATA.labels);
  const { colours, patterns, pairs } = DATA;
  await drawAttention(view, parts, related(patterns), colours, memory);
  await drawPairs(view, parts, related(pairs), colours, memory);
  parts.style.minHeight = "";
}

// What was found with the same weights: of the same prompts if there is any.
function related(entries) {
  const { weights, prompts } = view.entry;
  const mine = entries.filter((e) => e.weights === weights);
  const near = mine.filter((e) => e.prompts === prompts);
  return near.length ? near : mine;
}

function listen() {
  const box = byId("map-box");
  box.addEventListener("keydown", onKey);
  box.addEventListener("focus", () => {
    if (box.matches(":focus-visible")) point(view.cursor ?? view.open);
  });
  box.addEventListener("blur", leave);
  byId("head").addEventListener("keydown", (event) => {
    if (event.key === "Escape") box.focus();
  });
  byId("switches").addEventListener("submit", (e) => e.preventDefault());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    inTurn(redraw);
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width || printing) return;
    width = innerWidth;
    inTurn(redraw);
  });
  for (const [name, on] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(name, () => {
      printing = on;
      inTurn(redraw);
    });
  }
}

function hideEmpty() {
  for (const id of ["tables", "figures", "missing"]) {
    const empty = !byId(id).querySelector("details, figure, li");
    byId(id).hidden = empty;
    const link = document.querySelector(`nav a[href="#${id}"]`);
    if (link) link.hidden = empty;
  }
  byId("heads").hidden = !DATA.maps.length;
  document.querySelector('nav a[href="#heads"]').hidden = !DATA.maps.length;
}

hideEmpty();
letTablesBeSorted();
if (DATA.maps.length) {
  listen();
  const first = DATA.maps.find((entry) => entry.low) ?? DATA.maps[0];
  inTurn(() => show(first)).then(() => {
    document.body.setAttribute("data-ready", "");
  });
}
