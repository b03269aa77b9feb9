// Where the head looks, prompt by prompt.
async function drawAttention(view, parts, patterns, scale, memory) {
  const options = patterns.flatMap((entry) =>
    entry.tokens.map((tokens, prompt) => ({ entry, prompt, tokens })),
  );
  if (!options.length) return;
  const { controls, box, again } = section(parts, "Attention");
  const show = async (i) => {
    memory.prompt = i;
    const { entry, prompt, tokens } = options[i];
    const axes = [entry.layers, entry.heads];
    const at = axes.map((labels, k) => labels.indexOf(view.head[k]));
    if (at.includes(-1)) return;
    const values = await unpack(entry.values);
    const n = entry.lengths[prompt];
    const whole = tableAt(values, entry.values.shape, [prompt, ...at]);
    const z = whole.slice(0, n).map((row) => row.slice(0, n));
    await drawPattern(box, z, tokens.slice(0, n), scale);
    recompute(again, [patternCall(entry, prompt, view.head)]);
  };
  const names = options.map(({ entry, tokens, prompt }) => {
    return shorten(tokens.slice(0, entry.lengths[prompt]).join(""), 60);
  });
  const first = Math.min(memory.prompt ?? 0, options.length - 1);
  controls.append(choice("prompt", names, first, show));
  await show(first);
}

function patternCall(entry, prompt, head) {
  let call = `${entry.code.load}.sel(layer=${head[0]}, head=${head[1]})`;
  let rest = prompt;
  const at = [];
  for (const [name, size] of [...entry.prompt_axes].reverse()) {
    at.unshift(`${name}=${rest % size}`);
    rest = Math.floor(rest / size);
  }
  return at.length ? `${call}.isel(${at.join(", ")})` : call;
}

async function drawPattern(box, z, tokens, scale) {
  const colours = theme();
  const shown = tokens.map((t) => `\u2018${plain(t)}\u2019`);
  const room = Math.min(roomFor(box), 460);
  const longest = Math.max(...tokens.map((t) => t.length));
  const side = Math.min(30 + 7 * longest, 110);
  const cell = Math.max(4, Math.min(26, (room - side - 70) / tokens.length));
  const size = cell * tokens.length;
  const ticks = ticksFor(tokens, size, 14);
  const trace = {
    type: "heatmap",
    z,
    zmin: 0,
    zmax: 1,
    colorscale: colourScale(scale, false),
    xgap: cell > 8 ? 1 : 0,
    ygap: cell > 8 ? 1 : 0,
    text: z.map((row, q) =>
      row.map((x, k) => `${shown[q]} at ${shown[k]}: <b>${number(x)}</b>`),
    ),
    hovertemplate: "%{text}<extra></extra>",
    colorbar: colourBar(colours, "share", { len: 1 }),
  };
  const layout = baseLayout(colours, {
    width: Math.round(size + side + 70),
    height: Math.round(size + side + 20),
    margin: { l: side, r: 70, t: 6, b: side + 14 },
    xaxis: axis(colours, "key", { ...ticks, tickangle: -60 }),
    yaxis: axis(colours, "query", { ...ticks, autorange: "reversed" }),
  });
  await draw(box, [trace], layout);
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", "attention, query by key");
}
