// The symbols of a map as pictures.

const SYMBOLS = {
  // corners in units of half the size, as in plotly, which draws the legend
  diamond: [[1.3, 0], [0, 1.3], [-1.3, 0], [0, -1.3]],
  square: [[1, 1], [-1, 1], [-1, -1], [1, -1]],
  "triangle-up": [[-1.15, 0.58], [1.15, 0.58], [0, -1.15]],
  pentagon: polygon(5, 1.15, 1.15),
  star: polygon(10, 1.4, 0.54),
  cross: crossCorners(0.4, 1.2),
  x: crossCorners(0.4, 1.2).map(([x, y]) => [(x - y) * Math.SQRT1_2, (x + y) * Math.SQRT1_2]),
};
const PICTURE_WIDTH = 1.5; // width of a picture, in units of the size

// Width and height of a symbol's picture, in pixels.
export function sideOf(symbol, size) {
  return Math.ceil((SYMBOLS[symbol] ? PICTURE_WIDTH : 1) * size) + 2;
}

// A square canvas with the symbol in its centre; only its opacity is used. size: in device pixels.
export function pictureOf(symbol, size, side = sideOf(symbol, size)) {
  const corners = SYMBOLS[symbol]; // undefined: a circle
  const canvas = new OffscreenCanvas(side, side);
  const pen = canvas.getContext("2d");
  pen.translate(side / 2, side / 2);
  pen.beginPath();
  if (corners) for (const [x, y] of corners) pen.lineTo((x * size) / 2, (y * size) / 2);
  else pen.arc(0, 0, size / 2, 0, 2 * Math.PI);
  pen.fill();
  return canvas;
}

function polygon(count, outer, inner) {
  return Array.from({ length: count }, (_, i) => {
    const [angle, radius] = [(2 * Math.PI * i) / count - Math.PI / 2, i % 2 ? inner : outer];
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
}

function crossCorners(thin, long) {
  return [[thin, long], [thin, thin], [long, thin], [long, -thin], [thin, -thin], [thin, -long], [-thin, -long], [-thin, -thin], [-long, -thin], [-long, thin], [-thin, thin], [-thin, long]];
}
