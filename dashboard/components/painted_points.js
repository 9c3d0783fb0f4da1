// Points painted into the pixels of a canvas: where there is no graphics card, several times faster than WebGL without one.
// The same questions as WebGLPoints: take, recolour, draw, close.

export class PaintedPoints {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.stamps = new Map();
  }

  take(parts) {
    this.parts = parts;
    this.places = placesOf(parts.map(({ x }) => x.length));
  }

  // The points as they are drawn, one after the other: reading them here and there for each picture would take most of its time.
  recolour(colours) {
    this.colours = colours;
    const order = drawingOrder(colours);
    const { part, index } = this.places;
    const count = order.length;
    this.row = { part: new Uint16Array(count), x: new Float64Array(count), y: new Float64Array(count), ink: new Uint8Array(4 * count) };
    for (let next = 0; next < count; next++) {
      const place = part[order[next]];
      const i = index[order[next]];
      this.row.part[next] = place;
      this.row.x[next] = this.parts[place].x[i];
      this.row.y[next] = this.parts[place].y[i];
      for (let k = 0; k < 4; k++) this.row.ink[4 * next + k] = colours[place][4 * i + k];
    }
  }

  draw(area, shown) {
    this.area = area;
    const { ratio, width, height } = fit(this.canvas, area);
    if (this.image?.width !== width || this.image.height !== height) this.image = this.pen.createImageData(width, height);
    const { data } = this.image;
    data.fill(0);
    const [across, up] = [width / (area.x[1] - area.x[0]), height / (area.y[1] - area.y[0])];
    const stamps = this.parts.map((part) => (shown(part) ? this.stamp(part.symbol, part.size * ratio, width) : null));
    const { part, x, y, ink: inkOf } = this.row;
    for (let one = 0; one < part.length; one++) {
      const stamp = stamps[part[one]];
      if (!stamp) continue;
      const { offsets, inks, half } = stamp;
      const column = Math.round((x[one] - area.x[0]) * across - 0.5);
      const row = Math.round(height - (y[one] - area.y[0]) * up - 0.5);
      // what would hang over the edge is left out whole: an undefined place as well
      if (!(column >= half && row >= half && column < width - half && row < height - half)) continue;
      const red = inkOf[4 * one];
      const green = inkOf[4 * one + 1];
      const blue = inkOf[4 * one + 2];
      const opacity = inkOf[4 * one + 3];
      const start = 4 * (row * width + column);
      for (let k = 0; k < offsets.length; k++) {
        const at = start + offsets[k];
        const ink = (inks[k] * opacity) / 255;
        const paper = data[at + 3] / 255;
        const both = ink + paper * (1 - ink);
        const share = ink / both;
        data[at] += (red - data[at]) * share;
        data[at + 1] += (green - data[at + 1]) * share;
        data[at + 2] += (blue - data[at + 2]) * share;
        data[at + 3] = 255 * both;
      }
    }
    this.pen.putImageData(this.image, 0, 0);
  }

  // The pixels of a symbol: how far each is from the middle one in the picture's data, and how much of it is covered.
  stamp(symbol, size, width) {
    const name = `${symbol} ${size} ${width}`;
    if (!this.stamps.has(name)) {
      const picture = pictureOf(symbol, size);
      const side = picture.width;
      const { data } = picture.getContext("2d").getImageData(0, 0, side, side);
      const half = Math.floor(side / 2);
      const covered = Array.from({ length: side * side }, (_, i) => i).filter((i) => data[4 * i + 3]);
      const offsets = Int32Array.from(covered, (i) => 4 * ((Math.floor(i / side) - half) * width + (i % side) - half));
      this.stamps.set(name, { offsets, inks: Float32Array.from(covered, (i) => data[4 * i + 3] / 255), half: half + 1 });
    }
    return this.stamps.get(name);
  }

  close() {}
}
