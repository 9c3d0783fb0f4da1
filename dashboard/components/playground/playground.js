// The playground: a cloud shaped by controls, its measures and their true values, all computed in the browser by a worker.
//
//   const playground = new Playground(root, { words, state, start, worker });   no Streamlit here: the same in a page of one file
//   start: the state that Reset goes back to, where it is not the default
//   playground.set(part, { animate: true })   any part of a state (state.js); resolves with the numbers once all have settled
//   playground.state()                        the whole state, plain JSON; toLink(state) and fromLink(text) are its short form
//   playground.numbers(), .numbers("after")   name → { value, true, pending, problem }, before and after the transforms
//   playground.redraws()                      { plug, unbiased, most }: IsoScore of clouds drawn anew so far, and how many there will be
//   playground.cloud({ after, draw })         resolves with { points, known, labels, originals }: float64, as measured
//   playground.pause(true)                    draws no more clouds for the redraws
//   playground.lock(true)                     controls stand still, as while a guess is awaited
//   playground.close()
//   root hears "playground:change" (detail: the state; a control or set moved it) and "playground:settled" (detail: the numbers).
//   state.hidden: names of controls to leave out, or whole parts: "controls", "presets", "toolbar", "cloud", "numbers",
//   "plots", "transforms".

const GLIDE = 700; // milliseconds of an animated move
const DIRECT = new Set(["shift", "rogueScale", "rho", "rotation", "separation", "duplicates", "scale", "decay", "floor", "zeta"]);

export class Playground {
  constructor(root, { words, state = {}, start = {}, worker = WORKER_SOURCE }) {
    this.root = root;
    this.start = normalised(start);
    this.words = words;
    this.now = normalised(state);
    this.found = { before: {}, after: {} };
    this.problems = { before: {}, after: {} };
    this.known = {};
    this.pending = { before: new Set(MEASURES), after: new Set(MEASURES) };
    this.drawn = {};
    this.paused = false;
    this.waiting = new Map(); // asked clouds, by number
    this.settlers = [];
    [this.count, this.sent, this.answered] = [0, 0, 0];
    this.frame = null;
    this.build();
    this.port = portOf(worker);
    this.port.onmessage = ({ data }) => this.hear(data);
    this.show();
    this.ask();
  }

  state() {
    return structuredClone(this.now);
  }

  numbers(which = "before") {
    const one = (name) => ({ value: this.found[which][name] ?? null, true: which === "before" ? (this.known[name] ?? null) : null, pending: this.pending[which].has(name), problem: this.problems[which][name] ?? null });
    return Object.fromEntries(MEASURES.map((name) => [name, one(name)]));
  }

  set(part, { animate = false } = {}) {
    const wanted = normalised({ ...this.now, ...part });
    this.glide?.stop();
    const settled = new Promise((resolve) => this.settlers.push(resolve));
    if (animate && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.glideTo(wanted);
    else this.take(wanted);
    return settled;
  }

  redraws() {
    const { plug = [], unbiased = [], most = 0 } = this.drawn.redraws ?? {};
    return { plug, unbiased, most };
  }

  cloud({ after = false, draw = 0 } = {}) {
    const id = (this.count += 1);
    this.port.postMessage({ ask: "cloud", id, state: this.now, after, draw });
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }

  // Draws no more clouds for the redraws, or goes on with them.
  pause(paused) {
    this.paused = paused;
    this.unsent = true;
    if (this.sent === this.answered) this.send();
  }

  lock(locked) {
    this.root.classList.toggle("ivp-locked", locked);
    for (const field of this.root.querySelectorAll(".ivp-controls :is(input, select, button), .ivp-presets button, .ivp-transforms :is(input, select, button)")) field.disabled = locked;
  }

  close() {
    this.glide?.stop();
    cancelAnimationFrame(this.frame);
    this.port.terminate?.();
    for (const part of Object.values(this.parts)) part.close?.();
    this.root.replaceChildren();
  }

  // ---- the state

  take(state) {
    this.now = state;
    this.show();
    this.ask();
    this.root.dispatchEvent(new CustomEvent("playground:change", { detail: this.state(), bubbles: true }));
  }

  // Numbers glide, choices jump at the start.
  glideTo(wanted) {
    const from = this.now;
    const moving = [...DIRECT].filter((name) => from[name] !== wanted[name]);
    if (!moving.length) return this.take(wanted);
    const began = performance.now();
    let frame = null;
    const step = (time) => {
      const t = Math.min(1, Math.max(0, (time - began) / GLIDE));
      const eased = t * t * (3 - 2 * t);
      const mix = (name) => (name === "scale" ? from[name] ** (1 - eased) * wanted[name] ** eased : from[name] + (wanted[name] - from[name]) * eased);
      this.take(t < 1 ? { ...wanted, ...Object.fromEntries(moving.map((name) => [name, mix(name)])) } : wanted);
      if (t < 1) frame = requestAnimationFrame(step);
      else this.glide = null;
    };
    this.glide = { stop: () => (cancelAnimationFrame(frame), (this.glide = null)) };
    frame = requestAnimationFrame(step);
    return undefined;
  }

  // One state is under way at a time; while its first answer is awaited, only the latest that follows it is kept.
  ask() {
    this.unsent = true;
    for (const which of ["before", "after"]) for (const name of MEASURES) this.pending[which].add(name);
    if (this.sent === this.answered) this.send();
  }

  send() {
    this.unsent = false;
    this.sent = this.count += 1;
    this.port.postMessage({ id: this.sent, state: this.now, paused: this.paused });
  }

  hear(answer) {
    if (answer.part === "cloud") {
      this.waiting.get(answer.id)?.(answer);
      this.waiting.delete(answer.id);
      return;
    }
    if (answer.id !== this.sent) return;
    if (answer.part === "failed") console.error(answer.message);
    this.answered = this.sent;
    this.accept(answer);
    if (this.unsent) this.send();
    else if (answer.part === "settled") this.settle();
    this.frame ??= requestAnimationFrame(() => this.paint());
  }

  accept({ part, which = "before", values = {}, problems = {}, known, ...drawn }) {
    for (const [name, value] of Object.entries(values)) {
      this.found[which][name] = value;
      this.problems[which][name] = problems[name] ?? null;
      if (!this.unsent) this.pending[which].delete(name);
    }
    if (known) this.known = known;
    this.drawn[part === "truth" || part === "redraws" ? part : `${which} ${part}`] = { ...drawn, values };
  }

  settle() {
    for (const which of ["before", "after"]) this.pending[which].clear();
    const numbers = this.numbers();
    if (this.glide) return;
    this.root.dispatchEvent(new CustomEvent("playground:settled", { detail: numbers, bubbles: true }));
    for (const resolve of this.settlers.splice(0)) resolve(numbers);
  }

  // ---- the screen

  build() {
    this.root.classList.add("ivp");
    const change = (part, options) => this.set(part, options);
    this.parts = {
      presets: new Presets(change),
      controls: new Controls(change),
      before: new CloudView("Cloud"),
      after: new CloudView("After the transforms"),
      numbers: new NumberTable(this.words.measures),
      toolbar: new Toolbar(this, change),
      transforms: new Transforms(this.words.transforms, change),
      plots: new Plots((paused) => this.pause(paused)),
    };
    const { presets, controls, before, after, numbers, toolbar, transforms, plots } = this.parts;
    before.twin = after;
    after.twin = before;
    const stage = make("div", "ivp-stage");
    const clouds = make("div", "ivp-clouds");
    clouds.append(before.element, after.element);
    stage.append(toolbar.element, clouds, transforms.element);
    const body = make("div", "ivp-body");
    body.append(controls.element, stage, numbers.element);
    this.root.replaceChildren(presets.element, body, plots.element);
  }

  show() {
    const { presets, controls, before, after, numbers, toolbar, transforms, plots } = this.parts;
    const hidden = new Set(this.now.hidden);
    const elements = { presets, controls, numbers, toolbar, transforms, plots, cloud: { element: before.element.parentElement.parentElement } };
    for (const [name, { element }] of Object.entries(elements)) element.hidden = hidden.has(name);
    controls.show(this.now, hidden);
    transforms.show(this.now);
    after.element.hidden = !this.now.transforms.length;
    this.root.classList.toggle("ivp-twins", this.now.transforms.length > 0);
    this.frame ??= requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.frame = null;
    const look = this.look();
    const two = this.now.transforms.length > 0;
    const { before, after, numbers, plots } = this.parts;
    const labels = this.drawn["before picture"]?.labels;
    before.show(this.drawn["before picture"], labels, this.now, look);
    if (two) after.show(this.drawn["after picture"], labels, this.now, look);
    numbers.show(this.numbers(), two ? this.numbers("after") : null);
    plots.show({ drawn: this.drawn, two, state: this.now, numbers: this.found.before, known: this.known, look });
  }

  // The theme's colours, asked for anew now and then: a page may change its mode.
  look() {
    if (!this.seen || performance.now() - this.seen.at > 1000) {
      const look = lookOf(this.root);
      const same = JSON.stringify(look) === JSON.stringify(this.seen?.look);
      this.seen = { at: performance.now(), look: same ? this.seen.look : look };
    }
    this.root.classList.toggle("ivp-dark", this.seen.look.dark);
    return this.seen.look;
  }
}

// A worker of that source; where the browser gives none, the same work between the page's own frames.
function portOf(source) {
  try {
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const worker = new Worker(address);
    URL.revokeObjectURL(address);
    return worker;
  } catch {
    const { port1, port2 } = new MessageChannel();
    new Function("port", `${source.replace(/serve\(globalThis\);\s*$/, "")}; serve(port);`)(port2);
    return port1;
  }
}
