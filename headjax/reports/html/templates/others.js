// One number for every other head: overlaps, leakage, responses.

const ROLES = ["the source", "the reader"];

async function drawPairs(view, parts, pairs, scale, memory) {
  if (!pairs.length) return;
  const { controls, box, again } = section(parts, "With the other heads");
  const show = async () => {
    const entry = pairs[memory.pair];
    memory.chosen = entry.switches.map(({ values }, i) =>
      Math.min(memory.chosen?.[i] ?? 0, values.length - 1),
    );
    controls.replaceChildren(
      choice("quantity", pairs.map((e) => e.quantity), memory.pair, (i) => {
        memory.pair = i;
        return show();
      }),
      choice("this head is", ROLES, +memory.reads, (i) => {
        memory.reads = Boolean(i);
        return show();
      }),
      ...entry.switches.map(({ name, values }, k) =>
        choice(name, values, memory.chosen[k], (i) => {
          memory.chosen[k] = i;
          return show();
        }),
      ),
    );
    const table = await pairTable(entry, view.head, memory);
    if (table) await drawOthers(box, table, entry, view.head, scale);
    else box.replaceChildren("No value of this head.");
    const names = memory.reads
      ? ["layer", "head"]
      : ["source_layer", "source_head"];
    // A list is one of sources, and readers are chosen by their place.
    const listed = memory.reads ? null : entry.code.listed;
    const code = { ...entry.code, axes: names, listed };
    const call = { ...entry, code };
    const absent = listed && !isListed(entry.code.list, view.head);
    if (absent) again.replaceChildren();
    else recompute(again, [arrayCall(call, memory.chosen, view.head)]);
  };
  memory.pair = Math.min(memory.pair ?? 0, pairs.length - 1);
  memory.reads ??= false;
  await show();
}

function isListed(list, [layer, head]) {
  return list.some(([l, h]) => l === layer && h === head);
}

async function pairTable(entry, head, { chosen, reads }) {
  const sources = [entry.source_layers, entry.source_heads];
  const readers = [entry.layers, entry.heads];
  const mine = reads ? readers : sources;
  const others = reads ? sources : readers;
  const at = mine.map((labels, k) => labels.indexOf(head[k]));
  if (at.includes(-1)) return null;
  const values = await unpack(entry.values);
  const shape = entry.values.shape;
  const z = others[0].map((_, row) =>
    others[1].map((_, column) => {
      const pair = reads ? [row, column, ...at] : [...at, row, column];
      return values[flat([...chosen, ...pair], shape)];
    }),
  );
  const known = z.flat().filter((x) => !Number.isNaN(x));
  if (!known.length) return null;
  return { z, known, layers: others[0], heads: others[1] };
}

async function drawOthers(box, table, entry, head, scale) {
  const { z, known, layers, heads } = table;
  const colours = theme();
  const limit = Math.max(...known.map(Math.abs)) || 1;
  const signed = known.some((x) => x < 0);
  const room = Math.min(roomFor(box), 460);
  const across = Math.min(30, Math.max(4, (room - 128) / heads.length));
  const tall = Math.max(7, Math.min(across, 360 / layers.length));
  const size = [across * heads.length, Math.max(tall * layers.length, 100)];
  const trace = {
    type: "heatmap",
    z,
    zmin: signed ? -limit : 0,
    zmax: limit,
    colorscale: colourScale(scale, signed),
    xgap: 1,
    ygap: 1,
    hoverongaps: false,
    text: z.map((row, r) =>
      row.map((x, c) => `<b>${plain(headName(table, r, c))}</b>  ${number(x)}`),
    ),
    hovertemplate: "%{text}<extra></extra>",
    colorbar: colourBar(colours, plain(entry.units)),
  };
  const own = [layers.indexOf(head[0]), heads.indexOf(head[1])];
  const layout = baseLayout(colours, {
    width: Math.round(size[0]) + 128,
    height: Math.round(size[1]) + 48,
    margin: { l: 44, r: 84, t: 6, b: 42 },
    xaxis: axis(colours, "head", ticksFor(heads, size[0], 20)),
    yaxis: axis(colours, "layer", ticksFor(layers, size[1], 15)),
    shapes: own.includes(-1) ? [] : frames(own, "#22262b"),
  });
  await draw(box, [trace], layout);
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", `${entry.title}, layer by head`);
}
