// Undoes headjax/reports/html/packing.py. Values stay packed until needed.

function unpack(packed) {
  if (!packed) return Promise.resolve(null);
  packed.values ??= inflate(packed);
  return packed.values;
}

async function inflate({ data, type, scale }) {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const whole = new Blob([bytes])
    .stream()
    .pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(whole).arrayBuffer();
  if (type === "f4") return new Float32Array(buffer);
  return Float32Array.from(new Uint16Array(buffer), (h) => half(h) * scale);
}

// A number of 16 bits: 1 of the sign, 5 of the exponent, 10 of the rest.
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const rest = (bits & 1023) / 1024;
  if (exponent === 31) return rest ? NaN : sign * Infinity;
  if (exponent === 0) return sign * rest * 2 ** -14;
  return sign * (1 + rest) * 2 ** (exponent - 15);
}

// One table [rows, columns] out of the last two axes of an array.
function tableAt(values, shape, before) {
  const [rows, columns] = shape.slice(-2);
  const start = flat(before, shape.slice(0, -2)) * rows * columns;
  return Array.from({ length: rows }, (_, row) =>
    Array.from(
      values.subarray(start + row * columns, start + (row + 1) * columns),
    ),
  );
}

function flat(index, shape) {
  return index.reduce((sum, at, axis) => sum * shape[axis] + at, 0);
}
