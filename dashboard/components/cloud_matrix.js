// The clustered |ρ| of one cloud of a view, as a picture to look into and as files.

export default (component) => mount(component, (element) => new CloudMatrix(element.querySelector(".ivz-cloud")));

class CloudMatrix {
  constructor(root) {
    this.root = root;
    const find = (name) => root.querySelector(`.ivz-cloud-${name}`);
    [this.note, this.scale, this.facts] = ["note", "scale", "facts"].map(find);
    const [canvas, readout, zoomIn, zoomOut, reset] = ["canvas", "readout", "in", "out", "reset"].map(find);
    this.plot = new MatrixCanvas(root, { canvas, readout, zoomIn, zoomOut, reset });
    this.files = [...root.querySelectorAll("[data-format]")];
    for (const button of this.files) button.onclick = () => this.save(button.dataset.format);
    this.say("Putting like dimensions side by side …");
  }

  show(data) {
    this.data = data;
    this.plot.dress(lookOf(this.root), this.scale, "to top");
    const wanted = `${data.arrays} ${data.order ?? ""}`;
    if (wanted !== this.wanted) this.load(wanted);
    else this.plot.paint();
  }

  close() {
    this.wanted = null;
    this.plot.close();
  }

  async load(wanted) {
    this.wanted = wanted;
    const { arrays, order, words } = this.data;
    try {
      const [cells, own, std, asked] = await Promise.all([this.fetch(arrays, "matrix"), this.fetch(arrays, "order"), this.fetch(arrays, "sigma"), order ? this.fetch(order, "order") : null]);
      if (wanted !== this.wanted) return; // another cloud was chosen meanwhile
      const began = performance.now();
      let matrix = { d: own.byteLength / 4, cells: new Uint8Array(cells), order: new Int32Array(own), std: new Float32Array(std), picture: null };
      if (asked) matrix = reordered(matrix, new Int32Array(asked));
      this.note.hidden = true;
      for (const button of this.files) button.disabled = false;
      this.tell(summary(matrix.cells));
      this.plot.canvas.setAttribute("aria-label", words);
      this.plot.set(matrix);
      performance.measure("isoviz-matrix", { start: began }); // the benchmark reads it: what the picture itself takes
    } catch (error) {
      if (wanted !== this.wanted) return;
      this.wanted = null; // the next drawing of the page tries again
      this.say(error instanceof TypeError ? "The server does not answer: reload the page." : error.message);
    }
  }

  async fetch(arrays, name) {
    const answer = await fetch(addressOf(`${arrays}/${name}`), { headers: { "x-isoviz-token": this.data.token } });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.arrayBuffer();
  }

  tell({ high }) {
    const told = [["mean |ρ| of all pairs", this.data.mean], ["pairs above 0.5", high === null ? "undefined" : `${number(100 * high)} %`]];
    this.facts.replaceChildren(...told.map(([name, value]) => {
      const pair = make("div");
      pair.append(make("dt", "", name), make("dd", "", value));
      return pair;
    }));
  }

  say(text) {
    this.note.textContent = text;
    this.note.hidden = false;
    for (const button of this.files) button.disabled = true;
  }

  // ---- files: all of the matrix, whatever part is in view

  picture() {
    const { matrix, look } = this.plot;
    const { text, width, height } = vectors(matrix, look, this.data.words);
    return captioned(text, width, height, this.data.about, look);
  }

  async save(format) {
    const { matrix } = this.plot;
    const drawn = { csv: () => new Blob([table(matrix)], { type: "text/csv" }), svg: () => new Blob([this.picture()], { type: "image/svg+xml" }), png: () => rasterised(this.picture(), 1) };
    handOver(await drawn[format](), `${this.data.name}.${format}`);
  }
}

// The same matrix with its dimensions in the order of another one of the same width.
export function reordered(matrix, order) {
  const { d, cells } = matrix;
  if (order.length !== d) return matrix;
  const place = new Int32Array(d);
  matrix.order.forEach((dimension, at) => (place[dimension] = at));
  const moved = new Uint8Array(cells.length);
  let at = 0;
  for (let row = 0; row < d; row += 1) for (let column = 0; column < row; column += 1) moved[at++] = cellOf(cells, place[order[row]], place[order[column]]);
  return { ...matrix, cells: moved, order, picture: null };
}

// Comma-separated, names of dimensions in the first line and column, values in steps of 1/255.
export function table({ d, cells, order }) {
  const lines = [`dimension,${order.join(",")}`];
  for (let row = 0; row < d; row += 1) {
    const values = Array.from({ length: d }, (_, column) => (row === column ? "1" : (cellOf(cells, row, column) / 255).toFixed(3)));
    lines.push(`${order[row]},${values.join(",")}`);
  }
  return `${lines.join("\n")}\n`;
}

const SIDE = 1024; // of a saved picture, about
const EDGE = 24;
const TITLE = 40;
const KEY = 110;

function enlarged(matrix, look) {
  const times = Math.max(1, Math.round(SIDE / matrix.d));
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = times * matrix.d;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(pictureOf(matrix, colourTable(look.sequential)), 0, 0, canvas.width, canvas.height);
  return canvas;
}

function vectors(matrix, look, words) {
  const picture = enlarged(matrix, look);
  const side = picture.width;
  const escaped = make("span", "", words).innerHTML;
  const stops = look.sequential.map((colour, at, all) => `<stop offset="${at / (all.length - 1)}" stop-color="${colour}"/>`).join("");
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((value) => `<text x="${EDGE + side + 40}" y="${TITLE + (1 - value) * (side - 12) + 11}">${value}</text>`).join("");
  const [width, height] = [side + EDGE + KEY, side + TITLE + EDGE];
  const text = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="14" fill="${look.text}"><defs><linearGradient id="scale" x1="0" y1="1" x2="0" y2="0">${stops}</linearGradient></defs><rect width="100%" height="100%" fill="${look.background}"/><text x="${EDGE}" y="26">${escaped}</text><image x="${EDGE}" y="${TITLE}" width="${side}" height="${side}" href="${picture.toDataURL("image/png")}" style="image-rendering:pixelated"/><rect x="${EDGE + side + 14}" y="${TITLE}" width="18" height="${side}" fill="url(#scale)" stroke="${look.border}"/>${ticks}<text x="${EDGE + side + 14}" y="${TITLE - 8}">|ρ|</text></svg>`;
  return { text, width, height };
}
