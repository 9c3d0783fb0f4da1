// The compression frontier on the screen: recall against bytes, the points that no other point beats, and the Python for each.

const ROTATION_NAMES = { none: "as they are", pca: "PCA", whitening: "whitened" };
const BIT_NAMES = { 32: "float32", 8: "int8", 1: "binary" };
const SYMBOLS = { 32: "●", 8: "■", 1: "▲" };
const ROTATION_INKS = { none: 0, pca: 1, whitening: 2 }; // of CLUSTER_COLOURS

export class FrontierView {
  // ask(): starts the computation in the worker. look(): the theme's colours.
  constructor(ask, look) {
    Object.assign(this, { points: [], look });
    this.start = button("Compute the frontier", () => {
      this.start.disabled = true;
      this.note.textContent = "Computing";
      ask();
    });
    this.note = make("p", "ivp-caption", { role: "status" });
    this.canvas = make("canvas", "ivv-frontier", { role: "img", "aria-label": "Recall against bytes", hidden: true });
    this.key = make("p", "ivv-key");
    this.table = make("table", "ivv-pareto", { hidden: true });
    this.code = make("pre", "ivv-code", { hidden: true, tabIndex: 0 });
    this.copied = make("span", "", { role: "status" });
    this.copy = button("Copy as Python", () => copied(this.code.textContent, this.copied), { hidden: true });
    const about = "How many bytes a vector needs to keep its neighbours: recall@10 is the share of a row's 10 nearest rows, by cosine, that are still its nearest after compression. At most 300 rows are compared with all; the intervals count these rows. PCA and whitening subtract the mean first, which changes cosines by itself.";
    this.element = make("section", "ivv-compression", { "aria-label": "Compression frontier" }, make("h2", "", "Compression frontier"), make("p", "ivp-caption", about), this.start, this.note, this.canvas, this.key, make("div", "ivv-wide", this.table), this.code, make("p", "", this.copy, " ", this.copied));
    this.resized = new ResizeObserver(() => this.paint());
    this.resized.observe(this.canvas);
    this.mode = matchMedia("screen and (prefers-color-scheme: dark)");
    this.mode.addEventListener("change", this.paint);
  }

  // file: the name for the Python lines.
  begin(file) {
    Object.assign(this, { file, points: [], best: null });
    this.start.disabled = false;
    this.note.textContent = this.key.textContent = this.copied.textContent = "";
    for (const element of [this.canvas, this.table, this.code, this.copy]) element.hidden = true;
  }

  show({ point, done, ended, problem }) {
    if (done) this.note.textContent = `Computing: ${Math.round(100 * done)} %`;
    if (point) this.points.push(point);
    if (!ended) return;
    this.note.textContent = problem ? `Undefined: ${problem}.` : "";
    if (problem) return;
    this.canvas.hidden = this.table.hidden = false;
    const inks = Object.entries(ROTATION_NAMES).map(([rotation, name]) => make("span", "ivv-label", { style: `--ink: ${CLUSTER_COLOURS[ROTATION_INKS[rotation]]}` }, name));
    this.key.replaceChildren(...inks, ...BITS.map((bits) => make("span", "", `${SYMBOLS[bits]} ${BIT_NAMES[bits]}`)));
    this.best = paretoOf(this.points);
    const head = ["vectors", "dimensions × type", "bytes", "recall@10, 95\u00a0%"].map((name) => make("th", "", { scope: "col" }, name));
    this.table.replaceChildren(make("thead", "", make("tr", "", head)), make("tbody", "", this.best.map((one) => this.row(one))));
    this.paint();
  }

  row(point) {
    const { rotation, bits, k, bytes, recall, error } = point;
    const interval = error === null ? "–" : `${Math.max(0, recall - 1.96 * error).toFixed(3)} to ${Math.min(1, recall + 1.96 * error).toFixed(3)}`;
    const choose = button(ROTATION_NAMES[rotation], () => this.choose(point), { "aria-label": `Python for ${ROTATION_NAMES[rotation]}, ${k} dimensions, ${BIT_NAMES[bits]}` });
    return make("tr", "", make("td", "", choose), [`${count(k)} × ${BIT_NAMES[bits]}`, count(bytes)].map((text) => make("td", "", text)), make("td", "", fixed(recall, 3), " ", make("span", "ivv-interval", interval)));
  }

  choose(point) {
    this.code.textContent = pythonOf(point, this.file);
    this.code.hidden = this.copy.hidden = false;
  }

  paint = () => {
    const { width, height } = this.canvas.getBoundingClientRect();
    if (!width || !this.best) return;
    const look = this.look();
    const ratio = Math.min(2, globalThis.devicePixelRatio || 1);
    [this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = `11px ${look.font}`;
    const sizes = this.points.map(({ bytes }) => Math.log2(bytes));
    const bounds = [Math.min(...sizes) - 0.3, Math.max(...sizes) + 0.3];
    const low = Math.max(0, Math.floor(10 * Math.min(...this.points.map(({ recall }) => recall))) / 10);
    const scale = frame(pen, { width, height }, look, bounds, [low, 1.03], { x: [`${number(2 ** bounds[0], 2)} bytes`, `${number(2 ** bounds[1], 3)} bytes`], y: [low.toFixed(1), "1"] });
    trace(pen, this.best.map(({ bytes, recall }) => [scale.x(Math.log2(bytes)), scale.y(recall)]), look.faint, { width: 1.2 });
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.font = `13px ${look.font}`;
    for (const { rotation, bits, bytes, recall } of this.points) {
      pen.fillStyle = CLUSTER_COLOURS[ROTATION_INKS[rotation]];
      pen.fillText(SYMBOLS[bits], scale.x(Math.log2(bytes)), scale.y(recall));
    }
    this.canvas.setAttribute("aria-label", `Recall at 10 against bytes per vector, ${this.points.length} points; the table lists the ${this.best.length} that no smaller one reaches`);
  };

  close() {
    this.resized.disconnect();
    this.mode.removeEventListener("change", this.paint);
  }
}

// Points, from the smallest, with a higher recall than every point of at most their size.
export function paretoOf(points) {
  const found = [];
  for (const point of [...points].sort((a, b) => a.bytes - b.bytes || b.recall - a.recall)) if (!found.length || point.recall > found.at(-1).recall) found.push(point);
  return found;
}

export function pythonOf({ rotation, bits, k }, file) {
  const first = rotation === "none" ? `posthoc.truncation(keep=${k})` : `posthoc.pca_whitening(components=${k}, strength=${rotation === "pca" ? 0 : 1})`;
  const steps = [first, ...(bits === 8 ? ["posthoc.quantisation(bits=8)"] : bits === 1 ? ["posthoc.binary(centre=True)"] : [])];
  const path = JSON.stringify(file);
  const [needs, source] = /\.npy$/i.test(file)
    ? ["numpy as np", `np.load(${path})`]
    : ["isoviz.vectors", /\.(npz|csv|tsv|jsonl?|safetensors|parquet|txt|vec|bin|[fbi]vecs|fbin|[ui]8bin|gz)$/i.test(file) ? `isoviz.vectors.read(${path}).points` : `... # the vectors of ${path}, shape (rows, dimensions)`];
  return `import ${needs}\nfrom isoviz import posthoc\n\nvectors = ${source}\nchain = posthoc.chain([\n${steps.map((step) => `    ${step},\n`).join("")}]).fit(vectors)\ncompressed = chain.transform(vectors)\n`;
}
