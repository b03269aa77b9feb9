// For the printer, which cannot click: small maps of the chosen quantity of every
// model and task, then of the chosen model and task in every other quantity.

const MOST_ON_PAPER = 60;

async function drawPaper(shown) {
  const near = DATA.maps.filter(
    (e) => e.quantity === shown.quantity
      || (e.model === shown.model && e.task === shown.task),
  );
  near.sort((a, b) => {
    return (b.quantity === shown.quantity) - (a.quantity === shown.quantity);
  });
  const all = near.flatMap((entry) =>
    combinations(entry.switches).map((chosen) => ({ entry, chosen })),
  );
  const kept = all.slice(0, MOST_ON_PAPER);
  const parts = [];
  for (const quantity of unique(kept.map(({ entry }) => entry.quantity))) {
    const mine = kept.filter(({ entry }) => entry.quantity === quantity);
    parts.push(...(await paperGroup(quantity, mine)));
  }
  if (all.length > kept.length) {
    const said = `The first ${kept.length} of ${all.length} maps.`;
    parts.push(element("p", { class: "same" }, said));
  }
  byId("paper").replaceChildren(...parts);
}

// Every choice of the switches, the last one first to change.
function combinations(switches) {
  return switches.reduce(
    (rows, { values }) => rows.flatMap((r) => values.map((_, i) => [...r, i])),
    [[]],
  );
}

// One colour scale for all that are compared.
async function paperGroup(quantity, maps) {
  const limit = Math.max(...maps.map(({ entry }) => entry.colour.limit));
  const signed = maps.some(({ entry }) => entry.colour.signed);
  const { title, units } = maps[0].entry;
  const ends = `${signed ? "\u00b1" : "0 to "}${number(limit)} ${units}`;
  const figures = [];
  for (const { entry, chosen } of maps) {
    const values = await unpack(entry.mean);
    const mean = tableAt(values, entry.mean.shape, chosen);
    const look = { ...entry.colour, limit, signed };
    figures.push(paperMap(entry, chosen, mean, look));
  }
  const said = `${title}, colours ${ends.trim()}; layers upwards from`
    + ` ${maps[0].entry.layers[0]}, heads to the right`;
  return [
    element("h3", {}, quantity),
    element("p", { class: "same" }, said),
    element("div", {}, ...figures),
  ];
}

function paperMap(entry, chosen, mean, look) {
  const image = element("img", { alt: "", src: painted(mean, look) });
  const cell = Math.min(13, 150 / mean[0].length, 190 / mean.length);
  image.width = Math.round(cell * mean[0].length);
  const names = [entry.model, entry.task].filter(Boolean);
  entry.switches.forEach(({ name, values }, k) => {
    names.push(`${name} ${values[chosen[k]]}`);
  });
  const [top] = byEffect(mean);
  if (top) {
    const value = number(mean[top[0]][top[1]], look.signed);
    names.push(`largest ${headName(entry, ...top)} ${value}`);
  }
  const said = element("figcaption", {}, names.join(" \u00b7 "));
  return element("figure", {}, image, said);
}

// A picture of many dots a cell: viewers smooth what has few.
function painted(mean, { limit, signed, width }) {
  const side = 24;
  const canvas = element("canvas");
  canvas.width = side * mean[0].length;
  canvas.height = side * mean.length;
  const pen = canvas.getContext("2d");
  const scale = colourScale(DATA.colours, signed);
  mean.forEach((line, row) => line.forEach((x, column) => {
    const share = asinhOf(x, width) / asinhOf(limit, width);
    const place = signed ? (share + 1) / 2 : share;
    const at = Math.round(place * (scale.length - 1));
    pen.fillStyle = Number.isNaN(x) ? "#e8eaed" : scale[at][1];
    const y = (mean.length - 1 - row) * side;
    pen.fillRect(column * side + 1, y + 1, side - 2, side - 2);
  }));
  return canvas.toDataURL();
}
