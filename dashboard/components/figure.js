// Draws a finished figure with plotly.js in the page's theme.

export default (component) => mount(component, (element) => new FigureView(element.querySelector(".ivz-figure-frame")));

class FigureView {
  constructor(root) {
    this.root = root;
    this.plot = root.querySelector(".ivz-figure-plot");
    this.note = root.querySelector(".ivz-figure-note");
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(root);
  }

  show(data, { setTriggerValue }) {
    this.data = data;
    this.openRun = (run) => setTriggerValue("run", run);
    this.root.style.height = `${data.height}px`;
    this.root.setAttribute("aria-label", data.words);
    const load = data.basic ? loadBasicPlotly : loadPlotly;
    load(data.plotly, this.root).then((plotly) => this.draw(plotly), () => this.showMessage("The chart script could not be loaded. Reload the page."));
  }

  draw(plotly) {
    if (this.closed) return;
    if (this.plotly && this.plotly !== plotly) this.plotly.purge(this.plot);
    this.plotly = plotly;
    const figure = JSON.parse(this.data.spec); // a new copy each time, because plotly modifies its input
    delete figure.layout.height; // the frame sets it, and may fill the screen
    figure.layout.autosize = true;
    const look = lookOf(this.root);
    figure.layout.template = templateFor(look);
    applyMode(figure, this.data, look.dark);
    this.config ??= this.makeConfig();
    plotly.react(this.plot, figure.data, figure.layout, this.config);
    this.note.hidden = true;
    if (this.data.opensRuns && !this.listening) {
      this.listening = true;
      this.plot.on("plotly_click", ({ points }) => points[0]?.customdata?.[RUN_FIELD] && this.openRun(points[0].customdata[RUN_FIELD]));
    }
  }

  makeConfig() {
    const { path, width, height } = FULLSCREEN_ICON;
    const fullscreen = { name: "fullscreen", title: "Fullscreen", icon: { path, width, height }, click: () => this.toggleFullscreen() };
    const added = [...fileButtons((format) => this.save(format)), ...(document.fullscreenEnabled ? [fullscreen] : [])];
    const removed = [...this.data.config.modeBarButtonsToRemove, "toImage"];
    return { ...this.data.config, responsive: false, modeBarButtonsToRemove: removed, modeBarButtonsToAdd: added };
  }

  save(format) {
    const { data, layout, offsetWidth: width, offsetHeight: height } = this.plot;
    const { name, about } = this.data;
    savePicture(this.plotly, { data, layout }, { format, name, width, height, about, look: lookOf(this.root) });
  }

  toggleFullscreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen();
  }

  resize() {
    if (this.root.offsetWidth) this.plotly?.Plots.resize(this.plot);
  }

  showMessage(text) {
    this.note.textContent = text;
    this.note.hidden = false;
  }

  close() {
    this.closed = true;
    this.observer.disconnect();
    this.plotly?.purge(this.plot);
  }
}

const RUN_FIELD = 4; // index of the run's id in a mark's customdata

const FULLSCREEN_ICON = { width: 24, height: 24, path: "M4 4h6v2H6v4H4zM14 4h6v6h-2V6h-4zM4 14h2v4h4v2H4zM18 14h2v6h-6v-2h4z" };

// The page's theme as a plotly template.
function templateFor(look) {
  const axis = { color: look.faint, tickfont: { size: 12 }, automargin: true };
  const title = { font: { size: 14, color: look.faint } };
  const layout = {
    font: { family: look.font, color: look.text, size: 12 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 0, r: 0, pad: 8 },
    xaxis: { ...axis, showgrid: false, zeroline: false, title: { ...title, standoff: 20 } },
    yaxis: { ...axis, title: { ...title, standoff: 24 } },
    hoverlabel: { bgcolor: look.background, bordercolor: look.border, font: { color: look.text, family: look.font, size: 12 } },
    legend: { font: { size: 12, color: look.text } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: look.faint, activecolor: look.accent },
  };
  return { layout, data: { scatter: [{ marker: { line: { width: 0 } } }] } };
}
