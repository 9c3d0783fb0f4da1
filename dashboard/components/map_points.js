// The points of a map, out of the figure that the server made: plain arrays, and what is asked of them. Pure.

const TYPES = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u4: Uint32Array, i2: Int16Array, u2: Uint16Array, i1: Int8Array, u1: Uint8Array };
const FAINT = 0.2; // of the opacity, for points outside what was drawn around
const STRONG = 128; // opacity, of 255, from which points are over all that are fainter

// Its scattergl traces: [{trace, x, y, colours (n × 4 bytes: red, green, blue, opacity), size, symbol, texts, places, told}], path: see `moved`; places: of points whose texts are fetched, told(i): what is
// said of a point beside its text; unknown: the colour of a point without a number where numbers give the colours.
export function pointsOf(figure, unknown) {
  return figure.data.flatMap((trace, place) => {
    if (trace.type !== "scattergl") return [];
    const { marker } = trace;
    const x = numbers(trace.x);
    const scale = figure.layout.coloraxis;
    const values = typeof marker.color === "string" ? null : numbers(marker.color);
    const told = (i) => (values ? `${scale.colorbar.title.text} ${Number.isInteger(values[i]) ? count(values[i]) : number(values[i])}` : trace.name);
    return { trace: place, x, y: numbers(trace.y), colours: coloursOf(marker, x.length, values, scale, rgb(unknown)), size: marker.size, symbol: marker.symbol, path: trace.meta ? Float32Array.from(trace.meta) : null, texts: trace.text ?? [], places: trace.customdata ? numbers(trace.customdata) : null, told };
  });
}

// The same figure without these points, but with their names in the legend and their scale of colours.
export function withoutPoints(figure) {
  const data = figure.data.map((trace) => {
    if (trace.type !== "scattergl") return trace;
    const { color } = trace.marker;
    const one = typeof color === "string" ? color : [figure.layout.coloraxis.cmin];
    return { ...trace, type: "scatter", x: [null], y: [null], text: undefined, hovertemplate: undefined, hoverinfo: "skip", marker: { ...trace.marker, color: one } };
  });
  return { data, layout: figure.layout };
}

// The same parts with their points as far along their paths as `at` says, between two whole frames: path holds x and y of every point in the
// first frame, then in the next.
export function moved(parts, at) {
  const [before, share] = [Math.floor(at), at - Math.floor(at)];
  return parts.map((part) => {
    const step = 2 * part.x.length;
    const after = share > 0 ? before + 1 : before;
    const place = (k) => part.path[before * step + k] * (1 - share) + part.path[after * step + k] * share;
    return { ...part, x: part.x.map((_, i) => place(2 * i)), y: part.y.map((_, i) => place(2 * i + 1)) };
  });
}

// The opacities of each part with what lies outside these corners faint; none: as they were.
export function dimmed(parts, corners) {
  return parts.map(({ x, y, colours }) => {
    const found = colours.slice();
    if (corners.length > 2) for (let i = 0; i < x.length; i++) if (!inside(x[i], y[i], corners)) found[4 * i + 3] *= FAINT;
    return found;
  });
}

// The points of all parts, counted on from one part to the next, in the order in which they are drawn: mixed, so that no part lies
// over another, always in the same way, and faint ones first. colours: of each part, four bytes a point.
export function drawingOrder(colours) {
  const strong = new Uint8Array(colours.reduce((sum, part) => sum + part.length / 4, 0));
  let next = 0;
  for (const part of colours) for (let at = 3; at < part.length; at += 4) strong[next++] = part[at] < STRONG ? 0 : 1;
  const all = mixed(strong.length);
  const found = new Uint32Array(all.length);
  next = 0;
  for (const wanted of [0, 1]) for (let i = 0; i < all.length; i++) if (strong[all[i]] === wanted) found[next++] = all[i];
  return found;
}

// {part: of each point, index: its place there}, the points counted on from one part to the next.
export function placesOf(lengths) {
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const found = { part: new Uint16Array(total), index: new Uint32Array(total) };
  let next = 0;
  lengths.forEach((length, part) => {
    for (let i = 0; i < length; i++, next++) [found.part[next], found.index[next]] = [part, i];
  });
  return found;
}

// All points as one trace of plotly, each with its colour and symbol, in the order in which they are drawn; for a file.
export function asOneTrace(parts, colours, shown, type) {
  const { part, index } = placesOf(parts.map(({ x }) => x.length));
  const order = [...drawingOrder(colours)].filter((one) => shown(parts[part[one]]));
  const of = (read) => order.map((one) => read(parts[part[one]], index[one], colours[part[one]]));
  const color = of((_, i, ink) => `rgba(${ink[4 * i]},${ink[4 * i + 1]},${ink[4 * i + 2]},${(ink[4 * i + 3] / 255).toFixed(3)})`);
  const marker = { color, symbol: of(({ symbol }) => symbol), size: parts[0]?.size, opacity: 1, line: { width: 0 } };
  // plotly would make points outside what is drawn around fainter once more
  return { type, mode: "markers", x: of(({ x }, i) => x[i]), y: of(({ y }, i) => y[i]), marker, unselected: { marker: { opacity: 1 } }, showlegend: false };
}

// {part, index} of the point that is drawn nearest to a place on the screen, at most `reach` pixels away.
export function nearest(parts, shown, at, area, reach) {
  let best = null;
  let least = reach ** 2;
  const [across, up] = [area.width / (area.x[1] - area.x[0]), area.height / (area.y[1] - area.y[0])];
  parts.forEach((part, place) => {
    if (!shown(part)) return;
    for (let i = 0; i < part.x.length; i++) {
      const distance = ((part.x[i] - area.x[0]) * across - at.left) ** 2 + (area.height - (part.y[i] - area.y[0]) * up - at.top) ** 2;
      if (distance <= least) {
        least = distance;
        best = { part: place, index: i };
      }
    }
  });
  return best;
}

// 0 to count − 1 in an order that only depends on how many they are.
const orders = new Map();
function mixed(count) {
  if (!orders.has(count)) orders.set(count, shuffled(count));
  return orders.get(count);
}

function shuffled(count) {
  const found = Uint32Array.from({ length: count }, (_, i) => i);
  let state = 1;
  for (let last = count - 1; last > 0; last--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0; // the low digits of such a number come again soon, the high ones do not
    const other = Math.floor((state / 4294967296) * (last + 1));
    [found[last], found[other]] = [found[other], found[last]];
  }
  return found;
}

function inside(x, y, corners) {
  let found = false;
  for (let i = 0, before = corners.length - 1; i < corners.length; before = i++) {
    const [[x1, y1], [x2, y2]] = [corners[i], corners[before]];
    if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) found = !found;
  }
  return found;
}

function numbers(values) {
  if (Array.isArray(values)) return Float64Array.from(values, (value) => value ?? NaN);
  const bytes = Uint8Array.from(atob(values.bdata), (letter) => letter.charCodeAt(0));
  return new TYPES[values.dtype](bytes.buffer);
}

function coloursOf(marker, count, values, scale, unknown) {
  const found = new Uint8Array(4 * count);
  const [, own] = (typeof marker.color === "string" && marker.color.match(/^rgba\(.*,\s*([\d.]+)\)$/)) || [];
  const opacity = Math.round(255 * (marker.opacity ?? 1) * Number(own ?? 1));
  const one = values ? null : rgb(marker.color);
  for (let i = 0; i < count; i++) {
    const [red, green, blue] = one ?? (Number.isNaN(values[i]) ? unknown : between(scale, values[i]));
    found.set([red, green, blue, opacity], 4 * i);
  }
  return found;
}

function between({ colorscale, cmin, cmax }, value) {
  const share = cmax > cmin ? Math.min(1, Math.max(0, (value - cmin) / (cmax - cmin))) : 0.5;
  const after = Math.max(1, colorscale.findIndex(([end]) => end >= share));
  const [[from, low], [to, high]] = [colorscale[after - 1], colorscale[after]];
  const [start, end] = [rgb(low), rgb(high)];
  return start.map((part, i) => Math.round(part + ((share - from) / (to - from)) * (end[i] - part)));
}
