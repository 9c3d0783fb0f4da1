// A small cloud moved by gradient steps on one method's penalty.

export default (component) => mount(component, (element) => new Descent(element.querySelector(".ivp-root")));

const STEPS = 200;
const RATE = { istar: 0.06, cosreg: 0.1 }; // of a step, times the number of points: a penalty's gradient is a mean over them

class Descent {
  constructor(root) {
    this.root = root;
    root.classList.add("ivp");
  }

  show({ slug, points, d }) {
    if (this.view) return;
    Object.assign(this, { slug, d, n: points.length / d, start: Float64Array.from(points), sign: 1 });
    this.view = new CloudView("Cloud");
    this.run = this.button("Run", () => (this.frame ? this.stop() : this.go()));
    const signs = make("div", "ivp-toolbar");
    signs.setAttribute("role", "group");
    signs.setAttribute("aria-label", "Sign of λ");
    this.signs = [1, -1].map((sign) => this.button(sign > 0 ? "λ > 0" : "λ < 0", () => this.restart(sign)));
    signs.append(...this.signs, this.run, this.button("Start again", () => this.restart(this.sign)));
    this.facts = make("p", "ivp-descent");
    this.facts.setAttribute("role", "status");
    this.root.replaceChildren(signs, this.view.element, this.facts);
    this.restart(1);
  }

  button(text, act) {
    const found = make("button", "", text);
    found.type = "button";
    found.onclick = act;
    return found;
  }

  restart(sign) {
    this.stop();
    Object.assign(this, { sign, points: this.start.slice(), steps: 0 });
    this.signs.forEach((one, place) => one.setAttribute("aria-pressed", String((place === 0) === sign > 0)));
    this.draw();
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    this.run.textContent = "Run";
  }

  go() {
    if (this.steps >= STEPS) this.restart(this.sign);
    this.run.textContent = "Pause";
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches; // then only the end is shown
    const move = () => {
      do this.step(); while (still && this.steps < STEPS);
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

  // IsoScore and mean cosine, which the two penalties hold.
  numbers(points) {
    const { n, d } = this;
    return { isoscore: 1 - istarPenalty(points, n, d).value, cosine: (cosinePenalty(points, n, d).value * n) / (n - 1) };
  }

  draw() {
    const { points, n, d } = this;
    const middle = [0, 1, 2].map((j) => points.reduce((sum, value, k) => sum + (k % d === j ? value / n : 0), 0));
    this.view.show({ places: Float32Array.from(points), middle }, null, { d, clusters: 1, view: "dimensions" }, lookOf(this.root));
    const [then, now] = [this.numbers(this.start), this.numbers(points)];
    const two = (value) => value.toFixed(2).replace(/^-(0\.00)$/, "$1");
    const change = (name) => (this.steps ? `${two(then[name])} → ${two(now[name])}` : two(then[name]));
    this.facts.textContent = `IsoScore ${change("isoscore")} · mean cosine ${change("cosine")} · step ${this.steps} of ${STEPS}`.replaceAll("-", "−");
    this.facts.dataset.isoscore = String(now.isoscore);
    this.facts.dataset.cosine = String(now.cosine);
  }

  close() {
    this.stop();
    this.view.close();
  }
}
