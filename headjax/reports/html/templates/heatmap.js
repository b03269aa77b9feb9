// The map of all heads: layer by head, with a cursor for the keyboard.

function asinhOf(x, width) {
  return width === null ? x : Math.asinh(x / width);
}

function hoverText(view, row, column) {
  const { entry, mean, low, high } = view;
  const signed = entry.colour.signed;
  const value = mean[row][column];
  const lines = [
    `<b>${plain(headName(entry, row, column))}</b>  ${number(value, signed)}`,
  ];
  const span = low ? interval(low[row][column], high[row][column], signed) : "";
  if (span) lines[0] += ` ${span}`;
  const unit = plain(entry.units);
  if (unit) lines.push(unit);
  if (entry.examples_n) {
    const how = span ? ", 95% interval" : "";
    lines.push(`${entry.examples_n} examples${how}`);
  }
  return lines.join("<br>");
}

function spokenText(view, row, column) {
  const { entry, mean, low, high } = view;
  const said = [
    `layer ${entry.layers[row]}, head ${entry.heads[column]}`,
    number(mean[row][column], entry.colour.signed),
  ];
  if (low && !Number.isNaN(low[row][column])) {
    const ends = [low, high].map((t) => number(t[row][column]));
    said.push(`interval ${ends[0]} to ${ends[1]}`);
  }
  return said.join(", ");
}

function mapTrace(view, colours, scale) {
  const { entry, mean } = view;
  const { limit, signed, width, ticks, places } = entry.colour;
  const reach = asinhOf(limit, width);
  const shown = {};
  if (ticks) {
    const kept = apart(places, (2 * reach * 14) / view.tall);
    shown.tickvals = kept.map((i) => places[i]);
    shown.ticktext = kept.map((i) => number(ticks[i]));
  }
  return {
    type: "heatmap",
    z: mean.map((line) => line.map((x) => asinhOf(x, width))),
    zmin: signed ? -reach : 0,
    zmax: reach,
    colorscale: colourScale(scale, signed),
    xgap: 1,
    ygap: 1,
    hoverongaps: false,
    text: mean.map((line, row) => line.map((_, c) => hoverText(view, row, c))),
    hovertemplate: "%{text}<extra></extra>",
    colorbar: colourBar(colours, plain(entry.units), shown),
  };
}

// Which of some ascending places to keep, the middle one first, so that no two
// are nearer than a gap.
function apart(places, gap) {
  const middle = (places.length - 1) / 2;
  const order = places.map((_, i) => i);
  order.sort((a, b) => Math.abs(b - middle) - Math.abs(a - middle));
  const kept = [middle];
  for (const i of order) {
    if (kept.every((k) => Math.abs(places[k] - places[i]) >= gap)) kept.push(i);
  }
  return kept.sort((a, b) => a - b);
}

// The largest heads in rings, white behind ink, as in the printed figures.
function rings(view) {
  const top = view.largest.slice(0, 5);
  const size = Math.max(7, Math.min(view.cell * 0.7, 20));
  const looks = [["#ffffff", 3.4], ["#22262b", 1.4]];
  return looks.map(([color, width]) => ({
    type: "scatter",
    mode: "markers",
    x: top.map(([, column]) => column),
    y: top.map(([row]) => row),
    hoverinfo: "skip",
    marker: { symbol: "circle-open", size, color, line: { width, color } },
  }));
}

// A frame around one cell, to be seen on dark cells and on light ones.
function frames([row, column], color) {
  const ends = { y0: row - 0.5, y1: row + 0.5 };
  const place = { x0: column - 0.5, x1: column + 0.5, ...ends };
  return [["#ffffff", 4.5], [color, 2.2]].map(([paint, width]) => {
    return { type: "rect", ...place, line: { color: paint, width } };
  });
}

function mapShapes(view) {
  const found = view.open ? frames(view.open, "#22262b") : [];
  return view.cursor ? [...found, ...frames(view.cursor, "#1f62a8")] : found;
}

async function drawMap(view, box, scale, onOpen) {
  const { entry } = view;
  const colours = theme();
  const room = roomFor(box.parentElement.parentElement);
  const margin = { l: 44, r: 84, t: 8, b: 42 };
  const wide = Math.max(140, room - margin.l - margin.r);
  const across = Math.min(44, wide / entry.heads.length);
  const tall = Math.max(11, Math.min(across, 620 / entry.layers.length));
  view.cell = Math.min(across, tall);
  const size = [across * entry.heads.length, tall * entry.layers.length];
  view.tall = Math.max(size[1], 120);
  const x = ticksFor(entry.heads, size[0], 20);
  const y = ticksFor(entry.layers, view.tall, 15);
  const layout = baseLayout(colours, {
    width: Math.round(size[0]) + margin.l + margin.r,
    height: Math.round(view.tall) + margin.t + margin.b,
    margin,
    xaxis: axis(colours, "head", {
      ...x,
      range: [-0.5, entry.heads.length - 0.5],
    }),
    yaxis: axis(colours, "layer", {
      ...y,
      range: [-0.5, entry.layers.length - 0.5],
    }),
    shapes: mapShapes(view),
  });
  const traces = [mapTrace(view, colours, scale), ...rings(view)];
  await draw(box, traces, layout, (point) => {
    if (Array.isArray(point.pointIndex)) onOpen(...point.pointIndex);
  });
}
