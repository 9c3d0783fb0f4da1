// The correlation matrix of one run, epoch by epoch.

const NOT_MEASURED = "Appears with the first measurement, before the first step.";
const CACHED_MATRICES = 12; // decoded matrices in memory; older epochs are fetched again from the browser's cache

export default (component) => mount(component, (element) => new MatrixView(element.querySelector(".ivz-matrix"), component.data.help));

class MatrixView {
  constructor(root, help) {
    this.root = root;
    const find = (name) => root.querySelector(`.ivz-matrix-${name}`);
    [this.caption, this.slider, this.label] = ["caption", "slider", "label"].map(find);
    [this.previous, this.next] = ["previous", "next"].map(find);
    find("title").textContent = help.title;
    const reading = explanation(help);
    reading.open = globalThis.matchMedia("(min-width: 80rem)").matches; // wide screens have room beside the matrix
    find("side").append(reading);
    this.slider.oninput = () => this.choose(Number(this.slider.value));
    this.previous.onclick = () => this.choose(Number(this.slider.value) - 1);
    this.next.onclick = () => this.choose(Number(this.slider.value) + 1);
    this.plot = new MatrixCanvas(root);
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
    this.plot.facts.replaceChildren();
    this.slider.max = this.slider.value = "0";
    this.slider.disabled = this.previous.disabled = this.next.disabled = true;
    this.slider.removeAttribute("aria-valuetext");
    this.plot.canvas.setAttribute("aria-label", "Correlation matrix");
    this.plot.showMessage(NOT_MEASURED);
  }

  show(data) {
    const repaint = this.plot.applyTheme(lookOf(this.root), "to right");
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
      return this.plot.showMessage(NOT_MEASURED);
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
      if (request === this.request) this.plot.showMessage(error instanceof TypeError ? "The server is not responding. Choose the epoch again." : error.message);
      return;
    }
    if (request !== this.request) return; // another epoch was chosen in the meantime
    const cloud = event.clouds.head;
    this.displayed = { epoch, matrix, cloud };
    this.caption.textContent = `what the classifier reads, ${cloud.split}, n = ${count(cloud.n)}, d = ${cloud.d}`;
    const [mean, high] = [number(matrix.mean), number(100 * matrix.high)];
    const words = `Correlation matrix of ${matrix.d} dimensions, ${this.label.textContent}: mean |ρ| ${mean}, ${high} percent of pairs above 0.5`;
    this.plot.set(matrix, { mean, high: `${high} %`, words });
  }

  async fetch(epoch, seq) {
    const { matrices } = this; // `clear` replaces it for another run
    const address = `${this.data.arrays}/${encodeURIComponent(this.data.run)}/${epoch}`;
    const matrix = await loadMatrix((name) => `${address}/${name}?v=${seq}`, ["matrix", "order", "std"]);
    Object.assign(matrix, { seq }, summary(matrix.cells));
    matrices.set(seq, matrix);
    if (matrices.size > CACHED_MATRICES) matrices.delete(matrices.keys().next().value);
    return matrix;
  }
}
