// The clustered |ρ| matrix of one cloud of a view, with zoom and export.

export default (component) => mount(component, (element) => new CloudMatrix(element.querySelector(".ivz-cloud")));

class CloudMatrix {
  constructor(root) {
    this.root = root;
    this.plot = new MatrixCanvas(root);
    this.files = [...root.querySelectorAll("[data-format]")];
    for (const button of this.files) button.onclick = () => this.save(button.dataset.format);
    this.showMessage("Clustering dimensions …");
  }

  show(data) {
    this.data = data;
    this.root.classList.toggle("ivz-cloud-small", Boolean(data.compact));
    this.plot.applyTheme(lookOf(this.root), "to top");
    if (data.inside) return this.showInside(data);
    if (data.arrays !== this.request) this.load(data.arrays);
    else this.plot.paint();
  }

  close() {
    this.request = null;
    this.plot.close();
  }

  async load(request) {
    this.request = request;
    try {
      const matrix = await loadMatrix((name) => `${request}/${name}`, ["matrix", "order", "sigma"]);
      if (request !== this.request) return; // another cloud was chosen in the meantime
      const startTime = performance.now();
      this.display(matrix);
      performance.measure("isoviz-matrix", { start: startTime }); // for the benchmark: the time to draw the matrix, without the download
    } catch (error) {
      if (request !== this.request) return;
      this.request = null; // the next rerun of the page retries
      this.showMessage(error instanceof TypeError ? "The server is not responding. Reload the page." : error.message);
    }
  }

  display(matrix) {
    for (const button of this.files) button.disabled = false;
    const { high } = summary(matrix.cells);
    this.plot.set(matrix, { mean: this.data.mean, high: high === null ? "undefined" : `${number(100 * high)} %`, words: this.data.words });
  }

  // Where there is no server: the data have the arrays in base64.
  showInside(data) {
    this.data = data;
    const [cells, order, std] = ["matrix", "order", "sigma"].map((name) => Uint8Array.from(atob(data[name]), (letter) => letter.charCodeAt(0)).buffer);
    this.display({ d: order.byteLength / 4, cells: new Uint8Array(cells), order: new Int32Array(order), std: new Float32Array(std), picture: null });
  }

  showMessage(text) {
    this.plot.showMessage(text);
    for (const button of this.files) button.disabled = true;
  }

  // ---- files: always the full matrix, even when zoomed in

  picture() {
    const { matrix, look } = this.plot;
    const { text, width, height } = svgOf(matrix, look, this.data.words);
    return withCaption(text, width, height, this.data.about, look);
  }

  async save(format) {
    const { matrix } = this.plot;
    const encoders = { csv: () => new Blob([csvOf(matrix)], { type: "text/csv" }), svg: () => new Blob([this.picture()], { type: "image/svg+xml" }), png: () => rasterise(this.picture(), 1) };
    download(await encoders[format](), `${this.data.name}.${format}`);
  }
}

// CSV with dimension numbers in the first row and column, and values in steps of 1/255.
export function csvOf({ d, cells, order }) {
  const lines = [`dimension,${order.join(",")}`];
  for (let row = 0; row < d; row += 1) {
    const values = Array.from({ length: d }, (_, column) => (row === column ? "1" : (cellOf(cells, row, column) / 255).toFixed(3)));
    lines.push(`${order[row]},${values.join(",")}`);
  }
  return `${lines.join("\n")}\n`;
}

const SIDE = 1024; // pixels of a saved picture, approximately
const EDGE = 24;
const TITLE = 40;
const KEY = 110;

function enlargedPicture(matrix, look) {
  const scale = Math.max(1, Math.round(SIDE / matrix.d));
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = scale * matrix.d;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(pictureOf(matrix, colourTable(look.sequential)), 0, 0, canvas.width, canvas.height);
  return canvas;
}

function svgOf(matrix, look, words) {
  const picture = enlargedPicture(matrix, look);
  const side = picture.width;
  const escaped = make("span", "", words).innerHTML;
  const stops = look.sequential.map((colour, index, all) => `<stop offset="${index / (all.length - 1)}" stop-color="${colour}"/>`).join("");
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((value) => `<text x="${EDGE + side + 40}" y="${TITLE + (1 - value) * (side - 12) + 11}">${value}</text>`).join("");
  const [width, height] = [side + EDGE + KEY, side + TITLE + EDGE];
  const text = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="14" fill="${look.text}"><defs><linearGradient id="scale" x1="0" y1="1" x2="0" y2="0">${stops}</linearGradient></defs><rect width="100%" height="100%" fill="${look.background}"/><text x="${EDGE}" y="26">${escaped}</text><image x="${EDGE}" y="${TITLE}" width="${side}" height="${side}" href="${picture.toDataURL("image/png")}" style="image-rendering:pixelated"/><rect x="${EDGE + side + 14}" y="${TITLE}" width="18" height="${side}" fill="url(#scale)" stroke="${look.border}"/>${ticks}<text x="${EDGE + side + 14}" y="${TITLE - 8}">|ρ|</text></svg>`;
  return { text, width, height };
}
