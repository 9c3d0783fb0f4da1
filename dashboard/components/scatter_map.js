// A map of points. plotly.js draws what is around them, and all of it in three dimensions; the points of a plane are on a canvas under it, because
// plotly draws all anew for each step of a move. What is drawn around points goes to the server as corners; which points lie inside is decided there.

const scatterMaps = new WeakMap();
const SELECTION_FIRST = 400; // milliseconds
const SHAPES = 5000; // points of a saved picture that are shapes of their own; beyond, they are one image in it
const FRAME = 900; // milliseconds from a layer of a film to the next
const REACH = 12; // pixels from a point at which it is meant

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
    this.told = root.querySelector(".ivz-map-told");
    this.note = root.querySelector(".ivz-map-note");
    this.parts = [];
    this.film = root.querySelector(".ivz-map-film");
    [this.player, this.slider, this.named] = this.film.children;
    this.slider.addEventListener("input", () => {
      this.pause();
      this.toFrame(Number(this.slider.value));
    });
    this.player.addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    this.observer = new ResizeObserver(() => this.plotly?.Plots.resize(this.plot));
    this.observer.observe(root);
    root.addEventListener("pointermove", (event) => this.point(event));
    root.addEventListener("pointerleave", () => (this.told.hidden = true));
  }

  show(data, { setTriggerValue }) {
    const before = this.data;
    this.data = data;
    this.send = (corners) => setTriggerValue("polygon", corners);
    this.root.style.height = `${data.height}px`;
    this.plot.setAttribute("aria-label", data.words);
    clearTimeout(this.later);
    // The line is on the screen already: what the page says of the points inside goes first, the server's shortened line after it.
    if (this.drawn && onlySelection(before, data)) this.later = setTimeout(() => this.draw(this.plotly), SELECTION_FIRST);
    else this.load().then((plotly) => this.data.solid === data.solid && this.draw(plotly), () => this.say("The chart script could not be loaded: reload the page."));
  }

  load() {
    return this.data.solid ? loadPlotly(this.data.plotly, this.root) : loadBasicPlotly(this.data.basic, this.root);
  }

  draw(plotly) {
    if (this.closed) return;
    if (this.plotly && this.plotly !== plotly) {
      this.plotly.purge(this.plot);
      this.begun = null;
    }
    this.plotly = plotly;
    const flat = !this.data.solid;
    const figure = this.figure();
    this.parts = flat ? pointsOf(figure, this.data.palettes[lookOf(this.root).dark ? "dark" : "light"].at(-1)) : [];
    this.canvas.hidden = !flat;
    this.told.hidden = true;
    this.film.hidden = !this.data.frames.length;
    this.pause();
    this.at = this.data.frame;
    if (flat) {
      this.layer ??= WebGLPoints.on(this.canvas) ?? new PaintedPoints(this.canvas);
      this.canvas.layer = this.layer; // for those who look at the page from outside
      this.layer.take(this.parts);
      this.layer.recolour(dimmed(this.parts, this.data.selection));
    }
    const { data, layout } = flat ? withoutPoints(figure) : figure;
    // Another map, or other axes, begin anew: plotly would go back to the first ones when the axes are reset.
    const begun = JSON.stringify([this.data.revision, layout.xaxis?.range, layout.yaxis?.range]);
    const anew = this.begun !== begun;
    // plotly itself forgets where it was moved to when both axes have one scale: it compares with ranges that it has widened for that
    if (flat && !anew) [layout.xaxis.range, layout.yaxis.range] = this.ranges();
    if (anew) this.options = this.makeOptions();
    plotly[anew ? "newPlot" : "react"](this.plot, data, layout, this.options);
    if (anew) this.listen();
    this.begun = begun;
    this.drawn = true;
    this.note.hidden = true;
    this.name();
    this.repaint();
  }

  // The film: the points move, everything else stays; what was drawn around keeps its colours, since it was drawn on the page's own layer.
  toFrame(at) {
    const colours = this.layer.colours;
    this.at = at;
    this.layer.take((this.parts = moved(this.parts, at)));
    this.layer.recolour(colours);
    this.told.hidden = true;
    this.name();
    this.repaint();
  }

  name() {
    if (!this.data.frames.length) return;
    this.slider.max = this.data.frames.length - 1;
    this.slider.value = this.at;
    const name = this.data.frames[Math.round(this.at)];
    this.named.textContent = name;
    this.slider.setAttribute("aria-valuetext", name);
    const home = this.at === this.data.frame; // lines are drawn on the layer that the server knows
    if (this.plot._fullLayout && this.dragging !== home) this.plotly.relayout(this.plot, { dragmode: home ? "lasso" : "pan" });
    this.dragging = home;
    this.root.classList.toggle("ivz-map-away", !home);
  }

  play() {
    const last = this.data.frames.length - 1;
    const from = this.at >= last ? 0 : this.at;
    let began;
    const step = (now) => {
      began ??= now;
      const at = Math.min(last, from + (now - began) / FRAME);
      this.toFrame(at);
      if (at < last) this.playing = requestAnimationFrame(step);
      else this.pause();
    };
    this.playing = requestAnimationFrame(step);
    this.showPlayer();
  }

  pause() {
    cancelAnimationFrame(this.playing);
    this.playing = null;
    this.showPlayer();
  }

  showPlayer() {
    this.player.textContent = this.playing ? "❚❚" : "▶";
    this.player.setAttribute("aria-label", this.playing ? "Pause" : "Play");
  }

  listen() {
    for (const name of ["plotly_relayouting", "plotly_relayout", "plotly_restyle", "plotly_afterplot"]) this.plot.on(name, () => this.repaint());
    // plotly also says "selected" when a selection is only drawn again: without this the page would answer itself for ever
    this.plot.on("plotly_selecting", (event) => {
      this.drawing = true;
      this.around = cornersOf(event);
      this.repaint();
    });
    this.plot.on("plotly_selected", (event) => this.drawing && this.selected(event));
    this.plot.on("plotly_deselect", () => {
      this.around = [];
      this.repaint();
      this.tell([]);
    });
  }

  // What the server sent, in the look of the page; a copy of its own each time, because plotly keeps and changes what it is given.
  figure() {
    const look = lookOf(this.root);
    const figure = JSON.parse(this.data.figure);
    const { layout } = figure;
    layout.font = { family: look.font, color: look.text, size: 13, ...layout.font };
    layout.hoverlabel = { ...layout.hoverlabel, bgcolor: look.panel, bordercolor: look.border, font: { color: look.text, family: look.font } };
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: look.faint, activecolor: look.accent };
    inMode(figure, this.data, look.dark);
    layout.autosize = true;
    layout.uirevision = this.data.revision; // zoom and camera stay while the same map is shown, whatever its colours
    if (!this.data.solid) {
      const corners = this.data.selection;
      layout.selections = corners.length ? [{ type: "path", path: `M${corners.map((c) => c.join(",")).join("L")}Z` }] : [];
      layout.selectionrevision = JSON.stringify(corners);
      layout.newselection = { mode: "immediate", line: { color: look.text, width: 2, dash: "dot" } };
      layout.activeselection = { fillcolor: faded(look.accent, 0.08), opacity: 1 };
    }
    return figure;
  }

  // The points again, at the next frame and once for all that happened until then.
  repaint() {
    if (this.data.solid) return;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      if (this.closed || this.data.solid || !this.layer) return;
      if (this.around) this.layer.recolour(dimmed(this.parts, this.around));
      this.around = null;
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

  // Whether its name in the legend is switched on.
  shown(part) {
    return (this.plot.data[part.trace].visible ?? true) === true;
  }

  // What the point under the pointer is.
  point(event) {
    this.told.hidden = true;
    if (!this.layer || this.data.solid || event.buttons || !this.canvas.width) return;
    const box = this.canvas.getBoundingClientRect();
    const at = { left: event.clientX - box.left, top: event.clientY - box.top };
    if (at.left < 0 || at.top < 0 || at.left > box.width || at.top > box.height) return;
    const found = nearest(this.parts, (part) => this.shown(part), at, this.area(), REACH);
    if (!found) return;
    const part = this.parts[found.part];
    const lines = [this.textOf(part, found.index), part.told(found.index)].filter(Boolean).map((text, place) => make("div", place ? "ivz-map-extra" : "", plain(text)));
    this.told.replaceChildren(...lines);
    this.told.hidden = false;
    const frame = this.root.getBoundingClientRect();
    const room = frame.width - this.told.offsetWidth - 4;
    this.told.style.left = `${Math.max(4, Math.min(room, event.clientX - frame.left + 14))}px`;
    this.told.style.top = `${Math.max(4, event.clientY - frame.top - this.told.offsetHeight - 10)}px`;
  }

  // Texts of very many points come when the first one is wanted, and all at once.
  textOf({ texts, places }, index) {
    if (!places) return texts[index];
    const { texts: path, token } = this.data;
    if (this.asked !== path) {
      [this.asked, this.texts] = [path, null];
      fetch(addressOf(path), { headers: { "x-isoviz-token": token } })
        .then((answer) => (answer.ok ? answer.json() : null))
        .then((texts) => this.asked === path && (this.texts = texts), () => (this.asked = null));
    }
    return this.texts?.[places[index]];
  }

  selected(event) {
    this.drawing = false;
    const corners = cornersOf(event);
    if (corners.length) this.tell(corners);
  }

  tell(corners) {
    const same = JSON.stringify(corners) === this.sent || (!corners.length && !this.data.selection.length);
    this.sent = JSON.stringify(corners);
    if (!same) this.send(corners);
  }

  // The picture as it is on the screen: its part, what is switched on, what is drawn around. Lines and shapes, but for very many points.
  async save(format) {
    const figure = this.figure();
    const { layout } = figure;
    const look = lookOf(this.root);
    const few = this.parts.reduce((sum, part) => sum + part.x.length, 0) <= SHAPES;
    let { data } = figure;
    if (!this.data.solid) {
      data = withoutPoints(figure).data;
      data.forEach((trace, place) => (trace.visible = this.plot.data[place].visible));
      data.unshift(asOneTrace(this.parts, this.layer.colours, (part) => this.shown(part), few ? "scatter" : "scattergl"));
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

  say(text) {
    this.note.textContent = text;
    this.note.hidden = false;
  }

  close() {
    this.closed = true;
    this.pause();
    clearTimeout(this.later);
    this.observer.disconnect();
    this.layer?.close();
    this.plotly?.purge(this.plot);
  }
}

// Of a line around points, or of a rectangle; none of anything else.
function cornersOf(event) {
  const { lassoPoints, range } = event ?? {};
  if (lassoPoints?.x?.length > 2) return lassoPoints.x.map((x, i) => [x, lassoPoints.y[i]]);
  if (!range?.x) return [];
  const [[left, right], [low, high]] = [range.x, range.y];
  return [[left, low], [right, low], [right, high], [left, high]];
}

// The server escapes texts for plotly, which reads some HTML in them; here they are only text.
function plain(text) {
  return new DOMParser().parseFromString(text, "text/html").body.textContent;
}
