// The points of a map, out of the figure that the server made: plain arrays, and what is asked of them. Pure.

const TYPES = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u4: Uint32Array, i2: Int16Array, u2: Uint16Array, i1: Int8Array, u1: Uint8Array };
const UNKNOWN = [127, 134, 145]; // of a point without a number where numbers give the colours
const FAINT = 0.2; // of the opacity, for points outside what was drawn around

// Its scattergl traces: [{trace, x, y, colours (n × 4 bytes: red, green, blue, opacity), size, symbol, texts, told}], told(i): what is
// said of a point beside its text.
export function pointsOf(figure) {
  return figure.data.flatMap((trace, place) => {
    if (trace.type !== "scattergl") return [];
    const { marker } = trace;
    const x = numbers(trace.x);
    const scale = figure.layout.coloraxis;
    const values = typeof marker.color === "string" ? null : numbers(marker.color);
    const told = (i) => (values ? `${scale.colorbar.title.text} ${Number.isInteger(values[i]) ? count(values[i]) : number(values[i])}` : trace.name);
    return { trace: place, x, y: numbers(trace.y), colours: coloursOf(marker, x.length, values, scale), size: marker.size, symbol: marker.symbol, texts: trace.text ?? [], told };
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

// The opacities of each part with what lies outside these corners faint; none: as they were.
export function dimmed(parts, corners) {
  return parts.map(({ x, y, colours }) => {
    const found = colours.slice();
    if (corners.length > 2) for (let i = 0; i < x.length; i++) if (!inside(x[i], y[i], corners)) found[4 * i + 3] *= FAINT;
    return found;
  });
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

function coloursOf(marker, count, values, scale) {
  const found = new Uint8Array(4 * count);
  const [, own] = (typeof marker.color === "string" && marker.color.match(/^rgba\(.*,\s*([\d.]+)\)$/)) || [];
  const opacity = Math.round(255 * (marker.opacity ?? 1) * Number(own ?? 1));
  const one = values ? null : rgb(marker.color);
  for (let i = 0; i < count; i++) {
    const [red, green, blue] = one ?? between(scale, values[i]);
    found.set([red, green, blue, opacity], 4 * i);
  }
  return found;
}

function between({ colorscale, cmin, cmax }, value) {
  if (Number.isNaN(value)) return UNKNOWN;
  const share = cmax > cmin ? Math.min(1, Math.max(0, (value - cmin) / (cmax - cmin))) : 0.5;
  const after = Math.max(1, colorscale.findIndex(([end]) => end >= share));
  const [[from, low], [to, high]] = [colorscale[after - 1], colorscale[after]];
  const [start, end] = [rgb(low), rgb(high)];
  return start.map((part, i) => Math.round(part + ((share - from) / (to - from)) * (end[i] - part)));
}
