// Draws a correlation matrix on a canvas, with zoom by dragging, buttons and keys, and a readout of the cell under the pointer.
// matrix: {d, cells, order, std}; `cells` has one byte per pair of dimensions, below the diagonal.

export class MatrixCanvas {
  constructor(root) {
    this.root = root;
    const find = (name) => root.querySelector(`.ivz-matrix-${name}`);
    [this.canvas, this.note, this.scale, this.facts, this.readout] = ["canvas", "note", "scale", "facts", "readout"].map(find);
    [this.zoomIn, this.zoomOut, this.reset] = ["in", "out", "reset"].map(find);
    this.hint = "Point at a cell to read it. Drag to zoom, double-click to reset.";
    this.readout.textContent = this.hint;
    this.zoomIn.onclick = () => this.zoom(0.5);
    this.zoomOut.onclick = () => this.zoom(2);
    this.reset.onclick = () => this.showAll();
    this.canvas.onpointerdown = (e) => this.dragStart(e);
    this.canvas.onpointermove = (e) => this.pointerMoved(e);
    this.canvas.onpointerup = (e) => this.dragEnd(e);
    this.canvas.onpointerleave = (e) => !this.drag && e.pointerType === "mouse" && this.read(null); // a lifted finger also leaves; keep its readout
    this.canvas.ondblclick = () => this.showAll();
    this.canvas.onkeydown = (e) => this.key(e);
    this.observer = new ResizeObserver(() => this.paint());
    this.observer.observe(this.canvas);
    this.clear();
  }

  clear() {
    this.matrix = null;
    this.window = null; // the visible part: {x, y, size} in cells
    this.drag = null;
    this.canvas.width = this.canvas.height = 1; // clears the previous matrix
    this.readout.textContent = this.hint;
    this.zoomIn.disabled = this.zoomOut.disabled = this.reset.disabled = true;
  }

  // Keeps the visible part if the new matrix contains it. mean, high: of all pairs, as text.
  set(matrix, { mean, high, words }) {
    this.matrix = matrix;
    this.note.hidden = true;
    showFacts(this.facts, [["mean |ρ| of all pairs", mean], ["pairs above 0.5", high]]);
    this.canvas.setAttribute("aria-label", words);
    if (!this.window || this.window.x + this.window.size > matrix.d || this.window.y + this.window.size > matrix.d) this.window = { x: 0, y: 0, size: matrix.d };
    this.paint();
  }

  // Applies the theme's colours. Returns whether they changed, so that cached pictures are outdated.
  applyTheme(look, direction) {
    const unchanged = JSON.stringify(look) === JSON.stringify(this.look);
    this.look = look;
    if (unchanged) return false;
    this.colours = colourTable(look.sequential);
    this.scale.style.background = `linear-gradient(${direction}, ${look.sequential.join(",")})`;
    if (this.matrix) this.matrix.picture = null;
    return true;
  }

  showMessage(text) {
    this.note.textContent = text;
    this.note.hidden = false;
  }

  close() {
    this.observer.disconnect();
  }

  // ---- drawing

  paint() {
    if (!this.matrix || !this.colours) return;
    const { matrix } = this;
    matrix.picture ??= pictureOf(matrix, this.colours);
    const side = Math.round(this.canvas.clientWidth * (globalThis.devicePixelRatio || 1));
    if (!side) return;
    if (this.canvas.width !== side) this.canvas.width = this.canvas.height = side;
    const context = this.canvas.getContext("2d");
    const { x, y, size } = this.window;
    context.clearRect(0, 0, side, side);
    context.imageSmoothingEnabled = size > side; // average cells smaller than a pixel; keep the edges of larger ones sharp
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

  showAll() {
    if (!this.matrix) return;
    this.window = { x: 0, y: 0, size: this.matrix.d };
    this.paint();
  }

  zoom(factor, centreX, centreY) {
    if (!this.matrix) return;
    const { x, y, size } = this.window;
    const newSize = Math.min(this.matrix.d, Math.max(8, Math.round(size * factor)));
    this.moveTo((centreX ?? x + size / 2) - newSize / 2, (centreY ?? y + size / 2) - newSize / 2, newSize);
  }

  moveTo(x, y, size) {
    const limit = this.matrix.d - size;
    const clamp = (v) => Math.max(0, Math.min(limit, Math.round(v)));
    this.window = { x: clamp(x), y: clamp(y), size };
    this.paint();
  }

  key(event) {
    if (!this.matrix) return;
    const { x, y, size } = this.window;
    const stride = Math.max(1, Math.round(size / 8));
    const moves = { ArrowLeft: [-stride, 0], ArrowRight: [stride, 0], ArrowUp: [0, -stride], ArrowDown: [0, stride] };
    if (moves[event.key]) this.moveTo(x + moves[event.key][0], y + moves[event.key][1], size);
    else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0") this.showAll();
    else return;
    event.preventDefault();
  }

  // ---- pointer

  dragStart(event) {
    if (!this.matrix || event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { x: event.offsetX, y: event.offsetY, box: null };
    this.read(event);
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
    this.moveTo(this.window.x + box.left * cell, this.window.y + box.top * cell, Math.min(size, this.matrix.d));
  }

  read(event) {
    if (!event || !this.matrix) {
      this.readout.textContent = this.hint;
      return;
    }
    const { matrix } = this;
    const { x, y, size } = this.window;
    const cellIndex = (v, from) => Math.max(0, Math.min(matrix.d - 1, Math.floor(from + (v / this.canvas.clientWidth) * size)));
    const [column, row] = [cellIndex(event.offsetX, x), cellIndex(event.offsetY, y)];
    const [i, j] = [matrix.order[row], matrix.order[column]];
    const value = row === column ? 1 : cellOf(matrix.cells, row, column) / 255;
    const text = matrix.std[i] > 0 && matrix.std[j] > 0 ? value.toFixed(2) : "undefined";
    this.readout.textContent = `dimensions ${i} and ${j}: |ρ| = ${text} · σ ${number(matrix.std[i])} and ${number(matrix.std[j])}`;
  }
}

// The cell (row, column). The triangle below the diagonal is stored row by row.
export function cellOf(cells, row, column) {
  const [high, low] = row > column ? [row, column] : [column, row];
  return cells[(high * (high - 1)) / 2 + low];
}

// A matrix from its arrays; addressOf(name) is where each is. names: of the cells, the order of dimensions, and their σ.
export async function loadMatrix(addressOf, names) {
  const [cells, order, std] = await Promise.all(names.map((name) => loadArray(addressOf(name))));
  return { d: order.byteLength / 4, cells: new Uint8Array(cells), order: new Int32Array(order), std: new Float32Array(std), picture: null };
}

export async function loadArray(address) {
  const response = await fetch(resolveUrl(address));
  if (!response.ok) throw new Error(await response.text());
  return response.arrayBuffer();
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

export function pictureOf({ d, cells }, colours) {
  const canvas = new OffscreenCanvas(d, d);
  const context = canvas.getContext("2d");
  const image = context.createImageData(d, d);
  const pixels = new Uint32Array(image.data.buffer);
  let cell = 0;
  for (let row = 0; row < d; row += 1) {
    pixels[row * d + row] = colours[255];
    for (let column = 0; column < row; column += 1) {
      const colour = colours[cells[cell]];
      pixels[row * d + column] = colour;
      pixels[column * d + row] = colour;
      cell += 1;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}
