// Paints points into the pixels of a canvas. Without a graphics card this is several times faster than WebGL.
// Same interface as WebGLPoints: setParts, recolour, draw, close.

export class PaintedPoints {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.stampCache = new Map();
  }

  setParts(parts) {
    this.parts = parts;
    this.located = locatePoints(parts.map(({ x }) => x.length));
  }

  // Copies the points in drawing order: scattered reads would dominate the time of each frame.
  recolour(colours) {
    this.colours = colours;
    const order = drawingOrder(colours);
    const { part, index } = this.located;
    const count = order.length;
    this.points = { part: new Uint16Array(count), x: new Float64Array(count), y: new Float64Array(count), bytes: new Uint8Array(4 * count) };
    for (let at = 0; at < count; at++) {
      const partIndex = part[order[at]];
      const i = index[order[at]];
      this.points.part[at] = partIndex;
      this.points.x[at] = this.parts[partIndex].x[i];
      this.points.y[at] = this.parts[partIndex].y[i];
      for (let k = 0; k < 4; k++) this.points.bytes[4 * at + k] = colours[partIndex][4 * i + k];
    }
  }

  draw(area, shown) {
    this.area = area;
    const { ratio, width, height } = fit(this.canvas, area);
    if (this.image?.width !== width || this.image.height !== height) this.image = this.pen.createImageData(width, height);
    const { data } = this.image;
    data.fill(0);
    const [xScale, yScale] = [width / (area.x[1] - area.x[0]), height / (area.y[1] - area.y[0])];
    const stamps = this.parts.map((part) => (shown(part) ? this.stamp(part.symbol, part.size * ratio, width) : null));
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
    this.pen.putImageData(this.image, 0, 0);
  }

  // The pixels of a symbol: each one's offset from the centre in the image data, and its coverage.
  stamp(symbol, size, width) {
    const name = `${symbol} ${size} ${width}`;
    if (!this.stampCache.has(name)) {
      const picture = pictureOf(symbol, size);
      const side = picture.width;
      const { data } = picture.getContext("2d").getImageData(0, 0, side, side);
      const half = Math.floor(side / 2);
      const covered = Array.from({ length: side * side }, (_, i) => i).filter((i) => data[4 * i + 3]);
      const offsets = Int32Array.from(covered, (i) => 4 * ((Math.floor(i / side) - half) * width + (i % side) - half));
      this.stampCache.set(name, { offsets, coverage: Float32Array.from(covered, (i) => data[4 * i + 3] / 255), half: half + 1 });
    }
    return this.stampCache.get(name);
  }

  close() {}
}
