// Paints a map's points into the pixels of a canvas; no graphics card is needed. Where painting takes longer than a frame, the last
// picture follows a moving view, and the points are painted again when it rests.

const SLOW = 40; // milliseconds of painting from which the picture follows
const MANY = 50000; // points from which the picture has one pixel per pixel of the page, whatever the screen's resolution
const REST = 90; // milliseconds without a change of view until the points are painted again

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

// A square of pixels with the symbol in its centre; only its opacity is used. size: in device pixels.
function pixelsOf(symbol, size) {
  const corners = SYMBOLS[symbol]; // undefined: a circle
  const side = Math.ceil((corners ? PICTURE_WIDTH : 1) * size) + 2;
  const pen = new OffscreenCanvas(side, side).getContext("2d");
  pen.translate(side / 2, side / 2);
  pen.beginPath();
  if (corners) for (const [x, y] of corners) pen.lineTo((x * size) / 2, (y * size) / 2);
  else pen.arc(0, 0, size / 2, 0, 2 * Math.PI);
  pen.fill();
  return pen.getImageData(0, 0, side, side);
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

export class PaintedPoints {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.picture = new OffscreenCanvas(1, 1);
    this.stampCache = new Map();
  }

  // Copies the points in drawing order: scattered reads would dominate the time of each frame. parts: see pointsOf; colours: of each part,
  // four bytes per point.
  set(parts, colours) {
    Object.assign(this, { parts, colours, painted: null });
    const order = drawingOrder(colours);
    const { part, index } = locatePoints(parts.map(({ x }) => x.length));
    const count = order.length;
    this.points = { part: new Uint16Array(count), x: new Float64Array(count), y: new Float64Array(count), bytes: new Uint8Array(4 * count) };
    for (let at = 0; at < count; at++) {
      const partIndex = part[order[at]];
      const i = index[order[at]];
      this.points.part[at] = partIndex;
      this.points.x[at] = parts[partIndex].x[i];
      this.points.y[at] = parts[partIndex].y[i];
      for (let k = 0; k < 4; k++) this.points.bytes[4 * at + k] = colours[partIndex][4 * i + k];
    }
  }

  // area: {left, top, width, height} in CSS pixels, x and y: [from, to] of the axes; shown(part): whether to draw it.
  draw(area, shown) {
    this.area = area;
    const { canvas, pen, picture } = this;
    const ratio = this.points.x.length > MANY ? 1 : globalThis.devicePixelRatio || 1;
    const [width, height] = [area.width, area.height].map((length) => Math.max(1, Math.round(length * ratio)));
    const visible = this.parts.map(shown);
    const name = JSON.stringify([width, height, visible]);
    Object.assign(canvas.style, { left: `${area.left}px`, top: `${area.top}px`, width: `${area.width}px`, height: `${area.height}px` });
    clearTimeout(this.resting);
    if (this.painted?.name !== name || this.painted.took <= SLOW) {
      for (const one of [canvas, picture]) if (one.width !== width || one.height !== height) [one.width, one.height] = [width, height];
      return this.paint(area, visible, ratio, name);
    }
    this.resting = setTimeout(() => this.paint(area, visible, ratio, name), REST);
    const { x, y } = this.painted.area;
    const [across, up] = [width / (area.x[1] - area.x[0]), height / (area.y[1] - area.y[0])];
    pen.clearRect(0, 0, width, height);
    pen.drawImage(picture, (x[0] - area.x[0]) * across, height - (y[1] - area.y[0]) * up, (x[1] - x[0]) * across, (y[1] - y[0]) * up);
  }

  paint(area, visible, ratio, name) {
    const begin = performance.now();
    const { width, height } = this.picture;
    if (this.image?.width !== width || this.image.height !== height) this.image = this.pen.createImageData(width, height);
    const { data } = this.image;
    data.fill(0);
    const [xScale, yScale] = [width / (area.x[1] - area.x[0]), height / (area.y[1] - area.y[0])];
    const stamps = this.parts.map((part, index) => (visible[index] ? this.stamp(part.symbol, part.size * ratio, width) : null));
    const { part, x, y, bytes } = this.points;
    for (let point = 0; point < part.length; point++) {
      const stamp = stamps[part[point]];
      if (!stamp) continue;
      const { offsets, coverage, half } = stamp;
      const column = Math.round((x[point] - area.x[0]) * xScale - 0.5);
      const row = Math.round(height - (y[point] - area.y[0]) * yScale - 0.5);
      // skips symbols that cross the edge, and undefined coordinates
      if (!(column >= half && row >= half && column < width - half && row < height - half)) continue;
      const red = bytes[4 * point];
      const green = bytes[4 * point + 1];
      const blue = bytes[4 * point + 2];
      const pointOpacity = bytes[4 * point + 3];
      const start = 4 * (row * width + column);
      for (let k = 0; k < offsets.length; k++) {
        const at = start + offsets[k];
        const source = (coverage[k] * pointOpacity) / 255;
        const backdrop = data[at + 3] / 255;
        const alpha = source + backdrop * (1 - source);
        const share = source / alpha;
        data[at] += (red - data[at]) * share;
        data[at + 1] += (green - data[at + 1]) * share;
        data[at + 2] += (blue - data[at + 2]) * share;
        data[at + 3] = 255 * alpha;
      }
    }
    this.picture.getContext("2d").putImageData(this.image, 0, 0);
    this.pen.putImageData(this.image, 0, 0);
    this.painted = { area, name, took: performance.now() - begin };
  }

  // The pixels of a symbol: each one's offset from the centre in the image data, and its coverage.
  stamp(symbol, size, width) {
    const name = `${symbol} ${size} ${width}`;
    if (!this.stampCache.has(name)) {
      const { data, width: side } = pixelsOf(symbol, size);
      const half = Math.floor(side / 2);
      const covered = Array.from({ length: side * side }, (_, i) => i).filter((i) => data[4 * i + 3]);
      const offsets = Int32Array.from(covered, (i) => 4 * ((Math.floor(i / side) - half) * width + (i % side) - half));
      this.stampCache.set(name, { offsets, coverage: Float32Array.from(covered, (i) => data[4 * i + 3] / 255), half: half + 1 });
    }
    return this.stampCache.get(name);
  }

  close() {
    clearTimeout(this.resting);
  }
}
