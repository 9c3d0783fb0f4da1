// The four live figures as plotly traces and layout. Pure.
// items: [{id, short, colour, epochs, run}], with `run` as folded by fold.js. A null is a gap in a line.

const RAW_POINTS = 4000; // points of a raw loss line; longer lines are thinned, and the caption says so

const TERM_NAMES = { total: "total loss", task: "task loss" };
const TERM_DASHES = ["dot", "dashdot", "longdash"];

export function lossFigure(items, look) {
  const traces = [];
  const notes = new Set();
  for (const item of items) {
    const steps = item.run.steps;
    if (!steps.length) continue;
    const x = steps.map((step) => step.step);
    const window = Math.max(1, Math.round(steps.length / 25));
    if (window > 1) notes.add(items.length > 1 ? "bold: running means" : `bold: running mean of about ${window} reported steps`);
    const terms = items.length > 1 ? ["task"] : termsOf(steps);
    terms.forEach((term, index) => {
      const y = steps.map((step) => step.losses[term] ?? null);
      const name = items.length > 1 ? item.short : TERM_NAMES[term] ?? `${term} term`;
      const dash = items.length > 1 ? item.dash : term === "task" && index > 0 ? "dash" : index > 0 ? TERM_DASHES[(index - 2) % 3] : "solid";
      const group = `${item.id}/${term}`;
      if (window > 1 && (term === "total" || terms.length === 1)) {
        const stride = Math.ceil(x.length / RAW_POINTS);
        if (stride > 1) notes.add(`faint: every ${stride}th reported step`);
        traces.push({
          x: thinned(x, stride), y: thinned(y, stride), mode: "lines", legendgroup: group, showlegend: false, hoverinfo: "skip",
          line: { color: faded(item.colour, 0.28), width: 1 }, name,
        });
      }
      traces.push({
        x, y: smoothed(y, window), mode: steps.length < 3 ? "lines+markers" : "lines", name, legendgroup: group,
        line: { color: item.colour, width: index === 0 ? 2.2 : 1.6, dash },
        hovertemplate: "%{y:.4g}",
      });
    });
    if (items.length === 1 && item.run.evaluated.size) {
      const evaluated = byEpoch(item.run.evaluated).map(([, evaluation]) => evaluation);
      traces.push({
        x: evaluated.map((evaluation) => evaluation.step), y: evaluated.map((evaluation) => evaluation.loss), mode: "markers", name: "validation loss",
        marker: { symbol: "diamond", size: 9, color: look.background, line: { color: item.colour, width: 2 } },
        hovertemplate: "%{y:.4g}",
      });
    }
  }
  return figure(traces, look, { x: "optimiser step", y: items.length > 1 ? "task loss" : "loss", integers: false, caption: [...notes].join(" · ") });
}

export function metricFigure(items, look) {
  const traces = [];
  let title = "metric";
  let epochs = 1;
  for (const item of items) {
    epochs = Math.max(epochs, item.epochs);
    const points = byEpoch(item.run.evaluated);
    if (!points.length) continue;
    const primary = points[points.length - 1][1].primary;
    title = readable(primary);
    const x = points.map(([epoch]) => epoch);
    const names = items.length > 1 ? [primary] : [primary, ...Object.keys(points[0][1].metrics).filter((name) => name !== primary)];
    names.forEach((name, index) => {
      traces.push({
        x, y: points.map(([, evaluation]) => evaluation.metrics[name] ?? null), mode: "lines+markers",
        name: items.length > 1 ? item.short : readable(name), visible: index === 0 ? true : "legendonly",
        line: { color: item.colour, width: index === 0 ? 2.2 : 1.5, dash: index === 0 ? item.dash ?? "solid" : "dot" },
        marker: { size: 8 }, hovertemplate: "%{y:.4f}",
      });
    });
  }
  const baselines = items.map((item) => item.run.started?.baselines).find((values) => values && Object.keys(values).length) ?? {};
  Object.entries(baselines).forEach(([name, value], index) => {
    if (value === null || !traces.length) return;
    traces.push({
      x: [0, epochs], y: [value, value], mode: "lines", name: readable(name),
      line: { color: look.faint, width: 1.4, dash: ["dash", "dot", "dashdot", "longdash"][index % 4] }, hovertemplate: "%{y:.4f}",
    });
  });
  return figure(traces, look, { x: "epoch", y: title, integers: true, range: [0, epochs], caption: "validation split" });
}

// One metric at a time, because metrics measure different clouds, which move apart. The last choice shares one axis between all scores
// that are 1 for an isotropic cloud.
// metrics: [{slug, title, cloud, cloudTitle, axis, decimals, score}] from the catalogue; first: slug of the default.
export function isotropyChoices(metrics, first) {
  const ordered = [...metrics.filter((m) => m.slug === first), ...metrics.filter((m) => m.slug !== first)];
  const single = ordered.map((m) => ({ value: m.slug, label: `${m.title}: ${m.cloudTitle}`, metrics: [m] }));
  return [...single, { value: "scores", label: "All scores (1 = isotropic)", metrics: metrics.filter((m) => m.score) }];
}

const METRIC_STYLES = [["solid", 2.2, "circle"], ["dot", 1.6, "square-open"], ["dash", 1.6, "diamond-open"], ["longdash", 1.6, "cross"], ["dashdot", 1.6, "x"]];

export function isotropyFigure(items, look, choice) {
  const traces = [];
  const captions = new Map();
  let epochs = 1;
  const several = items.length > 1;
  // several runs: only the first score of each cloud, to keep the figure readable
  const metrics = several ? choice.metrics.filter((m, i, all) => all.findIndex((candidate) => candidate.cloud === m.cloud) === i) : choice.metrics;
  for (const item of items) {
    epochs = Math.max(epochs, item.epochs);
    const points = byEpoch(item.run.measured);
    if (!points.length) continue;
    const x = points.map(([epoch]) => epoch);
    const newest = points[points.length - 1][1].event.clouds;
    metrics.forEach((metric, index) => {
      const [dash, width, symbol] = METRIC_STYLES[index % METRIC_STYLES.length];
      const name = `${metric.title} (${metric.cloudTitle})`;
      traces.push({
        x, y: points.map(([, m]) => m.event.clouds[metric.cloud]?.[metric.slug] ?? null), mode: "lines+markers",
        name: several ? `${item.short}: ${name}` : name, legendgroup: several ? item.id : name,
        showlegend: !several || index === 0,
        line: { color: item.colour, width, dash: several && index === 0 ? item.dash : dash }, marker: { size: 8, symbol }, hovertemplate: `%{y:.${metric.decimals + 1}f}`,
      });
      const cloud = newest[metric.cloud];
      if (cloud) captions.set(metric.cloud, sizeOf(metric.cloudTitle, cloud));
    });
  }
  const caption = [several && metrics.length > 1 ? `dotted: ${metrics[1].title}` : "", ...captions.values()];
  const [first] = choice.metrics;
  const result = figure(traces, look, {
    x: "epoch", y: first?.score ? "isotropy (1 = isotropic)" : first?.title ?? "", integers: true, range: [0, epochs],
    caption: caption.filter(Boolean).join(" · "),
  });
  if (first?.axis === "log") result.layout.yaxis.type = "log";
  return result;
}

function sizeOf(title, { split, n, d }) {
  return [title, split, n ? `n = ${count(n)}` : "", d ? `d = ${d}` : ""].filter(Boolean).join(", ");
}

export function spectrumFigure(items, look) {
  const traces = [];
  let caption = "";
  for (const item of items) {
    const points = byEpoch(item.run.measured).filter(([, m]) => m.event.clouds.head?.ev?.length);
    const visible = items.length > 1 ? points.slice(-1) : points;
    visible.forEach(([epoch, { event }], index) => {
      const ev = event.clouds.head.ev;
      const newest = index === visible.length - 1;
      const age = visible.length - 1 - index;
      traces.push({
        x: ev.map((_, i) => i + 1), y: ev, mode: newest && ev.length <= 30 ? "lines+markers" : "lines",
        name: items.length > 1 ? `${item.short}, epoch ${epoch}` : epoch === 0 ? "epoch 0 (before training)" : `epoch ${epoch}`,
        showlegend: newest || index === 0,
        line: { color: newest ? item.colour : faded(item.colour, Math.max(0.12, 0.45 - 0.07 * age)), width: newest ? 2.4 : 1.4, dash: index === 0 && !newest ? "dot" : item.dash ?? "solid" },
        marker: { size: 5 }, hovertemplate: "%{y:.3f}",
      });
      const { n, d, split } = event.clouds.head;
      caption = `what the classifier reads, ${split}, n = ${count(n)}, d = ${d}${items.length === 1 && visible.length > 1 ? " · faint: earlier epochs" : ""}`;
    });
  }
  return figure(traces, look, { x: "k, principal directions", y: "share of variance in the first k", integers: true, caption });
}

function figure(traces, look, { x, y, integers, range, caption }) {
  const axis = {
    gridcolor: faded(look.text, 0.09), zeroline: false, linecolor: faded(look.text, 0.25), tickfont: { size: 11 },
    title: { font: { size: 12 }, standoff: 8 }, automargin: true,
  };
  const pad = range ? 0.04 * (range[1] - range[0]) : 0;
  return {
    traces,
    caption,
    layout: {
      autosize: true, height: 300, margin: { l: 52, r: 14, t: 8, b: 44 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: look.font, color: look.text, size: 12 },
      hovermode: "x unified", dragmode: "zoom",
      hoverlabel: { bgcolor: look.panel, bordercolor: look.border, font: { color: look.text, size: 12 } },
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", font: { size: 11 }, bgcolor: "rgba(0,0,0,0)" },
      showlegend: true,
      modebar: { bgcolor: "rgba(0,0,0,0)", color: faded(look.text, 0.45), activecolor: look.accent },
      xaxis: { ...axis, title: { ...axis.title, text: x }, showspikes: false, ...(range ? { range: [range[0] - pad, range[1] + pad] } : {}),
        ...(integers ? { tickformat: "d", ...(range && range[1] <= 12 ? { dtick: 1 } : {}) } : {}) },
      yaxis: { ...axis, title: { ...axis.title, text: y } },
    },
  };
}

// The total, the task loss, then the penalties. Without penalties, the task loss equals the total and is drawn once.
function termsOf(steps) {
  const names = new Set();
  for (const step of steps) for (const name of Object.keys(step.losses)) names.add(name);
  const penalties = [...names].filter((name) => name !== "total" && name !== "task").sort();
  return (penalties.length ? ["total", "task", ...penalties] : ["total"]).filter((name) => names.has(name));
}

// Bias-corrected exponential moving average; gaps stay gaps.
export function smoothed(values, window) {
  if (window <= 1) return values;
  const decay = 1 - 1 / window;
  let sum = 0;
  let weight = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = decay * sum + value;
    weight = decay * weight + 1;
    return sum / weight;
  });
}

function thinned(values, stride) {
  return stride <= 1 ? values : values.filter((_, i) => i % stride === 0);
}

export function readable(name) {
  return name.replaceAll("_", " ");
}
