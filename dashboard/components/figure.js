// A finished figure by plotly.js, in the look of the page.

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
    this.open = (run) => setTriggerValue("run", run);
    this.root.style.height = `${data.height}px`;
    this.root.setAttribute("aria-label", data.words);
    const load = data.basic ? loadBasicPlotly : loadPlotly;
    load(data.plotly, this.root).then((plotly) => this.draw(plotly), () => this.say("The chart script could not be loaded: reload the page."));
  }

  draw(plotly) {
    if (this.closed) return;
    if (this.plotly && this.plotly !== plotly) this.plotly.purge(this.plot);
    this.plotly = plotly;
    const figure = JSON.parse(this.data.spec); // plotly keeps what it is given and changes it: a copy of its own each time
    delete figure.layout.height; // that of the frame, which may fill the screen
    figure.layout.autosize = true;
    const look = lookOf(this.root);
    figure.layout.template = dress(look);
    inMode(figure, this.data, look.dark);
    this.config ??= this.makeConfig();
    plotly.react(this.plot, figure.data, figure.layout, this.config);
    this.note.hidden = true;
    if (this.data.opensRuns && !this.listening) {
      this.listening = true;
      this.plot.on("plotly_click", ({ points }) => points[0]?.customdata?.[RUN] && this.open(points[0].customdata[RUN]));
    }
  }

  makeConfig() {
    const { path, width, height } = FULL_SCREEN;
    const full = { name: "fullscreen", title: "Fullscreen", icon: { path, width, height }, click: () => this.fullScreen() };
    const more = [...fileButtons((format) => this.save(format)), ...(document.fullscreenEnabled ? [full] : [])];
    const less = [...this.data.config.modeBarButtonsToRemove, "toImage"];
    return { ...this.data.config, responsive: false, modeBarButtonsToRemove: less, modeBarButtonsToAdd: more };
  }

  save(format) {
    const { data, layout, offsetWidth: width, offsetHeight: height } = this.plot;
    const { name, about } = this.data;
    savePicture(this.plotly, { data, layout }, { format, name, width, height, about, look: lookOf(this.root) });
  }

  fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.root.requestFullscreen();
  }

  resize() {
    if (this.root.offsetWidth) this.plotly?.Plots.resize(this.plot);
  }

  say(text) {
    this.note.textContent = text;
    this.note.hidden = false;
  }

  close() {
    this.closed = true;
    this.observer.disconnect();
    this.plotly?.purge(this.plot);
  }
}

const RUN = 4; // where the data behind a mark name its run

// Four corners.
const FULL_SCREEN = { width: 24, height: 24, path: "M4 4h6v2H6v4H4zM14 4h6v6h-2V6h-4zM4 14h2v4h4v2H4zM18 14h2v6h-6v-2h4z" };

// What a figure leaves open.
function dress(look) {
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
