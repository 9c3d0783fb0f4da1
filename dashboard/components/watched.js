// The figures and the panel of a training that was watched, not trained here; `run` as folded by fold.js.

// measures: [{slug, title, axis, decimals}].
export function watchedFigures(measures) {
  return measures.map((measure) => ({
    name: measure.slug, small: true, needs: ["measured"], empty: "Appears with the first measurement.",
    draw: ([item], look) => measureFigure(item, measure, look),
  }));
}

function measureFigure({ run, colour }, { slug, title, axis, decimals }, look) {
  const events = byEpoch(run.measured).map(([, { event }]) => event);
  const known = events.filter(({ values }) => slug in values).length;
  const points = known ? events : []; // a gap where it was not measured
  const newest = points.at(-1);
  const line = (name, key, more) => ({
    x: points.map(({ step }) => step), y: points.map(({ values }) => values[key] ?? null), name, mode: "lines",
    hovertemplate: `%{y:.${decimals}f}`, ...more,
  });
  const [low, high] = [`${slug}_low`, `${slug}_high`];
  const banded = points.some(({ values }) => low in values);
  const edge = { line: { width: 0, color: colour } };
  const band = [line("low (95 %)", low, edge), line("high (95 %)", high, { ...edge, fill: "tonexty", fillcolor: faded(colour, 0.22) })];
  const curve = line(title, slug, { line: { color: colour, width: 2 }, ...(known < 3 ? { mode: "lines+markers" } : {}) });
  const traces = newest ? [...(banded ? band : []), curve] : [];
  const reason = events.at(-1)?.missing[slug === "directions" ? "isoscore_unbiased" : slug]; // which it is computed from
  const cloud = newest ? `n = ${count(newest.n)}, d = ${count(newest.d)}${banded ? " · band: 95 % interval" : ""}` : "";
  const caption = newest && !(slug in newest.values) ? `step ${count(newest.step)}: ${reason ?? "not measured"}` : cloud;
  const result = figure(traces, look, { x: "optimiser step", y: axis, integers: true, caption });
  const { layout } = result;
  Object.assign(layout, { height: 160, showlegend: false, margin: { l: 44, r: 10, t: 18, b: 34 }, shapes: [], annotations: [] });
  layout.xaxis.rangemode = "tozero";
  layout.xaxis.nticks = 4;
  const warmup = Math.min(run.started?.warmup ?? 0, events.at(-1)?.step ?? 0);
  const upright = { yref: "paper", y0: 0, y1: 1 };
  if (warmup) layout.shapes.push({ ...upright, type: "rect", x0: 0, x1: warmup, fillcolor: faded(look.text, 0.09), line: { width: 0 }, layer: "below" });
  if (run.collapsed) {
    const x = run.collapsed.step;
    layout.shapes.push({ ...upright, type: "line", x0: x, x1: x, line: { color: look.danger, width: 1.5, dash: "dash" } });
    layout.annotations.push({ x, y: 1, yref: "paper", yanchor: "bottom", text: "collapse", showarrow: false, font: { size: 11, color: look.danger } });
  }
  return { ...result, empty: reason && `Not measured: ${reason}` };
}

const WATCHED_STATES = { running: "training", finished: "ended", lost: "no news" };

// The decision about the training, and its settings.
export class WatchedPanel {
  constructor() {
    const top = ["swatch", "title", "status", "phase"].map((name) => (this[name] = make("span", `ivz-${name}`)));
    this.phase.setAttribute("role", "status");
    this.facts = make("dl", "ivz-facts");
    this.element = make("section", "ivz-run", { "aria-label": "Watched training" }, make("div", "ivz-top", top), this.facts);
  }

  update(item, { run, meta, error, replaying }) {
    const { started, collapsed } = run;
    const newest = byEpoch(run.measured).at(-1)?.[1].event;
    this.swatch.style.background = item.colour;
    this.title.textContent = item.label;
    setIfChanged(this.status, replaying ? "replay" : collapsed ? "collapsed" : WATCHED_STATES[meta?.status] ?? "");
    this.status.dataset.status = collapsed ? "failed" : blind(run, newest) ? "lost" : meta?.status;
    setIfChanged(this.phase, error ?? verdict(run, newest));
    this.phase.classList.toggle("ivz-error", Boolean(error ?? collapsed) || blind(run, newest));
    showFacts(this.facts, !started ? [] : [
      ["step", newest ? count(newest.step) : "–"],
      ["elapsed", duration((meta.ended ?? meta.now) - meta.started)],
      ["vectors", newest ? `${count(newest.n)} × ${count(newest.d)}` : "–"],
      ["pooling", started.pooling],
      ["warm-up", `${count(started.warmup)} steps`],
      ...started.kinds.map((kind) => (kind === "alike" ? ["alike above", `cosine ${started.alike}`] : ["few below", `${started.few} directions`])),
    ], "ivz-fact");
  }
}

// Whether no batch since the measures before had two usable vectors.
function blind({ started }, newest) {
  return Boolean(started && newest?.unjudged >= started.measure_every);
}

function verdict(run, newest) {
  const { started, collapsed } = run;
  if (!started || !newest) return "";
  const rate = `false-alarm rate over the training at most ${started.false_alarm_rate}`;
  if (collapsed) return `Collapse at step ${count(collapsed.step)}: ${collapsed.sentence}; ${rate}`;
  if (blind(run, newest)) return `Not judged since step ${count(newest.step - newest.unjudged)}: fewer than two usable vectors per batch`;
  if (newest.step <= started.warmup) return `Warm-up: not judged before step ${count(started.warmup + 1)}`;
  return `No collapse found up to step ${count(newest.step)}; ${rate}`;
}
