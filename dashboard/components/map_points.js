// The points of a map as plain arrays, read from the server's figure, and functions on them. Pure.

const TYPES = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u4: Uint32Array, i2: Int16Array, u2: Uint16Array, i1: Int8Array, u1: Uint8Array };
const FAINT_OPACITY = 0.2; // factor for the opacity of points outside the selection
const STRONG_FROM = 128; // points of at least this opacity (of 255) are drawn over fainter ones

// One part per scattergl trace: {trace, x, y, colours (n × 4 bytes: red, green, blue, opacity), size, symbol, texts, textRows, describe}.
// textRows: rows of the texts, if these are fetched later; describe(i): the tooltip's second line.
// unknown: the colour of points without a value, where values set the colour.
export function pointsOf(figure, unknown) {
  return figure.data.flatMap((trace, index) => {
    if (trace.type !== "scattergl") return [];
    const { marker } = trace;
    const x = numbers(trace.x);
    const scale = figure.layout.coloraxis;
    const values = typeof marker.color === "string" ? null : numbers(marker.color);
    const describe = (i) => (values ? `${scale.colorbar.title.text} ${Number.isInteger(values[i]) ? count(values[i]) : number(values[i])}` : trace.name);
    return { trace: index, x, y: numbers(trace.y), colours: coloursOf(marker, x.length, values, scale, rgb(unknown)), size: marker.size, symbol: marker.symbol, texts: trace.text ?? [], textRows: trace.customdata ? numbers(trace.customdata) : null, describe };
  });
}

// The figure without these points, but with their legend and colour scale.
export function withoutPoints(figure) {
  const data = figure.data.map((trace) => {
    if (trace.type !== "scattergl") return trace;
    const { color } = trace.marker;
    const colour = typeof color === "string" ? color : [figure.layout.coloraxis.cmin];
    return { ...trace, type: "scatter", x: [null], y: [null], text: undefined, hovertemplate: undefined, hoverinfo: "skip", marker: { ...trace.marker, color: colour } };
  });
  return { data, layout: figure.layout };
}

// The colours of each part, with points outside the polygon faint. No corners: unchanged.
export function dimmedColours(parts, corners) {
  return parts.map(({ x, y, colours }) => {
    const dimmed = colours.slice();
    if (corners.length > 2) for (let i = 0; i < x.length; i++) if (!isInside(x[i], y[i], corners)) dimmed[4 * i + 3] *= FAINT_OPACITY;
    return dimmed;
  });
}

// The drawing order of all points, numbered across the parts: faint points first, otherwise shuffled, so that no part covers another.
// The shuffle is always the same. colours: of each part, four bytes per point.
export function drawingOrder(colours) {
  const strong = new Uint8Array(colours.reduce((sum, part) => sum + part.length / 4, 0));
  let next = 0;
  for (const part of colours) for (let byte = 3; byte < part.length; byte += 4) strong[next++] = part[byte] < STRONG_FROM ? 0 : 1;
  const shuffled = mixedOrder(strong.length);
  const order = new Uint32Array(shuffled.length);
  next = 0;
  for (const stratum of [0, 1]) for (let i = 0; i < shuffled.length; i++) if (strong[shuffled[i]] === stratum) order[next++] = shuffled[i];
  return order;
}

// {part, index} of each point, numbered across the parts.
export function locatePoints(lengths) {
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const located = { part: new Uint16Array(total), index: new Uint32Array(total) };
  let next = 0;
  lengths.forEach((length, part) => {
    for (let i = 0; i < length; i++, next++) [located.part[next], located.index[next]] = [part, i];
  });
  return located;
}

// All points as a single plotly trace in drawing order, each with its colour and symbol. For saved files.
export function asSingleTrace(parts, colours, shown, type) {
  const { part, index } = locatePoints(parts.map(({ x }) => x.length));
  const order = [...drawingOrder(colours)].filter((point) => shown(parts[part[point]]));
  const collect = (read) => order.map((point) => read(parts[part[point]], index[point], colours[part[point]]));
  const color = collect((_, i, bytes) => `rgba(${bytes[4 * i]},${bytes[4 * i + 1]},${bytes[4 * i + 2]},${(bytes[4 * i + 3] / 255).toFixed(3)})`);
  const marker = { color, symbol: collect(({ symbol }) => symbol), size: parts[0]?.size, opacity: 1, line: { width: 0 } };
  // without `unselected`, plotly would fade points outside the selection a second time
  return { type, mode: "markers", x: collect(({ x }, i) => x[i]), y: collect(({ y }, i) => y[i]), marker, unselected: { marker: { opacity: 1 } }, showlegend: false };
}

// {part, index} of the visible point nearest to the pointer, at most `reach` pixels away; null if there is none.
export function nearest(parts, shown, pointer, area, reach) {
  let best = null;
  let smallest = reach ** 2;
  const [across, up] = [area.width / (area.x[1] - area.x[0]), area.height / (area.y[1] - area.y[0])];
  parts.forEach((part, index) => {
    if (!shown(part)) return;
    for (let i = 0; i < part.x.length; i++) {
      const distance = ((part.x[i] - area.x[0]) * across - pointer.left) ** 2 + (area.height - (part.y[i] - area.y[0]) * up - pointer.top) ** 2;
      if (distance <= smallest) {
        smallest = distance;
        best = { part: index, index: i };
      }
    }
  });
  return best;
}

// 0 to count − 1, shuffled; the order depends on count only.
const orders = new Map();
function mixedOrder(count) {
  if (!orders.has(count)) orders.set(count, shuffled(count));
  return orders.get(count);
}

function shuffled(count) {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  let state = 1;
  for (let last = count - 1; last > 0; last--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0; // use the high bits: the low bits of a linear congruential generator repeat soon
    const swap = Math.floor((state / 4294967296) * (last + 1));
    [order[last], order[swap]] = [order[swap], order[last]];
  }
  return order;
}

function isInside(x, y, corners) {
  let result = false;
  for (let i = 0, before = corners.length - 1; i < corners.length; before = i++) {
    const [[x1, y1], [x2, y2]] = [corners[i], corners[before]];
    if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) result = !result;
  }
  return result;
}

function numbers(values) {
  if (Array.isArray(values)) return Float64Array.from(values, (value) => value ?? NaN);
  const bytes = Uint8Array.from(atob(values.bdata), (letter) => letter.charCodeAt(0));
  return new TYPES[values.dtype](bytes.buffer);
}

function coloursOf(marker, count, values, scale, unknown) {
  const colours = new Uint8Array(4 * count);
  const [, alpha] = (typeof marker.color === "string" && marker.color.match(/^rgba\(.*,\s*([\d.]+)\)$/)) || [];
  const opacity = Math.round(255 * (marker.opacity ?? 1) * Number(alpha ?? 1));
  const single = values ? null : rgb(marker.color);
  for (let i = 0; i < count; i++) {
    const [red, green, blue] = single ?? (Number.isNaN(values[i]) ? unknown : interpolateColour(scale, values[i]));
    colours.set([red, green, blue, opacity], 4 * i);
  }
  return colours;
}

function interpolateColour({ colorscale, cmin, cmax }, value) {
  const share = cmax > cmin ? Math.min(1, Math.max(0, (value - cmin) / (cmax - cmin))) : 0.5;
  const after = Math.max(1, colorscale.findIndex(([end]) => end >= share));
  const [[from, low], [to, high]] = [colorscale[after - 1], colorscale[after]];
  const [start, end] = [rgb(low), rgb(high)];
  return start.map((part, i) => Math.round(part + ((share - from) / (to - from)) * (end[i] - part)));
}
