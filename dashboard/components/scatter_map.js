// A map of points by plotly.js. What is drawn around them goes to the server as corners; which points lie inside is decided there.

const scatterMaps = new WeakMap();
const SELECTION_FIRST = 400; // milliseconds

function onlySelection(before, after) {
  const changed = Object.keys(after).filter((name) => name !== "selection" && before[name] !== after[name]);
  return changed.length === 0 && JSON.stringify(before.selection) !== JSON.stringify(after.selection);
}

export default function ({ data, parentElement, setTriggerValue }) {
  let view = scatterMaps.get(parentElement);
  if (!view) {
    view = new ScatterMap(parentElement.querySelector(".ivz-map"));
    scatterMaps.set(parentElement, view);
  }
  view.show(data, (corners) => setTriggerValue("polygon", corners));
  return () => {
    view.close();
    scatterMaps.delete(parentElement);
  };
}

class ScatterMap {
  constructor(root) {
    this.root = root;
    this.plot = root.querySelector(".ivz-map-plot");
    this.note = root.querySelector(".ivz-map-note");
    this.observer = new ResizeObserver(() => this.drawn && globalThis.Plotly.Plots.resize(this.plot));
    this.observer.observe(root);
  }

  show(data, send) {
    const before = this.data;
    this.data = data;
    this.send = send;
    this.root.style.height = `${data.height}px`;
    this.plot.setAttribute("aria-label", data.words);
    clearTimeout(this.later);
    // The line is on the screen already: what the page says of the points inside goes first, the server's shortened line after it.
    if (this.drawn && onlySelection(before, data)) this.later = setTimeout(() => this.draw(), SELECTION_FIRST);
    else loadPlotly(data.plotly).then(() => this.draw(), () => this.say("The chart script could not be loaded: reload the page."));
  }

  draw() {
    if (this.closed) return;
    const look = lookOf(this.root);
    const figure = JSON.parse(this.data.figure); // plotly keeps what it is given and changes it: a copy of its own each time
    const { layout } = figure;
    layout.font = { family: look.font, color: look.text, size: 13, ...layout.font };
    layout.hoverlabel = { ...layout.hoverlabel, bgcolor: look.panel, bordercolor: look.border, font: { color: look.text, family: look.font } };
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: look.faint, activecolor: look.accent };
    layout.autosize = true;
    layout.uirevision = this.data.revision; // zoom and camera stay while the same map is shown, whatever its colours
    if (!this.data.solid) {
      const corners = this.data.selection;
      layout.selections = corners.length ? [{ type: "path", path: `M${corners.map((c) => c.join(",")).join("L")}Z` }] : [];
      layout.selectionrevision = JSON.stringify(corners);
      layout.newselection = { mode: "immediate", line: { color: look.text, width: 2, dash: "dot" } };
      layout.activeselection = { fillcolor: faded(look.accent, 0.08), opacity: 1 };
    }
    this.options ??= this.makeOptions();
    globalThis.Plotly.react(this.plot, figure.data, layout, this.options);
    this.note.hidden = true;
    if (!this.drawn) {
      this.drawn = true;
      // plotly also says "selected" when a selection is only drawn again: without this the page would answer itself for ever
      this.plot.on("plotly_selecting", () => (this.drawing = true));
      this.plot.on("plotly_selected", (event) => this.drawing && this.selected(event));
      this.plot.on("plotly_deselect", () => this.tell([]));
    }
  }

  selected(event) {
    this.drawing = false;
    if (!event) return;
    const { lassoPoints, range } = event;
    if (lassoPoints?.x?.length > 2) this.tell(lassoPoints.x.map((x, i) => [x, lassoPoints.y[i]]));
    else if (range?.x) {
      const [[left, right], [low, high]] = [range.x, range.y];
      this.tell([[left, low], [right, low], [right, high], [left, high]]);
    }
  }

  tell(corners) {
    const same = JSON.stringify(corners) === this.told || (!corners.length && !this.data.selection.length);
    this.told = JSON.stringify(corners);
    if (!same) this.send(corners);
  }

  makeOptions() {
    const save = (format) => (plot) => globalThis.Plotly.downloadImage(plot, { format, filename: this.data.name, width: 1000, height: 700, scale: format === "png" ? 2 : 1 });
    const { camera } = globalThis.Plotly.Icons;
    const files = [
      { name: "png", title: "Picture (PNG)", icon: camera, click: save("png") },
      { name: "svg", title: "Picture (SVG)", icon: camera, click: save("svg") },
    ];
    const tools = this.data.solid ? ["orbitRotation", "pan3d", "zoom3d", "resetCameraDefault3d"] : ["lasso2d", "select2d", "pan2d", "zoom2d", "resetScale2d"];
    return { displaylogo: false, displayModeBar: true, doubleClick: "reset", responsive: false, scrollZoom: true, modeBarButtons: [tools, files] };
  }

  say(text) {
    this.note.textContent = text;
    this.note.hidden = false;
  }

  close() {
    this.closed = true;
    clearTimeout(this.later);
    this.observer.disconnect();
    if (this.drawn) globalThis.Plotly.purge(this.plot);
  }
}
