// Loads plotly.js from our own server, each of its two scripts once per page. Figures are then drawn one after another, in the order of
// reading, so that the first is on the screen before the next one starts.
const shared = (globalThis.isovizPlotly ??= { scripts: new Map(), turns: [], running: null, basic: null }); // shared by all components of a page

// The full plotly.js, which is the page's `Plotly`; Streamlit's charts may have loaded it already. Loading it blocks the browser for
// most of a second, so figures that need only the basic part go first.
export async function loadPlotly(path, element) {
  await nextTask();
  await shared.basic;
  if (!globalThis.Plotly) await loadScript(path);
  await waitForTurn(element);
  return withoutSharing(globalThis.Plotly);
}

// The part that draws lines and bars, a quarter of the size.
export function loadBasicPlotly(path, element) {
  const ready = basicInTurn(path, element);
  shared.basic = Promise.allSettled([shared.basic, ready]);
  return ready;
}

async function basicInTurn(path, element) {
  if (!globalThis.isovizBasicPlotly) await loadScript(path);
  await waitForTurn(element);
  return withoutSharing(globalThis.isovizBasicPlotly);
}

// Disables "Share chart", which would upload the figure to plotly's servers.
function withoutSharing(plotly) {
  plotly.setPlotConfig({ showSendToCloud: false, plotlyServerURL: "" });
  return plotly;
}

function loadScript(path) {
  if (!shared.scripts.has(path)) {
    const { href } = resolveUrl(path);
    // the script that the page's HTML requests early; once the page has loaded, it has either run or failed
    const existing = document.readyState !== "complete" && [...document.scripts].find((candidate) => candidate.src === href);
    const script = existing || document.createElement("script");
    const loaded = new Promise((resolve, reject) => {
      script.addEventListener("load", resolve);
      script.addEventListener("error", () => reject(new Error("plotly.js did not load")));
    });
    loaded.catch(() => {
      shared.scripts.delete(path); // the next call retries
      script.remove();
    });
    shared.scripts.set(path, loaded);
    if (!existing) document.head.append(Object.assign(script, { src: href }));
  }
  return shared.scripts.get(path);
}

function waitForTurn(element) {
  return new Promise((start) => {
    shared.turns.push({ start, element });
    shared.running ??= runTurns();
  });
}

async function runTurns() {
  await nextTask();
  while (shared.turns.length) {
    shared.turns.sort((one, other) => {
      const [a, b] = [one, other].map(({ element }) => element?.getBoundingClientRect() ?? { top: Infinity, left: 0 });
      return Math.sign(a.top - b.top) || a.left - b.left;
    });
    shared.turns.shift().start();
    await nextFrame();
  }
  shared.running = null;
}

// By then, all components mounted at the same time have joined the queue.
function nextTask() {
  return new Promise((resolve) => setTimeout(resolve));
}

// After the next frame; a hidden page draws none.
function nextFrame() {
  return new Promise((resolve) => {
    const later = () => setTimeout(resolve);
    if (document.hidden) later();
    else requestAnimationFrame(later);
  });
}
