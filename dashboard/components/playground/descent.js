// A small cloud moved by gradient descent on a method's penalty.

export default (component) => mount(component, (element) => new Descent(element.querySelector(".ivp-root")));

const STEPS = 200;
const RATE = { istar: 0.06, cosreg: 0.1 }; // learning rate per point: the gradient of a penalty is a mean over points

class Descent {
  constructor(root) {
    this.root = root;
    root.classList.add("ivp");
  }

  show({ slug, points, d }) {
    if (this.view) return;
    Object.assign(this, { slug, d, n: points.length / d, initial: Float64Array.from(points), sign: 1 });
    this.view = new CloudView("Cloud");
    this.run = button("Run", () => (this.frame ? this.stop() : this.animate()));
    this.signs = [1, -1].map((sign) => button(sign > 0 ? "λ > 0" : "λ < 0", () => this.restart(sign)));
    const again = button("Start again", () => this.restart(this.sign));
    const tools = make("div", "ivp-toolbar", { role: "group", "aria-label": "Sign of λ" }, this.signs, this.run, again);
    this.facts = make("p", "ivp-descent", { role: "status" });
    this.root.replaceChildren(tools, this.view.element, this.facts);
    this.restart(1);
  }

  restart(sign) {
    this.stop();
    Object.assign(this, { sign, points: this.initial.slice(), steps: 0 });
    this.signs.forEach((button, index) => button.setAttribute("aria-pressed", String((index === 0) === sign > 0)));
    this.draw();
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    this.run.textContent = "Run";
  }

  animate() {
    if (this.steps >= STEPS) this.restart(this.sign);
    this.run.textContent = "Pause";
    const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches; // show only the result
    const move = () => {
      do this.step(); while (reducedMotion && this.steps < STEPS);
      this.draw();
      if (this.steps < STEPS) this.frame = requestAnimationFrame(move);
      else this.stop();
    };
    this.frame = requestAnimationFrame(move);
  }

  step() {
    const { gradient } = PENALTIES[this.slug](this.points, this.n, this.d);
    for (let k = 0; k < gradient.length; k += 1) this.points[k] -= this.sign * RATE[this.slug] * this.n * gradient[k];
    this.steps += 1;
  }

  // IsoScore and mean cosine, computed from the two penalties.
  numbers(points) {
    const { n, d } = this;
    return { isoscore: 1 - istarPenalty(points, n, d).value, cosine: (cosinePenalty(points, n, d).value * n) / (n - 1) };
  }

  draw() {
    const { points, n, d } = this;
    const mean = [0, 1, 2].map((j) => points.reduce((sum, value, k) => sum + (k % d === j ? value / n : 0), 0));
    this.view.show({ coordinates: Float32Array.from(points), mean }, null, { d, clusters: 1, view: "dimensions" }, lookOf(this.root));
    const [before, after] = [this.numbers(this.initial), this.numbers(points)];
    const format = (value) => value.toFixed(2).replace(/^-(0\.00)$/, "$1");
    const change = (name) => (this.steps ? `${format(before[name])} → ${format(after[name])}` : format(before[name]));
    this.facts.textContent = `IsoScore ${change("isoscore")} · mean cosine ${change("cosine")} · step ${this.steps} of ${STEPS}`.replaceAll("-", "−");
    this.facts.dataset.isoscore = String(after.isoscore);
    this.facts.dataset.cosine = String(after.cosine);
  }

  close() {
    this.stop();
    this.view.close();
  }
}
