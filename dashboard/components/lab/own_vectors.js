// People's own vectors on a page without a server: files are read and computed in a worker, and nothing leaves the machine.
//
//   new OwnVectors(root, { words, encoder })     root receives "lab:opened" and "lab:settled"; encoder: { pieces, npy } (encoder.js), or none
//   .open(files, transforms)            resolves when all numbers are computed, or the files are refused
//   .pythonFor(point)                   the Python of a point of the frontier

const NEIGHBOUR_COUNT = 10;
const MOST_LETTERS = 300; // of a row's label and text
const LABEL_LETTERS = 40; // of a label in the key
const ACCEPT = ".npy,.npz,.csv,.tsv,.json,.jsonl,.ndjson,.safetensors,.parquet,.txt,.vec,.glove,.bin,.fvecs,.bvecs,.ivecs,.fbin,.u8bin,.i8bin,.gz";
const INDISTINCT = 5e-5; // a mean cosine nearer to 1, as in isoviz/metrics/cosine.py
const WITHOUT = ["controls", "presets", "toolbar"]; // what shapes a drawn cloud

export class OwnVectors {
  constructor(root, { words, worker = LAB_SOURCE, encoder = null }) {
    Object.assign(this, { root, words, worker, encoder: encoder && { ...encoder, npy: bytesOf(encoder.npy).buffer } });
    root.classList.add("ivv");
    this.input = make("input", "ivv-file", { type: "file", multiple: true, accept: ACCEPT, onchange: () => this.input.files.length && this.open([...this.input.files]) });
    const hint = `npy, npz, csv, tsv, json, jsonl, safetensors, parquet or word vectors, up to 20,000 × 1,024 or 5,000 × 4,096${encoder ? ", or a txt of sentences" : ""}. Texts, labels and ids may come from columns or from a second file. Nothing leaves this machine.`;
    this.drop = make("label", "ivv-drop", make("strong", "", "Drop your vectors here, or choose files"), make("span", "", hint), this.input);
    this.problem = make("p", "ivv-problem", { role: "alert", hidden: true });
    this.status = make("span", "", { role: "status" });
    this.progress = make("p", "ivv-progress", { hidden: true }, this.status, button("Cancel", () => this.cancel()));
    this.facts = make("p", "ivv-facts");
    this.alike = make("p", "ivv-facts");
    this.head = make("div", "ivv-head", { hidden: true }, this.facts, this.alike, this.progress);
    this.key = make("p", "ivv-key");
    this.map = menu("Map", { principal: "Map in 3-D", plane: "Map in 2-D" }, () => this.cloud.set({ view: this.map.value }));
    this.stage = make("div", "ivv-stage");
    this.below = make("div", "ivv-below");
    this.shown = make("div", "ivv-shown", { hidden: true }, make("div", "ivv-top", this.key, this.map), this.stage, this.below);
    this.written = make("textarea", "", { rows: 6, "aria-label": "Your texts, one per line" });
    const about = "A small encoder for English inside this page: the mean of its words' vectors, so word order does not count.";
    const write = make("details", "ivv-write", { hidden: !encoder }, make("summary", "", "Or type sentences, one per line"), this.written, button("Encode the texts", () => this.openWritten()), make("span", "", about));
    root.replaceChildren(this.drop, write, this.problem, this.head, this.shown);
    this.begin();
  }

  // Two new workers with an empty cloud.
  begin() {
    this.cloud?.close();
    this.opened = null;
    this.cloud = new Playground(make("div"), { words: this.words, worker: this.worker, redraws: false, state: { hidden: WITHOUT } });
    this.stage.replaceChildren(this.cloud.root);
    this.cloud.port.addEventListener("message", ({ data }) => this.receive(data));
    this.cloud.root.addEventListener("playground:settled", () => this.settled());
    this.helper?.terminate?.();
    this.helper = portOf(this.worker);
    const { port1, port2 } = new MessageChannel();
    this.cloud.port.postMessage({ ask: "helper", id: 0, port: port1 }, [port1]);
    if (this.encoder) this.cloud.port.postMessage({ ask: "encoder", id: 0, ...this.encoder });
    this.helper.postMessage({ ask: "help", id: 0, port: port2 }, [port2]);
    this.frontier?.close();
    this.frontier = new FrontierView(() => this.cloud.pause(false), () => this.cloud.look());
    this.below.replaceChildren(this.rulerPart(), this.neighbourPart(), this.frontier.element);
    this.listenForRows();
  }

  open(files, transforms = []) {
    this.done();
    Object.assign(this, { transforms, isReading: true });
    this.problem.hidden = true;
    this.progress.hidden = this.head.hidden = false;
    this.status.textContent = "Reading";
    this.cloud.port.postMessage({ ask: "open", id: 0, files });
    return new Promise((resolve) => (this.whenSettled = resolve));
  }

  openWritten() {
    const lines = this.written.value.split("\n").map((line) => line.trim()).filter(Boolean);
    if (lines.length < 2) return this.refuse("Type at least two sentences, each on its own line.");
    return this.open([new File([lines.map((text) => JSON.stringify({ text })).join("\n")], "your texts.jsonl")]);
  }

  // Files that are still read leave those before them on the page.
  cancel() {
    if (this.isReading && this.opened) this.cloud.port.postMessage({ ask: "cancel", id: 0 });
    else this.begin();
    this.progress.hidden = true;
    this.head.hidden = this.shown.hidden = !this.opened;
    this.done();
  }

  done() {
    this.isReading = false;
    if (this.progress.contains(document.activeElement)) this.input.focus(); // its button is hidden now
    this.input.value = "";
    this.whenSettled?.();
    this.whenSettled = null;
  }

  receive(message) {
    const parts = {
      progress: ({ text }) => (this.status.textContent = text),
      refused: ({ problem }) => this.refuse(problem),
      failed: () => this.isReading || this.refuse("these vectors cannot be computed here; the browser's console says why"),
      opened: (opened) => this.show(opened),
      ruler: (ruler) => this.showRuler(ruler),
      frontier: (step) => this.frontier.show(step),
      neighbours: (answer) => this.showNeighbours(answer),
    };
    parts[message.part]?.(message);
  }

  refuse(problem) {
    this.problem.textContent = problem;
    this.problem.hidden = false;
    this.progress.hidden = true;
    this.head.hidden = !this.opened;
    this.done();
  }

  show(opened) {
    Object.assign(this, { opened, isReading: false });
    const { name, n, d, columns, zeros } = opened;
    this.status.textContent = "Computing";
    this.progress.hidden = this.shown.hidden = false;
    const leftOut = zeros ? `. ${count(zeros)} of ${count(n + zeros)} rows ${zeros === 1 ? "is" : "are"} zero and left out.` : "";
    this.facts.textContent = `${name}: ${count(n)} vectors of ${count(d)} dimensions${n < d ? "; fewer rows than dimensions bias most measures" : ""}${leftOut}`;
    const labels = columns.label && frequentLabels(columns.label);
    const others = labels && new Set(columns.label).size > labels.length;
    this.key.replaceChildren(...(labels ?? []).concat(others ? ["others"] : []).map((label, at, all) => make("span", "ivv-label", { style: `--ink: ${CLUSTER_COLOURS[others && at === all.length - 1 ? 9 : at]}` }, shortened(label, LABEL_LETTERS) || "no label")));
    for (const part of ["before", "after"]) [this.cloud.values[part], this.cloud.problems[part]] = [{}, {}];
    this.cloud.drawn = {};
    this.cloud.answeredId = this.cloud.sentId; // the former file gets no more answers
    this.cloud.paused = true; // no frontier until it is asked for
    this.row.max = n;
    this.asking.hidden = !opened.encoded;
    this.alike.textContent = "";
    this.clearNeighbours();
    this.frontier.begin(name);
    this.cloud.set({ d, n, clusters: labels ? 2 : 1, separation: 1, view: this.map.value, transforms: this.transforms });
    this.root.dispatchEvent(new CustomEvent("lab:opened", { detail: opened, bubbles: true }));
  }

  settled() {
    if (!this.opened || this.isReading) return;
    this.progress.hidden = true;
    const cosine = this.cloud.numbers().mean_cosine.value ?? 0;
    this.alike.textContent = 1 - cosine < INDISTINCT ? `The rows cannot be told apart: the mean cosine of two of them is ${fixed(cosine, 4)}.` : "";
    this.done();
    this.root.dispatchEvent(new CustomEvent("lab:settled", { detail: this.cloud.numbers(), bubbles: true }));
  }

  // ---- the ruler

  rulerPart() {
    this.levels = make("dl", "ivv-levels");
    this.typed = make("input", "", { type: "number", min: -1, max: 1, step: 0.01, value: 0.5, oninput: () => this.read() });
    this.reading = make("span", "ivv-reading", { role: "status" });
    this.rulerNote = make("p", "ivp-caption");
    const field = make("label", "ivv-typed", "A cosine of ", this.typed, " ", this.reading);
    return make("section", "ivv-ruler", { "aria-label": "Ruler" }, make("h2", "", "Is a cosine high here?"), this.rulerNote, this.levels, field);
  }

  showRuler(ruler) {
    this.ruler = ruler;
    const { levels, problem, pairs, rows } = ruler;
    this.rulerNote.textContent = levels ? `Cosines of ${count(pairs)} unrelated pairs of ${count(rows)} rows${this.opened.columns.label ? " with different labels" : ""}.` : `Undefined: ${problem}`;
    showFacts(this.levels, (levels ?? []).map((value, at) => [`${Number((100 * SHARES[at]).toFixed(1))} % lie below`, fixed(value, 3)]));
    this.read();
  }

  read() {
    const { grid } = this.ruler ?? {};
    const value = Number(this.typed.value);
    const share = grid && percentileOf(grid, value);
    this.reading.textContent = !grid || !this.typed.value ? "" : Number.isFinite(value) && Math.abs(value) <= 1 ? `is higher than ${(100 * share).toFixed(1)} % of unrelated pairs` : "a cosine lies between −1 and 1";
  }

  // ---- neighbours

  neighbourPart() {
    this.row = make("input", "", { type: "number", min: 1, value: "", onchange: () => this.typeRow() });
    this.near = make("ol", "ivv-near");
    this.about = make("p", "ivv-text", { role: "status" });
    this.query = make("input", "", { type: "search", "aria-label": "A sentence", placeholder: "A sentence" });
    this.asking = make("form", "ivv-typed", { hidden: true, onsubmit: (event) => (event.preventDefault(), this.askNearest()) }, "or nearest to ", this.query, make("button", "", "Find"));
    const field = make("div", "ivv-typed", make("label", "ivv-typed", "Row ", this.row), this.asking);
    return make("section", "ivv-neighbours", { "aria-label": "Nearest neighbours" }, make("h2", "", "Nearest neighbours"), make("p", "ivp-caption", "Choose a point in the cloud, or type its row. By cosine, of the vectors as they came."), field, this.about, this.near);
  }

  clearNeighbours() {
    this.row.value = this.query.value = "";
    this.near.replaceChildren();
    this.about.textContent = "";
  }

  typeRow() {
    const { value } = this.row;
    const row = Math.round(Number(value));
    if (row >= 1 && row <= this.opened.n) return this.askNeighbours(row - 1);
    this.clearNeighbours();
    this.row.value = value;
    if (value) this.about.textContent = `Rows are 1 to ${count(this.opened.n)}`;
  }

  askNearest() {
    const text = this.query.value.trim();
    this.row.value = "";
    if (text) this.cloud.port.postMessage({ ask: "neighbours", id: 0, text, count: NEIGHBOUR_COUNT });
  }

  askNeighbours(row) {
    if (!this.opened || !(row >= 0 && row < this.opened.n)) return;
    this.query.value = "";
    this.row.value = row + 1;
    this.cloud.port.postMessage({ ask: "neighbours", id: 0, row, count: NEIGHBOUR_COUNT });
  }

  showNeighbours({ row, text, found }) {
    if (text === undefined ? Number(this.row.value) !== row + 1 : this.query.value.trim() !== text) return; // another one since then
    this.about.textContent = text === undefined ? this.nameOf(row) : found.length ? `Nearest to “${shortened(text, MOST_LETTERS)}”` : "The encoder knows no word of this sentence; it reads English.";
    this.near.replaceChildren(...found.map(([index, cosine]) => make("li", "", make("span", "ivp-number", fixed(cosine, 3)), " ", this.nameOf(index))));
  }

  nameOf(row) {
    const { text, label, id } = this.opened.columns;
    const whole = [id ? id[row] : `row ${row + 1}`, label?.[row], text?.[row]].filter(Boolean).join(" · ");
    return shortened(whole, MOST_LETTERS);
  }

  // A click on the cloud that does not turn it chooses the nearest point.
  listenForRows() {
    const view = this.cloud.parts.before;
    let from = null;
    view.canvas.addEventListener("pointerdown", (event) => (from = [event.clientX, event.clientY]));
    view.canvas.addEventListener("pointerup", (event) => {
      if (from && Math.hypot(event.clientX - from[0], event.clientY - from[1]) < 5) this.askNeighbours(view.nearestTo(event.offsetX, event.offsetY));
      from = null;
    });
  }

  pythonFor(point) {
    return pythonOf(point, this.opened.name);
  }

  close() {
    this.helper.terminate?.();
    this.frontier.close();
    this.cloud.close();
  }
}

// Vectors inside the page, as files: { name, npy: base64, columns }.
export function filesOf({ name, npy, columns }) {
  const files = [new File([bytesOf(npy)], name)];
  const names = Object.keys(columns);
  if (!names.length) return files;
  const lines = columns[names[0]].map((_, row) => JSON.stringify(Object.fromEntries(names.map((each) => [each, columns[each][row]]))));
  return [...files, new File([lines.join("\n")], "columns.jsonl")];
}

function bytesOf(base64) {
  return Uint8Array.fromBase64?.(base64) ?? Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)); // the second takes seconds for a large file
}

// The share of a sorted grid below a value.
function percentileOf(grid, value) {
  let [low, high] = [0, grid.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (grid[middle] < value) low = middle + 1;
    else high = middle;
  }
  if (low === 0 || low === grid.length) return low === 0 ? 0 : 1;
  const step = grid[low] - grid[low - 1];
  return (low - 1 + (step > 0 ? (value - grid[low - 1]) / step : 0)) / (grid.length - 1);
}

function shortened(text, letters) {
  return text.length > letters ? `${text.slice(0, letters)} …` : text;
}
