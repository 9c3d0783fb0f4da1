// The correlation matrix of one run, epoch by epoch.

const NOT_MEASURED = "Appears with the first measurement, before the first step.";
const KEPT_MATRICES = 12; // decoded matrices in memory; older epochs are fetched again (the browser has them cached)

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
    reading.open = globalThis.matchMedia("(min-width: 80rem)").matches; // there is room beside the matrix
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
    this.follow = true; // show the newest epoch as it comes
    this.shown = null; // {epoch, matrix}
    this.matrices = new Map(); // seq -> decoded matrix
    this.ticket = null; // what is still on its way is of another run
    this.plot.clear();
    this.label.textContent = this.caption.textContent = "";
    this.facts.replaceChildren();
    this.slider.max = this.slider.value = "0";
    this.slider.disabled = this.previous.disabled = this.next.disabled = true;
    this.slider.removeAttribute("aria-valuetext");
    this.canvas.setAttribute("aria-label", "Correlation matrix");
    this.say(NOT_MEASURED);
  }

  show(data) {
    const repaint = this.plot.dress(lookOf(this.root), this.scale, "to right");
    if (data.run !== this.data?.run) this.clear();
    this.data = data;
    if (repaint) for (const matrix of this.matrices.values()) matrix.picture = null;
    const earlier = this.leave;
    this.leave = subscribe(data.run, { events: data.events, token: data.token }, (feed, changed) => changed.has("measured") && this.take(feed.run));
    earlier?.();
    this.plot.paint();
  }

  close() {
    this.leave?.();
    this.plot.close();
  }

  take(run) {
    this.epochs = byEpoch(run.measured);
    if (!this.epochs.length) {
      // a replay is back at the beginning
      this.shown = this.ticket = null;
      this.plot.clear();
      return this.say(NOT_MEASURED);
    }
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
    const { matrices } = this; // another run has another map
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
    matrices.set(seq, matrix);
    if (matrices.size > KEPT_MATRICES) matrices.delete(matrices.keys().next().value);
    return matrix;
  }

  say(text) {
    this.note.textContent = text;
    this.note.hidden = false;
  }
}
