// plotly.js from our own server, once per page.
export function loadPlotly(path) {
  if (globalThis.Plotly) return Promise.resolve();
  return (globalThis.isovizPlotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = addressOf(path);
    script.onload = resolve;
    script.onerror = () => {
      delete globalThis.isovizPlotly;
      reject(new Error("plotly.js did not load"));
    };
    document.head.append(script);
  }));
}
