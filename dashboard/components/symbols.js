// The symbols of a map as pictures.

const SYMBOLS = {
  // corners in units of half the size, as far from the middle as plotly has them: the legend shows plotly's
  diamond: [[1.3, 0], [0, 1.3], [-1.3, 0], [0, -1.3]],
  square: [[1, 1], [-1, 1], [-1, -1], [1, -1]],
  "triangle-up": [[-1.15, 0.58], [1.15, 0.58], [0, -1.15]],
  pentagon: around(5, 1.15, 1.15),
  star: around(10, 1.4, 0.54),
  cross: plus(0.4, 1.2),
  x: plus(0.4, 1.2).map(([x, y]) => [(x - y) * Math.SQRT1_2, (x + y) * Math.SQRT1_2]),
};
const WIDEST = 1.5; // of a picture, in units of the size

// Pixels on each side of the picture of a symbol.
export function sideOf(symbol, size) {
  return Math.ceil((SYMBOLS[symbol] ? WIDEST : 1) * size) + 2;
}

// A square canvas with the symbol in its middle, whose opacity is what counts. size: in pixels of the screen.
export function pictureOf(symbol, size, side = sideOf(symbol, size)) {
  const corners = SYMBOLS[symbol]; // none: a circle
  const canvas = new OffscreenCanvas(side, side);
  const pen = canvas.getContext("2d");
  pen.translate(side / 2, side / 2);
  pen.beginPath();
  if (corners) for (const [x, y] of corners) pen.lineTo((x * size) / 2, (y * size) / 2);
  else pen.arc(0, 0, size / 2, 0, 2 * Math.PI);
  pen.fill();
  return canvas;
}

function around(count, far, near) {
  return Array.from({ length: count }, (_, i) => {
    const [angle, radius] = [(2 * Math.PI * i) / count - Math.PI / 2, i % 2 ? near : far];
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
}

function plus(thin, long) {
  return [[thin, long], [thin, thin], [long, thin], [long, -thin], [thin, -thin], [thin, -long], [-thin, -long], [-thin, -thin], [-long, -thin], [-long, thin], [-thin, thin], [-thin, long]];
}
