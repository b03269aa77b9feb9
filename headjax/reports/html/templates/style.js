// What all plots have in common: the page's colours and fonts, and no clutter.

let printing = false;
let last = Promise.resolve();

// Draws after whatever is being drawn, so that a quick hand mixes nothing up.
function inTurn(work) {
  last = last.then(work, work);
  return last;
}

function theme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  const light = { ink: "#22262b", faint: "#5f6773", line: "#d9dde2" };
  light.paper = "#ffffff";
  light.accent = "#1f62a8";
  const found = { font: read("--font") };
  for (const name of ["ink", "faint", "line", "paper", "accent"]) {
    found[name] = printing ? light[name] : read(`--${name}`);
  }
  return found;
}

function roomFor(box) {
  return printing ? 620 : box.clientWidth;
}

function baseLayout(colours, more) {
  const font = { family: colours.font, size: 12, color: colours.ink };
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font,
    dragmode: false,
    showlegend: false,
    hoverlabel: {
      bgcolor: colours.paper,
      bordercolor: colours.faint,
      font: { ...font, size: 13 },
      align: "left",
    },
    ...more,
  };
}

function axis(colours, title, more) {
  return {
    title: { text: title, font: { color: colours.faint }, standoff: 8 },
    fixedrange: true,
    showgrid: false,
    zeroline: false,
    ticks: "",
    tickfont: { color: colours.ink, size: 11 },
    ...more,
  };
}

// Numbers beside the cells, as many as there is room for.
function ticksFor(labels, pixels, each) {
  const every = Math.max(1, Math.ceil((labels.length * each) / pixels));
  const places = labels.map((_, i) => i).filter((i) => i % every === 0);
  return { tickvals: places, ticktext: places.map((i) => plain(labels[i])) };
}

// The scale of all figures; of values without a sign only its upper half.
function colourScale(colours, signed) {
  if (signed) return colours;
  return colours.filter(([x]) => x >= 0.5).map(([x, c]) => [2 * x - 1, c]);
}

const PLAIN = { displayModeBar: false, responsive: false, scrollZoom: false };

// Plotly keeps listeners of a box; each box gets them once.
const listening = new WeakSet();

async function draw(box, traces, layout, onClick) {
  await Plotly.react(box, traces, layout, PLAIN);
  if (onClick && !listening.has(box)) {
    listening.add(box);
    box.on("plotly_click", ({ points }) => onClick(points[0]));
  }
}

function colourBar(colours, title, more) {
  return {
    title: { text: title, side: "right", font: { color: colours.faint } },
    thickness: 10,
    outlinewidth: 0,
    tickfont: { color: colours.ink, size: 11 },
    xpad: 8,
    ...more,
  };
}
