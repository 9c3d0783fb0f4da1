// The correlation matrix of one run, epoch by epoch.

const NOT_MEASURED = "Appears with the first measurement, before the first step.";
const CACHED_MATRICES = 12; // decoded matrices in memory; older epochs are fetched again from the browser's cache

export default (component) => mount(component, (element) => new MatrixView(element.querySelector(".ivz-matrix"), component.data.help));

class MatrixView {
  constructor(root, help) {
    this.root = root;
    const find = (name) => root.querySelector(`.ivz-matrix-${name}`);
    [this.canvas, this.note, this.caption, this.slider, this.label] = ["canvas", "empty", "caption", "slider", "label"].map(find);
    [this.previous, this.next] = ["previous", "next"].map(find);
    this.scale = find("scale");
    find("title").textContent = help.title;
    this.facts = find("facts");
    const reading = explanation(help);
    reading.open = globalThis.matchMedia("(min-width: 80rem)").matches; // wide screens have room beside the matrix
    find("side").append(reading);
    this.slider.oninput = () => this.choose(Number(this.slider.value));
    this.previous.onclick = () => this.choose(Number(this.slider.value) - 1);
    this.next.onclick = () => this.choose(Number(this.slider.value) + 1);
    const [zoomIn, zoomOut, reset] = ["in", "out", "reset"].map(find);
    this.plot = new MatrixCanvas(root, { canvas: this.canvas, readout: find("readout"), zoomIn, zoomOut, reset });
    this.clear();
  }

  clear() {
    this.epochs = []; // [epoch, {seq, event}]
    this.follow = true; // show each new epoch when it arrives
    this.displayed = null; // {epoch, matrix}
    this.matrices = new Map(); // seq -> decoded matrix
    this.request = null; // ignores responses for the previous run
    this.plot.clear();
    this.label.textContent = this.caption.textContent = "";
    this.facts.replaceChildren();
    this.slider.max = this.slider.value = "0";
    this.slider.disabled = this.previous.disabled = this.next.disabled = true;
    this.slider.removeAttribute("aria-valuetext");
    this.canvas.setAttribute("aria-label", "Correlation matrix");
    this.showMessage(NOT_MEASURED);
  }

  show(data) {
    const repaint = this.plot.applyTheme(lookOf(this.root), this.scale, "to right");
    if (data.run !== this.data?.run) this.clear();
    this.data = data;
    if (repaint) for (const matrix of this.matrices.values()) matrix.picture = null;
    const unsubscribeEarlier = this.unsubscribe;
    this.unsubscribe = subscribe(data.run, { events: data.events }, (feed, changed) => changed.has("measured") && this.update(feed.run));
    unsubscribeEarlier?.();
    this.plot.paint();
  }

  close() {
    this.unsubscribe?.();
    this.plot.close();
  }

  update(run) {
    this.epochs = byEpoch(run.measured);
    if (!this.epochs.length) {
      // a replay is back at the beginning
      this.displayed = this.request = null;
      this.plot.clear();
      return this.showMessage(NOT_MEASURED);
    }
    const last = this.epochs.length - 1;
    const index = this.follow ? last : Math.min(last, Math.max(0, this.epochs.findIndex(([epoch]) => epoch === this.displayed?.epoch)));
    this.slider.max = String(last);
    this.slider.disabled = last === 0;
    this.display(index);
  }

  choose(index) {
    const last = this.epochs.length - 1;
    if (last < 0) return;
    const clamped = Math.max(0, Math.min(last, index));
    this.follow = clamped === last;
    this.display(clamped);
  }

  async display(index) {
    const [epoch, { seq, event }] = this.epochs[index];
    this.slider.value = String(index);
    const newest = index === this.epochs.length - 1;
    this.label.textContent = `epoch ${epoch}${epoch === 0 ? " (before training)" : newest ? " (newest)" : ""}`;
    this.slider.setAttribute("aria-valuetext", this.label.textContent);
    this.previous.disabled = index === 0;
    this.next.disabled = newest;
    if (this.displayed?.matrix.seq === seq) return;
    const request = (this.request = Symbol(epoch));
    let matrix = this.matrices.get(seq);
    try {
      matrix ??= await this.fetch(epoch, seq);
    } catch (error) {
      if (request === this.request) this.showMessage(error instanceof TypeError ? "The server is not responding. Choose the epoch again." : error.message);
      return;
    }
    if (request !== this.request) return; // another epoch was chosen in the meantime
    const cloud = event.clouds.head;
    this.displayed = { epoch, matrix, cloud };
    this.note.hidden = true;
    this.caption.textContent = `what the classifier reads, ${cloud.split}, n = ${count(cloud.n)}, d = ${cloud.d}`;
    this.facts.replaceChildren(...[["mean |ρ| of all pairs", number(matrix.mean)], ["pairs above 0.5", `${number(100 * matrix.high)} %`]].map(([name, value]) => {
      const pair = make("div");
      pair.append(make("dt", "", name), make("dd", "", value));
      return pair;
    }));
    this.canvas.setAttribute("aria-label", `Correlation matrix of ${matrix.d} dimensions, ${this.label.textContent}: mean |ρ| ${number(matrix.mean)}, ${number(100 * matrix.high)} percent of pairs above 0.5`);
    this.plot.set(matrix);
  }

  async fetch(epoch, seq) {
    const { matrices } = this; // `clear` replaces it for another run
    const load = async (name) => {
      const url = resolveUrl(`${this.data.arrays}/${encodeURIComponent(this.data.run)}/${epoch}/${name}`);
      url.searchParams.set("v", seq);
      const response = await fetch(url);
      if (!response.ok) throw new Error(await response.text());
      return response.arrayBuffer();
    };
    const [cells, order, std] = await Promise.all([load("matrix"), load("order"), load("std")]);
    const matrix = { seq, d: order.byteLength / 4, cells: new Uint8Array(cells), order: new Int32Array(order), std: new Float32Array(std), picture: null };
    Object.assign(matrix, summary(matrix.cells));
    matrices.set(seq, matrix);
    if (matrices.size > CACHED_MATRICES) matrices.delete(matrices.keys().next().value);
    return matrix;
  }

  showMessage(text) {
    this.note.textContent = text;
    this.note.hidden = false;
  }
}
