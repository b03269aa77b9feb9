// How numbers, heads and calls are written.

function number(x, signed = false) {
  if (x === null || Number.isNaN(x)) return "no value";
  if (!Number.isFinite(x)) return x > 0 ? "\u221e" : "\u2212\u221e";
  const size = Math.abs(x);
  const small = size !== 0 && (size < 1e-4 || size >= 1e5);
  const text = small ? size.toExponential(2) : String(+size.toPrecision(3));
  return (x < 0 ? "\u2212" : signed && x > 0 ? "+" : "") + text;
}

function interval(low, high, signed) {
  if (low === undefined || Number.isNaN(low)) return "";
  return `[${number(low, signed)}, ${number(high, signed)}]`;
}

function headName(entry, row, column) {
  return `L${entry.layers[row]}H${entry.heads[column]}`;
}

// What Plotly shows as text must not be read as markup.
function plain(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;");
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// The call that gives the array of an entry, at its switches and one head.
function arrayCall(entry, chosen, head) {
  const sels = entry.switches.map(
    ({ name, values }, i) => `${name}=${JSON.stringify(values[chosen[i]])}`,
  );
  const { load, axes, listed, list, mean } = entry.code;
  let call = load;
  if (head && !listed) {
    sels.push(`${axes[0]}=${head[0]}`, `${axes[1]}=${head[1]}`);
  }
  if (sels.length) call += `.sel(${sels.join(", ")})`;
  if (head && listed) {
    const at = list.findIndex(([l, h]) => l === head[0] && h === head[1]);
    call += `.isel(${listed}=${at})`;
  }
  if (mean.length) call += `.mean(${JSON.stringify(mean)})`;
  return call;
}

function meanCall(entry, chosen, head) {
  const call = arrayCall(entry, chosen, head);
  return entry.examples_n ? `${call}.mean("example")` : call;
}

function intervalCall(entry, chosen) {
  return entry.code.interval.replace("{x}", arrayCall(entry, chosen));
}

// The line that says which calls give a number again.
function recompute(box, calls) {
  const codes = calls.map((call) => element("code", {}, call));
  box.replaceChildren(element("span", {}, "Recompute"), " ", ...codes);
}

// A labelled choice; of one thing it is text.
let choices = 0;

function choice(name, options, chosen, onChange) {
  if (options.length < 2) {
    const only = element("span", { class: "alone" }, String(options[0]));
    return element("div", { class: "choice" }, element("span", {}, name), only);
  }
  const id = `choice-${(choices += 1)}`;
  const select = element("select", { id, name });
  options.forEach((text, i) => {
    select.append(element("option", { value: i }, String(text)));
  });
  select.value = chosen;
  select.addEventListener("change", () => {
    inTurn(() => onChange(+select.value));
  });
  const label = element("label", { for: id }, name);
  return element("div", { class: "choice" }, label, select);
}
