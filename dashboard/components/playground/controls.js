// The controls: native ranges and selects, one row each. Shows only the controls that affect the current cloud.

const SCALES = {
  // maps a range's position in 0 … 1 to its value (`to`) and back (`from`)
  linear: (min, max, step) => ({ to: (t) => round(min + t * (max - min), step), from: (value) => (value - min) / (max - min) }),
  log: (min, max, step) => ({ to: (t) => (step ? round(min * (max / min) ** t, step) : digits(min * (max / min) ** t)), from: (value) => Math.log(Math.max(value, min) / min) / Math.log(max / min) }),
  // 0, then powers of ten
  ridge: (min, max) => ({ to: (t) => (t < 0.02 ? 0 : digits(min * (max / min) ** ((t - 0.02) / 0.98))), from: (value) => (value > 0 ? 0.02 + (0.98 * Math.log(value / min)) / Math.log(max / min) : 0) }),
  stops: (...stops) => ({ to: (t) => stops[Math.round(t * (stops.length - 1))], from: (value) => nearest(stops, value) / (stops.length - 1), steps: stops.length - 1 }),
};
const round = (value, step) => Number((Math.round(value / step) * step).toFixed(6));
const digits = (value) => Number(value.toPrecision(2));
const nearest = (stops, value) => stops.reduce((best, stop, index) => (Math.abs(stop - value) < Math.abs(stops[best] - value) ? index : best), 0);

const PERCENT = (value) => `${number(100 * value, 2)} %`;
const CONTROLS = [
  { name: "d", label: "Dimensions", scaleFor: () => SCALES.log(2, 1024, 1), format: count },
  { name: "n", label: "Points", scaleFor: () => SCALES.log(10, 5000, 1), format: count },
  { name: "spectrum", label: "Spectrum", choices: { flat: "Flat", power: "Power law", exponential: "Exponential", step: "Step" } },
  { name: "decay", label: "Decay", scaleFor: ({ spectrum }) => SCALES.linear(0, spectrum === "power" ? 3 : 10, 0.05), when: ({ spectrum }) => spectrum === "power" || spectrum === "exponential" },
  { name: "rank", label: "Wide dimensions", scaleFor: ({ d }) => SCALES.linear(1, d, 1), when: ({ spectrum }) => spectrum === "step", format: count },
  { name: "floor", label: "Variance of the rest", scaleFor: () => SCALES.linear(0, 1, 0.01), when: ({ spectrum }) => spectrum === "step", format: PERCENT },
  { name: "shift", label: "Mean shift", scaleFor: () => SCALES.linear(0, 5, 0.05) },
  { name: "rogueScale", label: "Rogue dimension", scaleFor: () => SCALES.log(1, 50), format: (value) => (value === 1 ? "none" : `× ${number(value, 2)}`) },
  { name: "rogue", label: "Rogue index", scaleFor: ({ d }) => SCALES.linear(1, d, 1), when: ({ rogueScale }) => rogueScale !== 1, format: count },
  { name: "block", label: "Correlated blocks", scaleFor: () => SCALES.stops(1, 2, 4, 8, 16, 32, 64), format: (value) => (value === 1 ? "none" : `of ${value}`) },
  { name: "rho", label: "Correlation ρ", scaleFor: () => SCALES.linear(0, 0.99, 0.01), when: ({ block }) => block > 1 },
  { name: "rotation", label: "Rotation", scaleFor: () => SCALES.linear(0, 1, 0.01), format: PERCENT },
  { name: "tails", label: "Tails", scaleFor: () => SCALES.stops(0, 30, 10, 6, 5, 4, 3), format: (value) => (value ? `Student t, ${value} df` : "Gaussian") },
  { name: "clusters", label: "Clusters", scaleFor: ({ d }) => SCALES.linear(1, Math.min(10, d + 1), 1), format: count },
  { name: "separation", label: "Separation", scaleFor: () => SCALES.linear(0, 12, 0.1), when: ({ clusters }) => clusters > 1 },
  { name: "duplicates", label: "Duplicates", scaleFor: () => SCALES.linear(0, 0.95, 0.01), format: PERCENT },
  { name: "scale", label: "Scale", scaleFor: () => SCALES.log(0.01, 100), format: (value) => `× ${number(value, 2)}` },
  { name: "zeta", label: "ζ of IsoScore*", scaleFor: () => SCALES.linear(0, 1, 0.01) },
];

export class Controls {
  constructor(change) {
    this.rows = CONTROLS.map((control) => ({ ...control, ...(control.choices ? choiceRow(control.label, control.choices) : rangeRow(control.label)) }));
    for (const row of this.rows) {
      row.field.dataset.control = row.name;
      row.field.oninput = () => change({ [row.name]: row.choices ? row.field.value : row.scale.to(Number(row.field.value)) });
    }
    this.element = make("section", "ivp-controls", { "aria-label": "Controls" }, this.rows.map(({ element }) => element));
  }

  show(state, hidden) {
    for (const row of this.rows) {
      row.element.hidden = hidden.has(row.name) || (row.when && !row.when(state));
      if (row.element.hidden) continue;
      const value = state[row.name];
      if (row.choices) row.field.value = value;
      else showRange(row, row.scaleFor(state), value, (row.format ?? ((shown) => number(shown, 3)))(value));
    }
  }
}

export function rangeRow(label) {
  const field = make("input", "", { type: "range" });
  const readout = make("span", "ivp-value", { "aria-hidden": true }); // not an output element, which the label would be associated with
  return { element: make("label", "ivp-row", make("span", "ivp-label", label), readout, field), field, readout };
}

function choiceRow(label, choices) {
  const field = menu(label, choices);
  return { element: make("label", "ivp-row ivp-choice", make("span", "ivp-label", label), field), field };
}

export function showRange(row, scale, value, text) {
  row.scale = scale;
  Object.assign(row.field, { min: 0, max: 1, step: scale.steps ? 1 / scale.steps : 0.0025 });
  // while dragging, the slider leads; a value between two positions must not be rounded
  const position = Math.min(1, Math.max(0, scale.from(value)));
  if (scale.to(Number(row.field.value)) !== value) row.field.value = position;
  row.field.style.setProperty("--at", `${100 * position}%`);
  row.field.setAttribute("aria-valuetext", text);
  row.readout.textContent = text;
}

// ---- presets

const DEFAULT_SHAPE = Object.fromEntries(["spectrum", "decay", "rank", "floor", "shift", "rogue", "rogueScale", "block", "rho", "rotation", "tails", "clusters", "separation", "duplicates", "scale"].map((name) => [name, DEFAULTS[name]]));
const PRESETS = {
  Isotropic: {},
  "Narrow cone": { shift: 2 },
  "Power law": { spectrum: "power", decay: 1 },
  "Low rank": { spectrum: "step", rank: 8 },
  "Rogue dimension": { rogueScale: 10 },
  "Correlated blocks": { block: 8, rho: 0.9 },
  Clusters: { clusters: 4, separation: 8 },
  "Heavy tails": { tails: 3 },
};

export function presets(change) {
  const buttons = Object.entries(PRESETS).map(([name, part]) => button(name, () => change({ ...DEFAULT_SHAPE, ...part, transforms: [] }, { animate: true })));
  return { element: make("div", "ivp-presets", { role: "group", "aria-label": "Presets" }, buttons) };
}

// ---- toolbar

const VIEWS = { dimensions: "Dimensions 1–3", principal: "Principal directions", plane: "Principal plane (2-D)" };

export function toolbar(playground, change) {
  const views = menu("Axes of the view", VIEWS, () => change({ view: views.value }), "ivp-view");
  views.value = playground.state().view;
  const status = make("span", "ivp-status", { role: "status" });
  const redraw = button("New sample", () => change({ seed: (playground.state().seed + 1) % 4294967296 }));
  const link = button("Copy link", () => copied(`${location.href.split("#")[0]}#${toLink(playground.state())}`, status));
  const reset = button("Reset", () => change({ ...playground.start, hidden: playground.state().hidden }));
  playground.root.addEventListener("playground:change", ({ detail }) => (views.value = detail.view));
  return { element: make("div", "ivp-toolbar", views, redraw, link, reset, status) };
}

// ---- transforms

export class Transforms {
  constructor(words, change) {
    [this.words, this.change] = [words, change];
    this.steps = make("ol", "ivp-steps");
    const titles = Object.fromEntries(Object.keys(TRANSFORMS).map((slug) => [slug, words[slug].title]));
    const add = menu("Add a transform", { "": "Add a transform …", ...titles }, () => {
      const { transforms, d } = this.state;
      if (add.value) change({ transforms: [...transforms, { slug: add.value, ...(add.value === "truncation" && { keep: d >> 1 }) }] });
      add.value = "";
    });
    this.add = add;
    this.element = make("section", "ivp-transforms", { "aria-label": "Transforms" }, this.steps, add);
  }

  show(state) {
    this.state = state;
    this.add.hidden = state.transforms.length >= MAX_TRANSFORMS;
    const slugs = state.transforms.map(({ slug }) => slug).join(" ");
    if (slugs !== this.slugs) this.build(slugs);
    for (const row of this.rows) {
      const value = state.transforms[row.index][row.name];
      const most = row.step === 1 ? Math.max(3, Math.min(row.max, state.d)) : row.max; // counts dimensions
      showRange(row, SCALES[row.scaleName](row.min, most, row.step), value, row.step === 1 ? count(Math.min(value, state.d)) : number(value, 3));
    }
  }

  build(slugs) {
    this.slugs = slugs;
    this.rows = [];
    this.steps.replaceChildren(...this.state.transforms.map(({ slug }, index) => {
      const { title, summary, sliders } = this.words[slug];
      const item = make("li", "ivp-step", make("span", "ivp-step-name", { title: summary }, title));
      for (const slider of sliders) {
        const row = { ...slider, ...rangeRow(slider.label), index, scaleName: slider.scale };
        row.field.oninput = () => this.changeStep(index, { [slider.name]: row.scale.to(Number(row.field.value)) });
        row.element.title = slider.help;
        item.append(row.element);
        this.rows.push(row);
      }
      const remove = () => this.change({ transforms: this.state.transforms.filter((_, candidate) => candidate !== index) });
      item.append(button("×", remove, { "aria-label": `Remove ${title}` }));
      return item;
    }));
  }

  changeStep(index, values) {
    this.change({ transforms: this.state.transforms.map((step, candidate) => (candidate === index ? { ...step, ...values } : step)) });
  }
}
