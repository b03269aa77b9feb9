// Heads without a mouse: a cursor moves over the map and tells what is there.

// Where a key leads; null if it is not one of ours.
function moved([row, column], key, rows, columns) {
  const steps = {
    ArrowUp: [row + 1, column],
    ArrowDown: [row - 1, column],
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    Home: [row, 0],
    End: [row, columns - 1],
    PageUp: [rows - 1, column],
    PageDown: [0, column],
  };
  if (!steps[key]) return null;
  const [r, c] = steps[key];
  return [
    Math.max(0, Math.min(rows - 1, r)),
    Math.max(0, Math.min(columns - 1, c)),
  ];
}

function onKey(event) {
  const { entry } = view;
  const at = view.cursor ?? view.open;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    inTurn(() => open(...at));
    return;
  }
  const next = moved(at, event.key, entry.layers.length, entry.heads.length);
  if (!next) return;
  event.preventDefault();
  point(next);
}

async function point(at) {
  view.cursor = at;
  byId("map-said").textContent = spokenText(view, ...at);
  const shapes = mapShapes(view);
  await Plotly.relayout(byId("map"), { shapes });
  Plotly.Fx.hover(byId("map"), { xval: at[1], yval: at[0] });
}

function leave() {
  view.cursor = null;
  Plotly.Fx.unhover(byId("map"));
  Plotly.relayout(byId("map"), { shapes: mapShapes(view) });
}
