// Four small figures on canvases: explained variance, |ρ|, the standard deviation of each dimension, and redraws of IsoScore.

const [LEFT, RIGHT, TOP, BOTTOM] = [36, 10, 8, 24];
const BINS = 40;
const MOST_SHOWN = 1024; // rows of the picture of |ρ|
const FIGURE_REST = 45; // milliseconds between redraws of the figures; the cloud and the numbers update every frame
const FIGURE_TIME = 8; // milliseconds of drawing, after which the other figures wait for the next turn
const AFTER = "#dd7809"; // the same in both modes

export class Plots {
  // onPause: null without redraws
  constructor(onPause) {
    this.element = make("section", "ivp-plots", { "aria-label": "Figures" });
    const titles = { ev: "Explained variance EV_k", rho: "|ρ| of the dimensions", sigma: "Standard deviation σ_j", ...(onPause && { redraws: "IsoScore in 200 redraws" }) };
    this.figures = Object.fromEntries(Object.entries(titles).map(([name, title]) => [name, this.figure(name, title)]));
    this.resized = new ResizeObserver(() => this.last && this.show(this.last));
    this.resized.observe(this.element);
    if (onPause) this.offerPause(onPause);
  }

  offerPause(onPause) {
    const toggle = () => {
      const paused = pause.getAttribute("aria-pressed") !== "true";
      pause.setAttribute("aria-pressed", String(paused));
      pause.textContent = paused ? "Resume" : "Pause";
      onPause(paused);
    };
    const pause = button("Pause", toggle, { className: "ivp-pause", "aria-label": "Pause the redraws", "aria-pressed": false });
    this.figures.redraws.caption.after(pause);
  }

  figure(name, title) {
    const caption = make("figcaption", "ivp-caption", title);
    const canvas = make("canvas", "", { role: "img", "aria-label": title }); // until the first drawing
    const legend = make("p", "ivp-legend");
    this.element.append(make("figure", `ivp-plot ivp-plot-${name}`, caption, canvas, legend));
    return { canvas, legend, caption, pen: canvas.getContext("2d") };
  }

  close() {
    clearTimeout(this.timer);
    this.resized.disconnect();
  }

  show(view) {
    this.last = view;
    if (this.element.hidden) return;
    const begun = performance.now();
    const rest = FIGURE_REST - (begun - (this.shown ?? 0));
    if (rest > 0) {
      this.showAfter(rest);
      return;
    }
    const { drawn, transformed } = view;
    const inputsOf = (names) => names.map((name) => drawn[name]);
    const mode = view.look.background;
    const parts = {
      ev: [inputsOf(["before spectrum", "after spectrum", "truth"]), drawEv],
      rho: [inputsOf(["before dimensions", "after dimensions", "order"]), drawRho],
      sigma: [inputsOf(["before dimensions", "after dimensions"]), drawSigma],
      redraws: [[...inputsOf(["redraws", "before picture"])], drawRedraws],
    };
    for (const [name, [inputs, draw]] of Object.entries(parts)) {
      const figure = this.figures[name];
      if (!figure) continue;
      const { width, height } = figure.canvas.getBoundingClientRect();
      const layout = `${transformed} ${mode} ${width} ${height}`;
      if (!width || (figure.layout === layout && figure.inputs?.every((input, index) => input === inputs[index]))) continue;
      if (performance.now() - begun > FIGURE_TIME) {
        this.showAfter(0);
        return;
      }
      Object.assign(figure, { layout, inputs });
      const ratio = Math.min(2, globalThis.devicePixelRatio || 1);
      figure.canvas.width = Math.round(width * ratio);
      figure.canvas.height = Math.round(height * ratio);
      figure.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      figure.pen.font = `11px ${view.look.font}`;
      draw(figure, view, { width, height });
    }
    this.shown = performance.now();
  }

  showAfter(rest) {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.show(this.last);
    }, rest);
  }
}

// Draws a frame with the ends of both axes. Returns the scales from values to pixels.
function frame(pen, { width, height }, look, x, y, labels) {
  const [right, bottom] = [width - RIGHT, height - BOTTOM];
  pen.strokeStyle = look.border;
  pen.lineWidth = 1;
  pen.strokeRect(LEFT + 0.5, TOP + 0.5, right - LEFT, bottom - TOP);
  pen.fillStyle = look.faint;
  pen.textAlign = "left";
  pen.fillText(labels.x[0], LEFT, bottom + 15);
  pen.textAlign = "right";
  pen.fillText(labels.x[1], right, bottom + 15);
  pen.fillText(labels.y[0], LEFT - 5, bottom);
  pen.fillText(labels.y[1], LEFT - 5, TOP + 10);
  return { x: (value) => LEFT + ((value - x[0]) / (x[1] - x[0] || 1)) * (right - LEFT), y: (value) => bottom - ((value - y[0]) / (y[1] - y[0] || 1)) * (bottom - TOP) };
}

function trace(pen, points, colour, { width = 2, dash = [] } = {}) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.setLineDash(dash);
  pen.beginPath();
  points.forEach(([x, y], index) => (index ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.stroke();
  pen.setLineDash([]);
}

function legend(element, entries) {
  element.replaceChildren(...entries.filter(Boolean).map(([text, colour, style = ""]) => make("span", `ivp-key ${style}`, { style: `--ink: ${colour}` }, text)));
}

const inkOf = (look) => (look.dark ? "#7fb3f0" : look.accent);

function drawEv({ pen, canvas, legend: key }, { drawn, transformed, look, state }, size) {
  const d = drawn["before dimensions"]?.sigma.length ?? state.d; // people's own vectors may have more than a drawn cloud
  const scale = frame(pen, size, look, [0, d], [0, 1], { x: ["k = 0", String(d)], y: ["0", "1"] });
  const curve = (values) => {
    const step = Math.max(1, Math.floor(values.length / 300));
    const points = [[scale.x(0), scale.y(0)]];
    for (let k = 0; k < values.length; k += k < 60 ? 1 : step) points.push([scale.x(k + 1), scale.y(values[k])]);
    if (values.length) points.push([scale.x(values.length), scale.y(values.at(-1))], [scale.x(d), scale.y(1)]);
    return points;
  };
  trace(pen, [[scale.x(0), scale.y(0)], [scale.x(d), scale.y(1)]], look.border, { width: 1 });
  const known = drawn.truth?.curve;
  if (known && !transformed) trace(pen, curve(known), look.text, { width: 1.3, dash: [4, 3] });
  const curveBefore = drawn["before spectrum"]?.curve;
  if (curveBefore) trace(pen, curve(curveBefore), inkOf(look));
  const after = transformed && drawn["after spectrum"]?.curve;
  if (after) trace(pen, curve(after), AFTER);
  legend(key, [transformed ? ["before", inkOf(look)] : ["cloud", inkOf(look)], transformed ? ["after", AFTER] : known && ["true", look.text, "ivp-dashed"], ["even", look.border]]);
  canvas.setAttribute("aria-label", curveBefore?.length ? `EV_k of the cloud: ${number(curveBefore[0])} at k = 1` : "EV_k of the cloud");
}

function drawRho({ pen, canvas, legend: key }, { drawn, transformed, look, state }, { width, height }) {
  const pictures = [drawn["before dimensions"], transformed ? drawn["after dimensions"] : null].filter((entry) => entry?.cells);
  const colours = colourTable(look.sequential);
  const slot = (width - 8) / pictures.length;
  const side = Math.min(slot - 4, height - 4);
  let [d, step] = [state.d, 1];
  pictures.forEach(({ cells }, index) => {
    d = Math.round(Math.sqrt(cells.length));
    step = Math.ceil(d / MOST_SHOWN);
    const shownCount = Math.floor(d / step);
    const image = new ImageData(shownCount, shownCount);
    const pixels = new Uint32Array(image.data.buffer);
    const order = drawn.order?.order.length === d ? drawn.order.order : null;
    const place = (k) => (order ? order[k * step] : k * step);
    for (let at = 0; at < pixels.length; at += 1) pixels[at] = colours[cells[place(Math.floor(at / shownCount)) * d + place(at % shownCount)]];
    const copy = new OffscreenCanvas(shownCount, shownCount);
    copy.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = shownCount > side;
    pen.drawImage(copy, 4 + index * slot + (slot - side) / 2, (height - side) / 2, side, side);
  });
  const mean = pictures.map(({ values }) => (values.abs_correlation === null ? "undefined" : number(values.abs_correlation, 2)));
  key.textContent = `mean ${mean.join(" → ")}${drawn.order ? ", clustered" : ""}${step > 1 ? `; 1 of ${step} dimensions is shown` : ""}`;
  canvas.setAttribute("aria-label", `|ρ| of ${d} × ${d} dimensions, mean ${mean.join(" before, ")}`);
}

function drawSigma({ pen, canvas, legend: key }, { drawn, transformed, look }, size) {
  const series = [[drawn["before dimensions"]?.sigma, inkOf(look)], transformed ? [drawn["after dimensions"]?.sigma, AFTER] : null].filter((entry) => entry?.[0]);
  const values = series.flatMap(([sigma]) => [...sigma]);
  const d = Math.max(...series.map(([sigma]) => sigma.length), 1);
  const largest = Math.max(...values, 1e-300);
  const positive = values.filter((value) => value > 1e-9 * largest);
  const smallest = Math.min(...positive);
  const log = largest / smallest > 20;
  const bounds = log ? [Math.log10(smallest), Math.log10(largest)] : [0, largest * 1.05];
  const scale = frame(pen, size, look, [0, d], bounds, { x: ["j = 1", String(d)], y: [log ? number(smallest, 1) : "0", number(largest, 2)] });
  for (const [sigma, colour] of series) {
    const count = sigma.length;
    pen.fillStyle = colour;
    if (count > 90 || transformed) {
      const points = Array.from(sigma, (value, j) => [scale.x(j + 0.5), scale.y(log ? Math.log10(Math.max(value, smallest)) : value)]);
      trace(pen, points, colour, { width: 1.5 });
    } else {
      sigma.forEach((value, j) => {
        const y = scale.y(log ? Math.log10(Math.max(value, smallest)) : value);
        const width = scale.x(1) - scale.x(0);
        pen.fillRect(scale.x(j) + width * 0.12, y, width * 0.76, scale.y(bounds[0]) - y);
      });
    }
  }
  legend(key, [transformed ? ["before", inkOf(look)] : null, transformed ? ["after", AFTER] : null, log ? ["log scale", "transparent"] : null]);
  canvas.setAttribute("aria-label", `Standard deviations of ${d} dimensions, from ${number(Math.min(...values))} to ${number(largest)}`);
}

function drawRedraws({ pen, canvas, legend: key, caption }, { drawn, look, known, numbers }, size) {
  const { plug = [], unbiased = [], planned = 0 } = drawn.redraws ?? {};
  const [first, second] = [look.faint, inkOf(look)];
  const finite = [...plug, ...unbiased, numbers.isoscore, numbers.isoscore_unbiased, known.isoscore].filter((value) => Number.isFinite(value));
  if (!finite.length) return;
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const edge = Math.max(0.002, 0.06 * (high - low));
  const bounds = [low - edge, high + edge];
  const histograms = [plug, unbiased].map((values) => histogram(values, bounds));
  const highest = Math.max(1, ...histograms.flat());
  const scale = frame(pen, size, look, bounds, [0, highest * 1.12], { x: bounds.map((value) => number(value, 2)), y: ["0", String(highest)] });
  histograms.forEach((counts, which) => {
    pen.fillStyle = faded([first, second][which], 0.72);
    counts.forEach((count, bin) => {
      const x = scale.x(bounds[0] + (bin / BINS) * (bounds[1] - bounds[0]));
      const binWidth = (scale.x(bounds[1]) - scale.x(bounds[0])) / BINS;
      if (count) pen.fillRect(x + 0.5, scale.y(count), binWidth - 1, scale.y(0) - scale.y(count));
    });
  });
  if (Number.isFinite(known.isoscore)) trace(pen, [[scale.x(known.isoscore), scale.y(0)], [scale.x(known.isoscore), TOP]], look.text, { width: 1.5, dash: [4, 3] });
  legend(key, [["plug-in", first], ["unbiased", second], ["true", look.text, "ivp-dashed"]]);
  caption.textContent = plug.length < planned ? `IsoScore: ${plug.length} of ${planned} redraws` : `IsoScore in ${planned} redraws`;
  canvas.setAttribute("aria-label", `IsoScore of redrawn clouds: plug-in ${number(meanOf(plug))} on average, unbiased ${number(meanOf(unbiased))}, true ${number(known.isoscore)}`);
}

const meanOf = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function histogram(values, [low, high]) {
  const counts = new Array(BINS).fill(0);
  for (const value of values) if (Number.isFinite(value)) counts[Math.min(BINS - 1, Math.floor(((value - low) / (high - low)) * BINS))] += 1;
  return counts;
}
