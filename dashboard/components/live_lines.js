// The live view of one or more runs: progress on top, plotly figures below. A figure is redrawn only when its
// data change.

const FIGURES = [
  { name: "loss", needs: ["steps", "evaluated"], draw: lossFigure, empty: "The first optimiser step has not been reported yet." },
  { name: "metric", needs: ["evaluated", "life"], draw: metricFigure, empty: "Appears with the first evaluation." },
  { name: "isotropy", needs: ["measured"], draw: isotropyFigure, choices: (data) => isotropyChoices(data.metrics, data.measure), empty: "Appears with the first measurement, before the first step." },
  { name: "spectrum", needs: ["measured"], draw: spectrumFigure, empty: "Appears with the first measurement, before the first step." },
];
const PHASES = {
  loading: "loading model and data", tokenising: "tokenising", measuring: "measuring isotropy",
  training: "training", evaluating: "evaluating", saving: "saving a checkpoint",
};

export default (component) => mount(component, (element) => new LiveView(element.querySelector(".ivz-live")));

class LiveView {
  constructor(root) {
    this.root = root;
    this.items = []; // {id, label, short, colour, epochs, run, feed} of each run shown
    this.unsubscribers = [];
    this.progress = root.querySelector(".ivz-progress");
    this.replay = new ReplayBar(root.querySelector(".ivz-replay"));
    this.figures = new Map();
    this.pending = new Set();
    this.dragging = false; // redrawing would interrupt the drag
  }

  show(data) {
    this.data = data;
    this.look = lookOf(this.root);
    this.root.setAttribute("aria-busy", "true");
    const ids = data.runs.map((run) => run.id).join(",");
    if (ids !== this.ids) this.reset(ids, data.runs);
    data.runs.forEach((run, i) => Object.assign(this.items[i], run));
    const access = { events: data.events };
    const previous = this.unsubscribers;
    this.unsubscribers = data.runs.map((run) => subscribe(run.id, access, (feed, changed) => this.updateItem(run.id, feed, changed)));
    previous.forEach((unsubscribe) => unsubscribe());
    loadPlotly(data.plotly).then(() => this.redraw(new Set(FIGURES.map((f) => f.name))), () => this.showMessage("The chart script could not be loaded. Reload the page."));
  }

  reset(ids, runs) {
    this.ids = ids;
    this.replay.reset(this.data.replay);
    this.items = runs.map((run) => ({ ...run, run: emptyRun(), feed: null }));
    this.progress.replaceChildren(...this.items.map((item) => (item.panel = new ProgressPanel(runs.length > 1)).element));
    if (!this.figures.size) {
      const grid = this.root.querySelector(".ivz-grid");
      for (const figure of FIGURES) {
        const panel = new FigurePanel(figure, this.data.help[figure.name], this);
        this.figures.set(figure.name, panel);
        grid.append(panel.element);
      }
    } else for (const panel of this.figures.values()) panel.suggest(this.data);
  }

  updateItem(id, feed, changed) {
    const item = this.items.find((candidate) => candidate.id === id);
    if (!item) return;
    item.run = feed.run;
    item.feed = feed;
    item.panel.update(item, feed);
    this.replay.offer(this.items.map((shown) => shown.feed));
    this.root.setAttribute("aria-busy", "false");
    this.redraw(new Set(FIGURES.filter((f) => f.needs.some((need) => changed.has(need))).map((f) => f.name)));
  }

  redraw(names) {
    for (const name of names) this.pending.add(name);
    if (!globalThis.Plotly || this.dragging) return;
    for (const name of this.pending) this.figures.get(name).draw(this.items, this.look, `${this.ids}/${name}`);
    this.pending.clear();
  }

  setDragging(on) {
    this.dragging = on;
    if (!on) this.redraw(new Set());
  }

  showMessage(text) {
    for (const panel of this.figures.values()) panel.showMessage(text);
  }

  close() {
    this.replay.close();
    this.unsubscribers.forEach((unsubscribe) => unsubscribe());
    for (const panel of this.figures.values()) panel.close();
  }
}

// Time spent per activity up to the newest measurement; empty for old runs, which did not record it.
function timings(run) {
  const timing = byEpoch(run.measured).at(-1)?.[1].event.timing ?? {};
  return [["training", "train"], ["evaluating", "evaluate"], ["measuring", "measure"]]
    .filter(([, name]) => timing[`${name}_seconds`] !== undefined)
    .map(([label, name]) => [label, duration(timing[`${name}_seconds`])]);
}

// Status, phase, progress bar and numbers of one run.
class ProgressPanel {
  constructor(compact) {
    const top = ["swatch", "title", "status", "phase", "percent"].map((name) => (this[name] = make("span", `ivz-${name}`)));
    this.phase.setAttribute("role", "status");
    this.fill = make("div", "ivz-fill");
    this.bar = make("div", "ivz-bar", { role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100 }, this.fill);
    this.facts = make("dl", "ivz-facts");
    this.element = make("section", compact ? "ivz-run ivz-compact" : "ivz-run", { "aria-label": "Progress" }, make("div", "ivz-top", top), this.bar, this.facts);
    this.stoppingSince = null;
  }

  update(item, feed) {
    const { run } = item;
    const meta = feed.meta ?? { status: "queued", position: null, now: 0 };
    const { started } = run;
    const step = lastStep(run);
    const total = started?.total_steps ?? 0;
    const done = Math.max(step?.step ?? 0, started?.first_step ?? 0);
    const share = meta.status === "finished" ? 1 : total ? Math.min(1, done / total) : 0;
    const percent = Math.floor(100 * share);
    this.swatch.style.background = item.colour;
    this.title.textContent = item.label;
    this.title.title = item.label;
    setIfChanged(this.status, feed.replaying ? "replay" : meta.status);
    this.status.dataset.status = meta.status;
    setIfChanged(this.phase, feed.error ?? this.activity(run, meta));
    this.phase.classList.toggle("ivz-error", Boolean(feed.error));
    this.percent.textContent = `${percent} %`;
    this.fill.style.width = `${100 * share}%`;
    this.fill.style.background = item.colour;
    this.bar.setAttribute("aria-valuenow", String(percent));
    this.bar.setAttribute("aria-label", `${item.label}: ${meta.status}, ${percent} percent`);
    const running = meta.status === "running";
    const elapsed = meta.started ? (meta.ended ?? meta.now) - meta.started : null;
    const facts = [
      ["step", total ? `${count(done)} / ${count(total)}` : "–"],
      ["epoch", step ? `${step.epoch.toFixed(1)} / ${item.epochs}` : `0 / ${item.epochs}`],
      ["samples/s", step ? count(step.samples_per_second) : "–"],
      ["time left", running && step ? duration(step.eta_seconds) : "–"],
      ["elapsed", duration(elapsed)],
      ...timings(run),
      ["loss", step ? number(step.losses.total) : "–"],
      ["learning rate", step ? number(step.learning_rate, 2) : "–"],
      ["device", started ? `${started.device}, ${started.precision === "no" ? "float32" : started.precision}` : "–"],
    ];
    const factsText = JSON.stringify(facts);
    if (factsText === this.factsText) return;
    this.factsText = factsText;
    showFacts(this.facts, facts, "ivz-fact");
  }

  activity(run, meta) {
    if (meta.status === "queued") return meta.position === 1 ? "next in the queue" : meta.position ? `number ${meta.position} in the queue` : "waiting";
    if (meta.status !== "running") return "";
    if (meta.stopping) {
      this.stoppingSince ??= meta.now;
      return `stopping … ${Math.round(meta.now - this.stoppingSince)} s`;
    }
    this.stoppingSince = null;
    if (!run.phase) return "starting";
    const name = PHASES[run.phase.phase] ?? run.phase.phase;
    return run.phase.detail ? `${name}: ${run.phase.detail}` : name;
  }
}

// One figure with its title, caption and explanation. Plotly.react with a constant uirevision keeps zoom and hidden lines.
class FigurePanel {
  constructor(spec, help, view) {
    this.spec = spec;
    this.title = help.title;
    this.plot = make("div", "ivz-plot", { role: "figure" });
    this.note = make("div", "ivz-empty", spec.empty);
    this.caption = make("figcaption", "ivz-caption");
    const frame = make("div", "ivz-frame", this.plot, this.note);
    this.choices = spec.choices?.(view.data) ?? [];
    [this.choice] = this.choices;
    if (this.choices.length > 1) this.select = this.makeSelect(view);
    const heading = make("div", "ivz-heading-row", make("h2", "ivz-heading", help.title), this.select);
    this.element = make("figure", "ivz-figure", { "data-figure": spec.name }, heading, frame, this.caption, explanation(help));
    this.drawn = false;
    const hold = () => view.setDragging(true);
    this.release = () => view.dragging && view.setDragging(false);
    this.plot.addEventListener("pointerdown", hold);
    globalThis.addEventListener("pointerup", this.release);
    this.observer = new ResizeObserver(() => this.drawn && globalThis.Plotly.Plots.resize(this.plot));
    this.observer.observe(frame);
  }

  // The menu of metrics.
  makeSelect(view) {
    const options = Object.fromEntries(this.choices.map(({ value, label }) => [value, label]));
    const pick = () => {
      this.userPicked = true;
      this.choice = this.choices.find(({ value }) => value === this.select.value);
      view.redraw(new Set([this.spec.name]));
    };
    return menu(`Metric shown in ${this.title}`, options, pick, "ivz-choice");
  }

  // Selects the default metric of the new runs, unless the user has picked one.
  suggest(data) {
    if (!this.select || this.userPicked) return;
    const [first] = this.spec.choices(data);
    this.choice = this.choices.find(({ value }) => value === first.value);
    this.select.value = this.choice.value;
  }

  draw(items, look, revision) {
    const { traces, layout, caption, empty: reason } = this.spec.draw(items, look, this.choice);
    if (this.choice) revision += `/${this.choice.value}`;
    const empty = traces.length === 0;
    this.note.hidden = !empty;
    this.note.textContent = reason ?? this.spec.empty;
    this.plot.style.visibility = empty ? "hidden" : "visible";
    this.caption.textContent = caption;
    layout.uirevision = revision;
    layout.legend.uirevision = revision;
    this.traces = traces;
    this.plot.setAttribute("aria-label", describe(this.title, layout, traces));
    this.runId = items[0].id;
    this.about = [items.length === 1 ? items[0].label : `${items.length} runs`, caption].filter(Boolean).join(" · ");
    this.options ??= this.makeOptions(); // created once: plotly redraws everything when a function in it changes
    globalThis.Plotly.react(this.plot, traces, layout, this.options);
    this.drawn = true;
  }

  makeOptions() {
    const filename = () => `isoviz-${this.runId}-${this.spec.name}`;
    const save = (format) => {
      if (format === "csv") return download(new Blob([csvOf(this.traces)], { type: "text/csv" }), `${filename()}.csv`);
      const { data, layout } = this.plot;
      return savePicture(globalThis.Plotly, { data, layout }, { format, name: filename(), width: 900, height: 540, about: this.about, look: lookOf(this.element) });
    };
    return {
      displaylogo: false, displayModeBar: "hover", doubleClick: "reset",
      modeBarButtons: [
        fileButtons(save, { png: "Picture (PNG)", svg: "Picture (SVG)", csv: "Data (CSV)" }),
        ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"],
      ],
    };
  }

  showMessage(text) {
    this.note.hidden = false;
    this.note.textContent = text;
  }

  close() {
    this.observer.disconnect();
    globalThis.removeEventListener("pointerup", this.release);
    if (this.drawn) globalThis.Plotly.purge(this.plot);
  }
}

function setIfChanged(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Alternative text: the figure in one sentence.
function describe(title, layout, traces) {
  const ends = traces.filter((t) => t.hoverinfo !== "skip" && t.visible !== "legendonly").map((t) => {
    const last = t.y.length - 1;
    return `${t.name} ${number(t.y[last])} at ${t.x[last]}`;
  });
  return `${title}: ${layout.yaxis.title.text} against ${layout.xaxis.title.text}. Newest: ${ends.join("; ") || "nothing yet"}.`;
}

// A run's name is not run as a formula, see `dashboard.shared.downloads`.
function csvOf(traces) {
  const inert = (value) => (typeof value === "string" ? value.replace(/(^|[;\t\r\n])(?=[\p{C}\p{M}\p{Z}\u115f\u1160\u2800\u3164\uffa0]*[=+\-@＝＋－＠﹢])/gu, "$1'") : String(value ?? ""));
  const cell = (value) => (/[",\r\n]/.test(inert(value)) ? `"${inert(value).replaceAll('"', '""')}"` : inert(value));
  const rows = traces.filter((t) => t.hoverinfo !== "skip").flatMap((t) => t.x.map((x, i) => [t.name, x, t.y[i] ?? ""]));
  return [["series", "x", "y"], ...rows].map((row) => row.map(cell).join(",")).join("\n");
}
