// A map of points. In two dimensions, plotly.js draws the axes and a canvas below draws the points, because plotly would redraw
// everything at each step of a pan. In three dimensions, plotly.js draws everything. A selection goes to the server as a polygon; the
// server decides which points lie inside.

const SELECTION_DELAY = 400; // milliseconds; see `show`
const SHAPES = 5000; // up to this many points, a saved picture has one shape per point; beyond, one image
const REACH = 12; // pixels; the tooltip shows the nearest point within this distance

function onlySelection(before, after) {
  const changed = Object.keys(after).filter((name) => name !== "selection" && before[name] !== after[name]);
  return changed.length === 0 && JSON.stringify(before.selection) !== JSON.stringify(after.selection);
}

export default (component) => mount(component, (element) => new ScatterMap(element.querySelector(".ivz-map")));

class ScatterMap {
  constructor(root) {
    this.root = root;
    this.plot = root.querySelector(".ivz-map-plot");
    this.canvas = root.querySelector(".ivz-map-points");
    this.tooltip = root.querySelector(".ivz-map-tooltip");
    this.note = root.querySelector(".ivz-map-note");
    this.parts = [];
    this.observer = new ResizeObserver(() => this.plotly?.Plots.resize(this.plot));
    this.observer.observe(root);
    root.addEventListener("pointermove", (event) => this.showTooltip(event));
    root.addEventListener("pointerleave", () => (this.tooltip.hidden = true));
  }

  show(data, { setTriggerValue }) {
    const before = this.data;
    this.data = data;
    this.send = (corners) => setTriggerValue("polygon", corners);
    this.root.style.height = `${data.height}px`;
    this.plot.setAttribute("aria-label", data.words);
    clearTimeout(this.redrawTimer);
    // The browser has already drawn this selection: let the page list its points first, then draw the server's simplified polygon.
    if (this.drawn && onlySelection(before, data)) this.redrawTimer = setTimeout(() => this.draw(this.plotly), SELECTION_DELAY);
    else this.load().then((plotly) => this.data.solid === data.solid && this.draw(plotly), () => this.showMessage("The chart script could not be loaded. Reload the page."));
  }

  load() {
    return this.data.solid ? loadPlotly(this.data.plotly, this.root) : loadBasicPlotly(this.data.basic, this.root);
  }

  draw(plotly) {
    if (this.closed) return;
    if (this.plotly && this.plotly !== plotly) {
      this.plotly.purge(this.plot);
      this.plotKey = null;
    }
    this.plotly = plotly;
    const flat = !this.data.solid;
    const figure = this.figure();
    this.parts = flat ? pointsOf(figure, this.data.palettes[lookOf(this.root).dark ? "dark" : "light"].at(-1)) : [];
    this.canvas.hidden = !flat;
    this.tooltip.hidden = true;
    if (flat) {
      this.layer ??= new PaintedPoints(this.canvas);
      this.canvas.layer = this.layer; // for tests and benchmarks
      this.layer.set(this.parts, dimmedColours(this.parts, this.data.selection));
    }
    const { data, layout } = flat ? withoutPoints(figure) : figure;
    // Another map or other axes need a new plot: in the old one, "Reset axes" would restore the old ranges.
    const plotKey = JSON.stringify([this.data.revision, layout.xaxis?.range, layout.yaxis?.range]);
    const recreate = this.plotKey !== plotKey;
    // keep the visible range here: with equal scales on both axes, plotly loses it, because it compares with the ranges it widened
    if (flat && !recreate) [layout.xaxis.range, layout.yaxis.range] = this.ranges();
    if (recreate) this.options = this.makeOptions();
    plotly[recreate ? "newPlot" : "react"](this.plot, data, layout, this.options);
    if (recreate) this.listen();
    this.plotKey = plotKey;
    this.drawn = true;
    this.note.hidden = true;
    this.repaint();
  }

  listen() {
    for (const name of ["plotly_relayouting", "plotly_relayout", "plotly_restyle", "plotly_afterplot"]) this.plot.on(name, () => this.repaint());
    // plotly also reports "selected" when it redraws a selection; without `selecting`, page and server would update each other forever
    this.plot.on("plotly_selecting", (event) => {
      this.selecting = true;
      this.draft = cornersOf(event);
      this.repaint();
    });
    this.plot.on("plotly_selected", (event) => this.selecting && this.selectionDrawn(event));
    this.plot.on("plotly_deselect", () => {
      this.draft = [];
      this.repaint();
      this.sendSelection([]);
    });
  }

  // The server's figure in the page's theme; a new copy each time, because plotly modifies its input.
  figure() {
    const look = lookOf(this.root);
    const figure = JSON.parse(this.data.figure);
    const { layout } = figure;
    layout.font = { family: look.font, color: look.text, size: 13, ...layout.font };
    layout.hoverlabel = { ...layout.hoverlabel, bgcolor: look.panel, bordercolor: look.border, font: { color: look.text, family: look.font } };
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: look.faint, activecolor: look.accent };
    applyMode(figure, this.data, look.dark);
    layout.autosize = true;
    layout.uirevision = this.data.revision; // keeps zoom and camera when only colours change
    if (!this.data.solid) {
      const corners = this.data.selection;
      layout.selections = corners.length ? [{ type: "path", path: `M${corners.map((c) => c.join(",")).join("L")}Z` }] : [];
      layout.selectionrevision = JSON.stringify(corners);
      layout.newselection = { mode: "immediate", line: { color: look.text, width: 2, dash: "dot" } };
      layout.activeselection = { fillcolor: faded(look.accent, 0.08), opacity: 1 };
    }
    return figure;
  }

  // Redraws the points in the next animation frame, once for all changes until then.
  repaint() {
    if (this.data.solid) return;
    this.repaintRequest ??= requestAnimationFrame(() => {
      this.repaintRequest = null;
      if (this.closed || this.data.solid || !this.layer) return;
      if (this.draft) this.layer.set(this.parts, dimmedColours(this.parts, this.draft));
      this.draft = null;
      this.layer.draw(this.area(), (part) => this.shown(part));
    });
  }

  area() {
    const { xaxis, yaxis } = this.plot._fullLayout;
    const [x, y] = this.ranges();
    return { left: xaxis._offset, top: yaxis._offset, width: xaxis._length, height: yaxis._length, x, y };
  }

  ranges() {
    const { xaxis, yaxis } = this.plot._fullLayout;
    return [[...xaxis.range], [...yaxis.range]];
  }

  // Whether the part is switched on in the legend.
  shown(part) {
    return (this.plot.data[part.trace].visible ?? true) === true;
  }

  // Shows the tooltip of the point nearest to the pointer.
  showTooltip(event) {
    this.tooltip.hidden = true;
    if (!this.layer || this.data.solid || event.buttons || !this.canvas.width) return;
    const box = this.canvas.getBoundingClientRect();
    const pointer = { left: event.clientX - box.left, top: event.clientY - box.top };
    if (pointer.left < 0 || pointer.top < 0 || pointer.left > box.width || pointer.top > box.height) return;
    const hit = nearest(this.parts, (part) => this.shown(part), pointer, this.area(), REACH);
    if (!hit) return;
    const part = this.parts[hit.part];
    const lines = [this.textOf(part, hit.index), part.describe(hit.index)].filter(Boolean).map((text, index) => make("div", index ? "ivz-map-extra" : "", plain(text)));
    this.tooltip.replaceChildren(...lines);
    this.tooltip.hidden = false;
    const frame = this.root.getBoundingClientRect();
    const room = frame.width - this.tooltip.offsetWidth - 4;
    this.tooltip.style.left = `${Math.max(4, Math.min(room, event.clientX - frame.left + 14))}px`;
    this.tooltip.style.top = `${Math.max(4, event.clientY - frame.top - this.tooltip.offsetHeight - 10)}px`;
  }

  // For large maps, fetches the texts of all points when the first one is needed.
  textOf({ texts, textRows }, index) {
    if (!textRows) return texts[index];
    const { texts: path } = this.data;
    if (this.requestedTexts !== path) {
      [this.requestedTexts, this.texts] = [path, null];
      fetch(resolveUrl(path))
        .then((response) => (response.ok ? response.json() : null))
        .then((texts) => this.requestedTexts === path && (this.texts = texts), () => (this.requestedTexts = null));
    }
    return this.texts?.[textRows[index]];
  }

  selectionDrawn(event) {
    this.selecting = false;
    const corners = cornersOf(event);
    if (corners.length) this.sendSelection(corners);
  }

  sendSelection(corners) {
    const unchanged = JSON.stringify(corners) === this.sent || (!corners.length && !this.data.selection.length);
    this.sent = JSON.stringify(corners);
    if (!unchanged) this.send(corners);
  }

  // Saves the map as shown: visible range, legend and selection. Very many points are saved as one image, not as shapes.
  async save(format) {
    const figure = this.figure();
    const { layout } = figure;
    const look = lookOf(this.root);
    const few = this.parts.reduce((sum, part) => sum + part.x.length, 0) <= SHAPES;
    let { data } = figure;
    if (!this.data.solid) {
      data = withoutPoints(figure).data;
      data.forEach((trace, index) => (trace.visible = this.plot.data[index].visible));
      data.unshift(asSingleTrace(this.parts, this.layer.colours, (part) => this.shown(part), few ? "scatter" : "scattergl"));
      [layout.xaxis.range, layout.yaxis.range] = this.ranges();
    } else layout.scene.camera = this.plot._fullLayout.scene.camera;
    const plotly = few ? this.plotly : await loadPlotly(this.data.plotly);
    const { name, about } = this.data;
    await savePicture(plotly, { data, layout }, { format, name, width: 1000, height: 700, about, look });
  }

  makeOptions() {
    const files = fileButtons((format) => this.save(format));
    const tools = this.data.solid ? ["orbitRotation", "pan3d", "zoom3d", "resetCameraDefault3d"] : ["lasso2d", "select2d", "pan2d", "zoom2d", "resetScale2d"];
    return { displaylogo: false, displayModeBar: true, doubleClick: "reset", responsive: false, scrollZoom: true, modeBarButtons: [tools, files] };
  }

  showMessage(text) {
    this.note.textContent = text;
    this.note.hidden = false;
  }

  close() {
    this.closed = true;
    clearTimeout(this.redrawTimer);
    this.observer.disconnect();
    this.layer?.close();
    this.plotly?.purge(this.plot);
  }
}

// Corners of a lasso or a rectangle; otherwise none.
function cornersOf(event) {
  const { lassoPoints, range } = event ?? {};
  if (lassoPoints?.x?.length > 2) return lassoPoints.x.map((x, i) => [x, lassoPoints.y[i]]);
  if (!range?.x) return [];
  const [[left, right], [low, high]] = [range.x, range.y];
  return [[left, low], [right, low], [right, high], [left, high]];
}

// The server escapes texts for plotly, which parses some HTML. This undoes it.
function plain(text) {
  return new DOMParser().parseFromString(text, "text/html").body.textContent;
}
