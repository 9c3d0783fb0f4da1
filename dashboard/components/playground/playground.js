// The playground: a cloud shaped by controls, with its measures and their true values, computed by a worker in the browser.
//
//   const playground = new Playground(root, { words, state, start, measures, worker });   needs no Streamlit: also used in standalone files
//   start: the state that Reset restores, if not the default. measures: names of those to show until all are asked for. redraws: whether
//   the figure of redraws is shown
//   playground.set(part, { animate: true })   any part of a state (state.js); resolves with the numbers once all are computed
//   playground.follow(link)                   moves to the cloud of a link, and marks the measure that it names
//   playground.state()                        the whole state, plain JSON; toLink(state) and fromLink(text) are its short form
//   playground.numbers(), .numbers("after")   name → { value, true, pending, truePending, problem }, before and after the transforms
//   playground.redraws()                      { plug, unbiased, planned }: IsoScore of the redraws so far, and their final number
//   playground.cloud({ after, draw, state })  resolves with { points, known, labels, originals }: float64, as measured
//   playground.pause(true)                    pauses the redraws
//   playground.lock(true)                     disables the controls
//   playground.close()
//   root receives "playground:change" (detail: the state) and "playground:settled" (detail: the numbers).
//   state.hidden: names of controls to hide, or whole parts: "controls", "presets", "toolbar", "cloud", "numbers",
//   "plots", "transforms".

const GLIDE = 700; // milliseconds of an animated move
const DIRECT = new Set(["shift", "rogueScale", "rho", "rotation", "separation", "duplicates", "scale", "decay", "floor", "zeta"]);

export class Playground {
  constructor(root, { words, state = {}, start = {}, measures = null, redraws = true, worker = WORKER_SOURCE }) {
    Object.assign(this, { root, measures, withRedraws: redraws });
    this.start = normalised(start);
    this.words = words;
    this.current = normalised(state);
    this.values = { before: {}, after: {} };
    this.problems = { before: {}, after: {} };
    this.trueValues = {};
    this.truePending = true; // the true values arrive in a later message than the first values
    this.pending = { before: new Set(MEASURES), after: new Set(MEASURES) };
    this.drawn = {};
    this.paused = false;
    this.waiting = new Map(); // resolvers of requested clouds, by message id
    this.settleCallbacks = [];
    [this.lastId, this.sentId, this.answeredId] = [0, 0, 0];
    this.frame = null;
    this.build();
    this.port = portOf(worker);
    this.port.onmessage = ({ data }) => this.receive(data);
    this.mode = matchMedia("screen and (prefers-color-scheme: dark)");
    this.mode.addEventListener("change", this.restyle);
    this.show();
    this.requestNumbers();
  }

  restyle = () => {
    this.cachedLook = null;
    this.show();
  };

  state() {
    return structuredClone(this.current);
  }

  numbers(which = "before") {
    const entry = (name) => ({ value: this.values[which][name] ?? null, true: which === "before" ? (this.trueValues[name] ?? null) : null, pending: this.pending[which].has(name), truePending: this.truePending, problem: this.problems[which][name] ?? null });
    return Object.fromEntries(MEASURES.map((name) => [name, entry(name)]));
  }

  set(part, { animate = false } = {}) {
    const target = normalised({ ...this.current, ...part });
    this.glide?.stop();
    const settled = new Promise((resolve) => this.settleCallbacks.push(resolve));
    if (animate && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.glideTo(target);
    else this.apply(target);
    return settled;
  }

  follow(link) {
    const row = this.parts.numbers.mark(link);
    this.set(fromLink(link), { animate: true });
    this.root.scrollIntoView();
    row?.scrollIntoView({ block: "nearest" });
  }

  redraws() {
    const { plug = [], unbiased = [], planned = 0 } = this.drawn.redraws ?? {};
    return { plug, unbiased, planned };
  }

  cloud({ after = false, draw = 0, state = this.current } = {}) {
    const id = (this.lastId += 1);
    this.port.postMessage({ ask: "cloud", id, state, after, draw });
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }

  // Pauses or resumes the redraws.
  pause(paused) {
    this.paused = paused;
    this.outdated = true;
    if (this.sentId === this.answeredId) this.send();
  }

  lock(locked) {
    this.root.classList.toggle("ivp-locked", locked);
    for (const field of this.root.querySelectorAll(".ivp-controls :is(input, select, button), .ivp-presets button, .ivp-transforms :is(input, select, button)")) field.disabled = locked;
  }

  close() {
    this.glide?.stop();
    cancelAnimationFrame(this.frame);
    this.port.terminate?.();
    this.mode.removeEventListener("change", this.restyle);
    for (const part of Object.values(this.parts)) part.close?.();
    this.root.replaceChildren();
  }

  // ---- the state

  apply(state) {
    this.current = state;
    this.show();
    this.requestNumbers();
    this.root.dispatchEvent(new CustomEvent("playground:change", { detail: this.state(), bubbles: true }));
  }

  // Animates to a state: numbers change gradually, choices at the start.
  glideTo(target) {
    const from = this.current;
    const moving = [...DIRECT].filter((name) => from[name] !== target[name]);
    if (!moving.length) return this.apply(target);
    const startTime = performance.now();
    let frame = null;
    const step = (time) => {
      const t = Math.min(1, Math.max(0, (time - startTime) / GLIDE));
      const progress = t * t * (3 - 2 * t);
      const mix = (name) => (name === "scale" ? from[name] ** (1 - progress) * target[name] ** progress : from[name] + (target[name] - from[name]) * progress);
      this.apply(t < 1 ? { ...target, ...Object.fromEntries(moving.map((name) => [name, mix(name)])) } : target);
      if (t < 1) frame = requestAnimationFrame(step);
      else this.glide = null;
    };
    this.glide = { stop: () => (cancelAnimationFrame(frame), (this.glide = null)) };
    frame = requestAnimationFrame(step);
    return undefined;
  }

  // The worker gets one state at a time. Until it first responds, only the latest newer state is kept.
  requestNumbers() {
    this.outdated = this.truePending = true;
    for (const which of ["before", "after"]) for (const name of MEASURES) this.pending[which].add(name);
    if (this.sentId === this.answeredId) this.send();
  }

  send() {
    this.outdated = false;
    this.sentId = this.lastId += 1;
    this.port.postMessage({ id: this.sentId, state: this.current, paused: this.paused });
  }

  receive(message) {
    if (message.part === "cloud") {
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
      return;
    }
    if (message.id !== this.sentId) return;
    if (message.part === "failed") console.error(message.message);
    this.answeredId = this.sentId;
    this.accept(message);
    if (this.outdated) this.send();
    else if (message.part === "settled") this.settle();
    this.frame ??= requestAnimationFrame(() => this.paint());
  }

  accept({ part, which = "before", values = {}, problems = {}, known, ...drawn }) {
    for (const [name, value] of Object.entries(values)) {
      this.values[which][name] = value;
      this.problems[which][name] = problems[name] ?? null;
      if (!this.outdated) this.pending[which].delete(name);
    }
    if (known) [this.trueValues, this.truePending] = [known, this.outdated];
    this.drawn[["truth", "redraws", "order"].includes(part) ? part : `${which} ${part}`] = { ...drawn, values };
  }

  settle() {
    for (const which of ["before", "after"]) this.pending[which].clear();
    const numbers = this.numbers();
    if (this.glide) return;
    this.root.dispatchEvent(new CustomEvent("playground:settled", { detail: numbers, bubbles: true }));
    for (const resolve of this.settleCallbacks.splice(0)) resolve(numbers);
  }

  // ---- the screen

  build() {
    this.root.classList.add("ivp");
    this.root.classList.toggle("ivp-few", Boolean(this.measures));
    const change = (part, options) => this.set(part, options);
    this.parts = {
      presets: presets(change),
      controls: new Controls(change),
      before: new CloudView("Cloud"),
      after: new CloudView("After the transforms"),
      numbers: new NumberTable(this.words.measures, this.measures),
      toolbar: toolbar(this, change),
      transforms: new Transforms(this.words.transforms, change),
      plots: new Plots(this.withRedraws ? (paused) => this.pause(paused) : null),
    };
    const { before, after } = this.parts;
    before.twin = after;
    after.twin = before;
    const element = Object.fromEntries(Object.entries(this.parts).map(([name, part]) => [name, part.element]));
    const stage = make("div", "ivp-stage", element.toolbar, make("div", "ivp-clouds", element.before, element.after), element.transforms);
    this.root.replaceChildren(element.presets, make("div", "ivp-body", element.controls, stage, element.numbers), element.plots);
  }

  show() {
    const { presets, controls, before, after, numbers, toolbar, transforms, plots } = this.parts;
    const hidden = new Set(this.current.hidden);
    const elements = { presets, controls, numbers, toolbar, transforms, plots, cloud: { element: before.element.parentElement.parentElement } };
    for (const [name, { element }] of Object.entries(elements)) element.hidden = hidden.has(name);
    controls.show(this.current, hidden);
    transforms.show(this.current);
    after.element.hidden = !this.current.transforms.length;
    this.root.classList.toggle("ivp-twins", this.current.transforms.length > 0);
    this.frame ??= requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.frame = null;
    const look = this.look();
    const transformed = this.current.transforms.length > 0;
    const { before, after, numbers, plots } = this.parts;
    const labels = this.drawn["before picture"]?.labels;
    before.show(this.drawn["before picture"], labels, this.current, look);
    if (transformed) after.show(this.drawn["after picture"], labels, this.current, look);
    numbers.show(this.numbers(), transformed ? this.numbers("after") : null);
    plots.last = { drawn: this.drawn, transformed, state: this.current, numbers: this.values.before, known: this.trueValues, look };
    plots.showAfter(0); // in a turn of their own
  }

  // The theme's colours, re-read every second, because the page's mode may change.
  look() {
    if (!this.cachedLook || performance.now() - this.cachedLook.at > 1000) {
      const look = lookOf(this.root);
      const unchanged = JSON.stringify(look) === JSON.stringify(this.cachedLook?.look);
      this.cachedLook = { at: performance.now(), look: unchanged ? this.cachedLook.look : look };
    }
    this.root.classList.toggle("ivp-dark", this.cachedLook.look.dark);
    return this.cachedLook.look;
  }
}

// A worker with this script; if the browser refuses workers, runs it in the page's own thread.
function portOf(script) {
  try {
    const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    const worker = new Worker(url);
    URL.revokeObjectURL(url);
    return worker;
  } catch {
    const { port1, port2 } = new MessageChannel();
    new Function("port", `${script.replace(/serve\(globalThis\);\s*$/, "")}; serve(port);`)(port2);
    return port1;
  }
}
