// What each of the four live figures shows, as plotly traces and layout. Pure: from folded runs to data.
// shown: [{id, short, colour, epochs, run}], run as folded by fold.js. A null is a gap in a line.

const RAW_POINTS = 4000; // drawn points of a raw loss line; beyond that every k-th, and the caption says so

const TERM_NAMES = { total: "total loss", task: "task loss" };
const TERM_DASHES = ["dot", "dashdot", "longdash"];

export function lossFigure(shown, look) {
  const traces = [];
  const notes = new Set();
  for (const item of shown) {
    const steps = item.run.steps;
    if (!steps.length) continue;
    const x = steps.map((s) => s.step);
    const window = Math.max(1, Math.round(steps.length / 25));
    if (window > 1) notes.add(shown.length > 1 ? "bold: running means" : `bold: running mean of about ${window} reported steps`);
    const terms = shown.length > 1 ? ["task"] : termsOf(steps);
    terms.forEach((term, place) => {
      const y = steps.map((s) => s.losses[term] ?? null);
      const name = shown.length > 1 ? item.short : TERM_NAMES[term] ?? `${term} term`;
      const dash = shown.length > 1 ? "solid" : term === "task" && place > 0 ? "dash" : place > 0 ? TERM_DASHES[(place - 2) % 3] : "solid";
      const group = `${item.id}/${term}`;
      if (window > 1 && (term === "total" || terms.length === 1)) {
        const stride = Math.ceil(x.length / RAW_POINTS);
        if (stride > 1) notes.add(`faint: every ${stride}th reported step`);
        traces.push({
          x: every(x, stride), y: every(y, stride), mode: "lines", legendgroup: group, showlegend: false, hoverinfo: "skip",
          line: { color: faded(item.colour, 0.28), width: 1 }, name,
        });
      }
      traces.push({
        x, y: smooth(y, window), mode: steps.length < 3 ? "lines+markers" : "lines", name, legendgroup: group,
        line: { color: item.colour, width: place === 0 ? 2.2 : 1.6, dash },
        hovertemplate: "%{y:.4g}",
      });
    });
    if (shown.length === 1 && item.run.evaluated.size) {
      const evaluated = byEpoch(item.run.evaluated).map(([, e]) => e);
      traces.push({
        x: evaluated.map((e) => e.step), y: evaluated.map((e) => e.loss), mode: "markers", name: "validation loss",
        marker: { symbol: "diamond", size: 9, color: look.background, line: { color: item.colour, width: 2 } },
        hovertemplate: "%{y:.4g}",
      });
    }
  }
  return figure(traces, look, { x: "optimiser step", y: shown.length > 1 ? "task loss" : "loss", integers: false, caption: [...notes].join(" · ") });
}

export function metricFigure(shown, look) {
  const traces = [];
  let title = "metric";
  let epochs = 1;
  for (const item of shown) {
    epochs = Math.max(epochs, item.epochs);
    const points = byEpoch(item.run.evaluated);
    if (!points.length) continue;
    const primary = points[points.length - 1][1].primary;
    title = words(primary);
    const x = points.map(([epoch]) => epoch);
    const names = shown.length > 1 ? [primary] : [primary, ...Object.keys(points[0][1].metrics).filter((name) => name !== primary)];
    names.forEach((name, place) => {
      traces.push({
        x, y: points.map(([, e]) => e.metrics[name] ?? null), mode: "lines+markers",
        name: shown.length > 1 ? item.short : words(name), visible: place === 0 ? true : "legendonly",
        line: { color: item.colour, width: place === 0 ? 2.2 : 1.5, dash: place === 0 ? "solid" : "dot" },
        marker: { size: 8 }, hovertemplate: "%{y:.4f}",
      });
    });
  }
  const baselines = shown.map((item) => item.run.started?.baselines).find((found) => found && Object.keys(found).length) ?? {};
  Object.entries(baselines).forEach(([name, value], place) => {
    if (value === null || !traces.length) return;
    traces.push({
      x: [0, epochs], y: [value, value], mode: "lines", name: words(name),
      line: { color: look.faint, width: 1.4, dash: ["dash", "dot", "dashdot", "longdash"][place % 4] }, hovertemplate: "%{y:.4f}",
    });
  });
  return figure(traces, look, { x: "epoch", y: title, integers: true, range: [0, epochs], caption: "validation split" });
}

// One metric at a time, because each is of a cloud of its own and they move apart; the one to begin with comes first. The last choice
// draws all scores that are 1 for an isotropic cloud on one axis.
// metrics: [{slug, title, cloud, cloudTitle, axis, decimals, score}], as the catalogue declares them; first: a slug.
export function isotropyChoices(metrics, first) {
  const ordered = [...metrics.filter((m) => m.slug === first), ...metrics.filter((m) => m.slug !== first)];
  const single = ordered.map((m) => ({ value: m.slug, label: `${m.title}: ${m.cloudTitle}`, metrics: [m] }));
  return [...single, { value: "scores", label: "All scores (1 = isotropic)", metrics: metrics.filter((m) => m.score) }];
}

const METRIC_STYLES = [["solid", 2.2, "circle"], ["dot", 1.6, "square-open"], ["dash", 1.6, "diamond-open"], ["longdash", 1.6, "cross"], ["dashdot", 1.6, "x"]];

export function isotropyFigure(shown, look, choice) {
  const traces = [];
  const captions = new Map();
  let epochs = 1;
  const several = shown.length > 1;
  // with several runs, only the first score of each cloud: more lines would be unreadable
  const metrics = several ? choice.metrics.filter((m, i, all) => all.findIndex((other) => other.cloud === m.cloud) === i) : choice.metrics;
  for (const item of shown) {
    epochs = Math.max(epochs, item.epochs);
    const points = byEpoch(item.run.measured);
    if (!points.length) continue;
    const x = points.map(([epoch]) => epoch);
    const newest = points[points.length - 1][1].event.clouds;
    metrics.forEach((metric, place) => {
      const [dash, width, symbol] = METRIC_STYLES[place % METRIC_STYLES.length];
      const name = `${metric.title} (${metric.cloudTitle})`;
      traces.push({
        x, y: points.map(([, m]) => m.event.clouds[metric.cloud]?.[metric.slug] ?? null), mode: "lines+markers",
        name: several ? `${item.short}: ${name}` : name, legendgroup: several ? item.id : name,
        showlegend: !several || place === 0,
        line: { color: item.colour, width, dash }, marker: { size: 8, symbol }, hovertemplate: `%{y:.${metric.decimals + 1}f}`,
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

export function spectrumFigure(shown, look) {
  const traces = [];
  let caption = "";
  for (const item of shown) {
    const points = byEpoch(item.run.measured).filter(([, m]) => m.event.clouds.head?.ev?.length);
    const visible = shown.length > 1 ? points.slice(-1) : points;
    visible.forEach(([epoch, { event }], place) => {
      const ev = event.clouds.head.ev;
      const newest = place === visible.length - 1;
      const age = visible.length - 1 - place;
      traces.push({
        x: ev.map((_, i) => i + 1), y: ev, mode: newest && ev.length <= 30 ? "lines+markers" : "lines",
        name: shown.length > 1 ? `${item.short}, epoch ${epoch}` : epoch === 0 ? "epoch 0 (before training)" : `epoch ${epoch}`,
        showlegend: newest || place === 0,
        line: { color: newest ? item.colour : faded(item.colour, Math.max(0.12, 0.45 - 0.07 * age)), width: newest ? 2.4 : 1.4, dash: place === 0 && !newest ? "dot" : "solid" },
        marker: { size: 5 }, hovertemplate: "%{y:.3f}",
      });
      const { n, d, split } = event.clouds.head;
      caption = `what the classifier reads, ${split}, n = ${count(n)}, d = ${d}${shown.length === 1 && visible.length > 1 ? " · faint: earlier epochs" : ""}`;
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

// total first, then the task's loss, then penalties; without penalties the task's loss is the total and is drawn once.
function termsOf(steps) {
  const names = new Set();
  for (const step of steps) for (const name of Object.keys(step.losses)) names.add(name);
  const penalties = [...names].filter((name) => name !== "total" && name !== "task").sort();
  return (penalties.length ? ["total", "task", ...penalties] : ["total"]).filter((name) => names.has(name));
}

// Exponential running mean that starts unbiased and leaves gaps alone.
export function smooth(values, window) {
  if (window <= 1) return values;
  const keep = 1 - 1 / window;
  let sum = 0;
  let weight = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = keep * sum + value;
    weight = keep * weight + 1;
    return sum / weight;
  });
}

function every(values, stride) {
  return stride <= 1 ? values : values.filter((_, i) => i % stride === 0);
}

export function words(name) {
  return name.replaceAll("_", " ");
}
