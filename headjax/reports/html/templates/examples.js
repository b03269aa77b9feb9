// What is known of one head: first, its effect on every single example.

function section(parts, title) {
  const controls = element("div", { class: "controls" });
  const box = element("div", { class: "plot" });
  const again = element("p", { class: "again" });
  parts.append(element("h4", {}, title), controls, box, again);
  return { controls, box, again };
}

// Single examples, from the smallest to the largest, around their mean.
async function drawExamples(view, parts, labels) {
  const { entry, open, chosen } = view;
  const values = await unpack(entry.examples);
  if (!values) return;
  const shape = entry.examples.shape;
  const n = shape.at(-3);
  const found = Array.from({ length: n }, (_, i) => {
    return values[flat([...chosen, i, ...open], shape)];
  });
  const order = found.map((_, i) => i).filter((i) => !Number.isNaN(found[i]));
  if (!order.length) return;
  order.sort((a, b) => found[a] - found[b]);
  const { box, again } = section(parts, "Single examples");
  const colours = theme();
  const said = labels[entry.prompts] ?? {};
  const trace = {
    type: "scatter",
    mode: "markers",
    y: order.map((i) => found[i]),
    text: order.map((i) => exampleText(i, found[i], said)),
    hovertemplate: "%{text}<extra></extra>",
    marker: { color: colours.accent, size: n > 200 ? 4 : 6 },
  };
  const [row, column] = open;
  const shapes = [level(0, colours.line, "solid")];
  if (view.low && !Number.isNaN(view.low[row][column])) {
    shapes.push(band(view.low[row][column], view.high[row][column], colours));
  }
  shapes.push(level(view.mean[row][column], colours.accent, "dot"));
  const layout = baseLayout(colours, {
    width: roomFor(box),
    height: 220,
    margin: { l: 56, r: 8, t: 6, b: 36 },
    xaxis: axis(colours, "examples, in order of their value", {
      showticklabels: false,
    }),
    yaxis: axis(colours, plain(entry.units)),
    hovermode: "closest",
    shapes,
  });
  await draw(box, [trace], layout);
  box.setAttribute("role", "img");
  const ends = [order[0], order.at(-1)].map((i) => number(found[i], true));
  const drawn = `${order.length} examples, from ${ends[0]} to ${ends[1]}`;
  box.setAttribute("aria-label", drawn);
  recompute(again, [arrayCall(entry, chosen, view.head)]);
}

function exampleText(i, value, said) {
  const lines = [`<b>${number(value, true)}</b>  example ${i}`];
  for (const [name, values] of Object.entries(said)) {
    const known = values[i];
    if (known === null || known === undefined || known === "") continue;
    const text = typeof known === "number" ? number(known) : String(known);
    lines.push(`${plain(name)}: ${plain(shorten(text, 70))}`);
  }
  return lines.join("<br>");
}

function shorten(text, most) {
  return text.length > most ? `\u2026${text.slice(1 - most)}` : text;
}

function level(y, color, dash) {
  const ends = { x0: 0, x1: 1, xref: "paper", y0: y, y1: y };
  const line = { color, dash, width: 1 };
  return { type: "line", layer: "below", ...ends, line };
}

function band(y0, y1, colours) {
  const ends = { x0: 0, x1: 1, xref: "paper", y0, y1 };
  const look = { fillcolor: colours.accent, opacity: 0.15, line: { width: 0 } };
  return { type: "rect", layer: "below", ...ends, ...look };
}
