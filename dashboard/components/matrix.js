// The correlation matrix of one run, epoch by epoch: half the triangle at one byte per cell, drawn on a canvas.

const KEPT_MATRICES = 12; // decoded matrices in memory; older epochs are fetched again (the browser has them cached)

const matrixViews = new WeakMap();

export default function ({ data, parentElement }) {
  let view = matrixViews.get(parentElement);
  if (!view) {
    view = new MatrixView(parentElement.querySelector(".ivz-matrix"), data.help);
    matrixViews.set(parentElement, view);
  }
  view.show(data);
  return () => {
    view.close();
    matrixViews.delete(parentElement);
  };
}

class MatrixView {
  constructor(root, help) {
    this.root = root;
    const find = (name) => root.querySelector(`.ivz-matrix-${name}`);
    [this.canvas, this.note, this.caption, this.readout, this.slider, this.label] = ["canvas", "empty", "caption", "readout", "slider", "label"].map(find);
    [this.previous, this.next, this.zoomIn, this.zoomOut, this.reset] = ["previous", "next", "in", "out", "reset"].map(find);
    this.scale = find("scale");
    find("title").textContent = help.title;
    this.facts = find("facts");
    const reading = explanation(help);
    reading.open = globalThis.matchMedia("(min-width: 80rem)").matches; // there is room beside the matrix
    find("side").append(reading);
    this.hint = "Point at a cell to read it; drag to zoom, double-click to see all.";
    this.readout.textContent = this.hint;
    this.slider.oninput = () => this.choose(Number(this.slider.value));
    this.previous.onclick = () => this.choose(Number(this.slider.value) - 1);
    this.next.onclick = () => this.choose(Number(this.slider.value) + 1);
    this.zoomIn.onclick = () => this.zoom(0.5);
    this.zoomOut.onclick = () => this.zoom(2);
    this.reset.onclick = () => this.whole();
    this.canvas.onpointerdown = (e) => this.dragStart(e);
    this.canvas.onpointermove = (e) => this.pointerMoved(e);
    this.canvas.onpointerup = (e) => this.dragEnd(e);
    this.canvas.onpointerleave = () => !this.drag && this.read(null);
    this.canvas.ondblclick = () => this.whole();
    this.canvas.onkeydown = (e) => this.key(e);
    this.observer = new ResizeObserver(() => this.paint());
    this.observer.observe(this.canvas);
    this.clear();
  }

  clear() {
    this.epochs = []; // [epoch, {seq, event}]
    this.follow = true; // show the newest epoch as it comes
    this.shown = null; // {epoch, matrix}
    this.matrices = new Map(); // seq -> decoded matrix
    this.window = null; // part in view: {x, y, size} in cells
    this.drag = null;
  }

  show(data) {
    const look = lookOf(this.root);
    const repaint = JSON.stringify(look) !== JSON.stringify(this.look);
    this.look = look;
    if (data.run !== this.data?.run) this.clear();
    this.data = data;
    if (repaint) {
      this.colours = colourTable(look.sequential);
      this.scale.style.background = `linear-gradient(to right, ${look.sequential.join(",")})`;
      for (const matrix of this.matrices.values()) matrix.picture = null;
    }
    const earlier = this.leave;
    this.leave = subscribe(data.run, { events: data.events, token: data.token }, (feed, changed) => changed.has("measured") && this.take(feed.run));
    earlier?.();
    this.paint();
  }

  close() {
    this.leave?.();
    this.observer.disconnect();
  }

  take(run) {
    this.epochs = byEpoch(run.measured);
    if (!this.epochs.length) return this.say("Appears with the first measurement, before the first step.");
    const last = this.epochs.length - 1;
    const place = this.follow ? last : Math.min(last, Math.max(0, this.epochs.findIndex(([epoch]) => epoch === this.shown?.epoch)));
    this.slider.max = String(last);
    this.slider.disabled = last === 0;
    this.display(place);
  }

  choose(place) {
    const last = this.epochs.length - 1;
    if (last < 0) return;
    const wanted = Math.max(0, Math.min(last, place));
    this.follow = wanted === last;
    this.display(wanted);
  }

  async display(place) {
    const [epoch, { seq, event }] = this.epochs[place];
    this.slider.value = String(place);
    const newest = place === this.epochs.length - 1;
    this.label.textContent = `epoch ${epoch}${epoch === 0 ? " (before training)" : newest ? " (newest)" : ""}`;
    this.slider.setAttribute("aria-valuetext", this.label.textContent);
    this.previous.disabled = place === 0;
    this.next.disabled = newest;
    if (this.shown?.matrix.seq === seq) return;
    const ticket = (this.ticket = Symbol(epoch));
    let matrix = this.matrices.get(seq);
    try {
      matrix ??= await this.fetch(epoch, seq);
    } catch (error) {
      if (ticket === this.ticket) this.say(error instanceof TypeError ? "The server does not answer: choose the epoch again." : error.message);
      return;
    }
    if (ticket !== this.ticket) return; // another epoch was chosen meanwhile
    const cloud = event.clouds.head;
    this.shown = { epoch, matrix, cloud };
    if (!this.window || this.window.x + this.window.size > matrix.d) this.window = { x: 0, y: 0, size: matrix.d };
    this.note.hidden = true;
    this.caption.textContent = `what the classifier reads, ${cloud.split}, n = ${count(cloud.n)}, d = ${cloud.d}`;
    this.facts.replaceChildren(...[["mean |ρ| of all pairs", number(matrix.mean)], ["pairs above 0.5", `${number(100 * matrix.high)} %`]].map(([name, value]) => {
      const pair = make("div");
      pair.append(make("dt", "", name), make("dd", "", value));
      return pair;
    }));
    this.canvas.setAttribute("aria-label", `Correlation matrix of ${matrix.d} dimensions, ${this.label.textContent}: mean |ρ| ${number(matrix.mean)}, ${number(100 * matrix.high)} percent of pairs above 0.5`);
    this.paint();
  }

  async fetch(epoch, seq) {
    const load = async (name) => {
      const url = addressOf(`${this.data.arrays}/${encodeURIComponent(this.data.run)}/${epoch}/${name}`);
      url.searchParams.set("v", seq);
      const answer = await fetch(url, { headers: { "x-isoviz-token": this.data.token } });
      if (!answer.ok) throw new Error(await answer.text());
      return answer.arrayBuffer();
    };
    const [cells, order, std] = await Promise.all([load("matrix"), load("order"), load("std")]);
    const matrix = { seq, d: order.byteLength / 4, cells: new Uint8Array(cells), order: new Int32Array(order), std: new Float32Array(std), picture: null };
    Object.assign(matrix, summary(matrix.cells));
    this.matrices.set(seq, matrix);
    if (this.matrices.size > KEPT_MATRICES) this.matrices.delete(this.matrices.keys().next().value);
    return matrix;
  }

  say(text) {
    this.note.textContent = text;
    this.note.hidden = false;
  }

  // ---- drawing

  paint() {
    if (!this.shown || !this.colours) return;
    const { matrix } = this.shown;
    matrix.picture ??= pictureOf(matrix, this.colours);
    const side = Math.round(this.canvas.clientWidth * (globalThis.devicePixelRatio || 1));
    if (!side) return;
    if (this.canvas.width !== side) this.canvas.width = this.canvas.height = side;
    const context = this.canvas.getContext("2d");
    const { x, y, size } = this.window;
    context.clearRect(0, 0, side, side);
    context.imageSmoothingEnabled = size > side; // average when cells are smaller than pixels, hard edges otherwise
    context.imageSmoothingQuality = "high";
    context.drawImage(matrix.picture, x, y, size, size, 0, 0, side, side);
    if (this.drag?.box) {
      const { left, top, extent } = this.drag.box;
      const ratio = side / this.canvas.clientWidth;
      context.strokeStyle = this.look.text;
      context.lineWidth = 1.5 * ratio;
      context.setLineDash([5 * ratio, 4 * ratio]);
      context.strokeRect(left * ratio, top * ratio, extent * ratio, extent * ratio);
      context.setLineDash([]);
    }
    this.zoomOut.disabled = this.reset.disabled = size >= matrix.d;
    this.zoomIn.disabled = size <= 8;
  }

  whole() {
    if (!this.shown) return;
    this.window = { x: 0, y: 0, size: this.shown.matrix.d };
    this.paint();
  }

  zoom(factor, centreX, centreY) {
    if (!this.shown) return;
    const { x, y, size } = this.window;
    const wanted = Math.min(this.shown.matrix.d, Math.max(8, Math.round(size * factor)));
    this.lookAt((centreX ?? x + size / 2) - wanted / 2, (centreY ?? y + size / 2) - wanted / 2, wanted);
  }

  lookAt(x, y, size) {
    const most = this.shown.matrix.d - size;
    const clamp = (v) => Math.max(0, Math.min(most, Math.round(v)));
    this.window = { x: clamp(x), y: clamp(y), size };
    this.paint();
  }

  key(event) {
    if (!this.shown) return;
    const { x, y, size } = this.window;
    const stride = Math.max(1, Math.round(size / 8));
    const moves = { ArrowLeft: [-stride, 0], ArrowRight: [stride, 0], ArrowUp: [0, -stride], ArrowDown: [0, stride] };
    if (moves[event.key]) this.lookAt(x + moves[event.key][0], y + moves[event.key][1], size);
    else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0") this.whole();
    else return;
    event.preventDefault();
  }

  // ---- pointer

  dragStart(event) {
    if (!this.shown || event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { x: event.offsetX, y: event.offsetY, box: null };
  }

  pointerMoved(event) {
    this.read(event);
    if (!this.drag) return;
    const dx = event.offsetX - this.drag.x;
    const dy = event.offsetY - this.drag.y;
    const extent = Math.max(Math.abs(dx), Math.abs(dy));
    this.drag.box = extent < 6 ? null : { left: dx < 0 ? this.drag.x - extent : this.drag.x, top: dy < 0 ? this.drag.y - extent : this.drag.y, extent };
    this.paint();
  }

  dragEnd() {
    const box = this.drag?.box;
    this.drag = null;
    if (!box) return;
    const cell = this.window.size / this.canvas.clientWidth;
    const size = Math.max(8, Math.round(box.extent * cell));
    this.lookAt(this.window.x + box.left * cell, this.window.y + box.top * cell, Math.min(size, this.shown.matrix.d));
  }

  read(event) {
    if (!event || !this.shown) {
      this.readout.textContent = this.hint;
      return;
    }
    const { matrix } = this.shown;
    const { x, y, size } = this.window;
    const at = (v, from) => Math.max(0, Math.min(matrix.d - 1, Math.floor(from + (v / this.canvas.clientWidth) * size)));
    const [column, row] = [at(event.offsetX, x), at(event.offsetY, y)];
    const [i, j] = [matrix.order[row], matrix.order[column]];
    const value = row === column ? 1 : cellOf(matrix.cells, row, column) / 255;
    this.readout.textContent = `dimensions ${i} and ${j}: |ρ| = ${value.toFixed(2)} · σ ${number(matrix.std[i])} and ${number(matrix.std[j])}`;
  }
}

// Place of (row, column) in the triangle below the diagonal, row by row.
export function cellOf(cells, row, column) {
  const [high, low] = row > column ? [row, column] : [column, row];
  return cells[(high * (high - 1)) / 2 + low];
}

export function summary(cells) {
  let sum = 0;
  let high = 0;
  for (const cell of cells) {
    sum += cell;
    if (cell > 127) high += 1;
  }
  return cells.length ? { mean: sum / 255 / cells.length, high: high / cells.length } : { mean: null, high: null };
}

function pictureOf({ d, cells }, colours) {
  const canvas = new OffscreenCanvas(d, d);
  const context = canvas.getContext("2d");
  const image = context.createImageData(d, d);
  const pixels = new Uint32Array(image.data.buffer);
  let at = 0;
  for (let row = 0; row < d; row += 1) {
    pixels[row * d + row] = colours[255];
    for (let column = 0; column < row; column += 1) {
      const colour = colours[cells[at]];
      pixels[row * d + column] = colour;
      pixels[column * d + row] = colour;
      at += 1;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

// 256 colours between the theme's ten, as little-endian ABGR words for an ImageData buffer.
function colourTable(stops) {
  const points = stops.map(rgb);
  return Uint32Array.from({ length: 256 }, (_, value) => {
    const place = (value / 255) * (points.length - 1);
    const low = Math.min(points.length - 2, Math.floor(place));
    const [r, g, b] = [0, 1, 2].map((c) => Math.round(points[low][c] + (place - low) * (points[low + 1][c] - points[low][c])));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
}
