// plotly.js from our own server, each of its two scripts once per page. Who waits for one goes on in turn, the upper ones of the page
// first: the first figure is on the screen before the next is begun.
const waiting = (globalThis.isovizPlotly ??= { scripts: new Map(), turns: [], busy: false }); // by all component scripts of a page

// The whole of it, which is the page's `Plotly`: Streamlit's own charts may have brought it already.
export async function loadPlotly(path, element) {
  if (!globalThis.Plotly) await once(path);
  await turn(element);
  return globalThis.Plotly;
}

// What draws lines and bars: a quarter of the size, so much sooner there. A new tab has it from the page's HTML (early_script.py).
export async function loadBasicPlotly(path, element) {
  if (!globalThis.isovizBasicPlotly) await once(path);
  await turn(element);
  return globalThis.isovizBasicPlotly;
}

function once(path) {
  if (!waiting.scripts.has(path)) {
    const { href } = addressOf(path);
    const loading = [...document.scripts].find((one) => one.src === href);
    const script = loading ?? document.createElement("script");
    const arrival = new Promise((resolve, reject) => {
      script.addEventListener("load", resolve);
      script.addEventListener("error", () => reject(new Error("plotly.js did not load")));
    });
    arrival.catch(() => {
      waiting.scripts.delete(path); // the next one to ask begins anew
      script.remove();
    });
    waiting.scripts.set(path, arrival);
    if (!loading) document.head.append(Object.assign(script, { src: href }));
  }
  return waiting.scripts.get(path);
}

function turn(element) {
  return new Promise((go) => {
    waiting.turns.push({ go, element });
    if (!waiting.busy) takeTurns();
  });
}

async function takeTurns() {
  waiting.busy = true;
  await new Promise((resolve) => setTimeout(resolve)); // all that are mounted together have come by then
  while (waiting.turns.length) {
    const tops = waiting.turns.map(({ element }) => element?.getBoundingClientRect().top ?? Infinity);
    const [next] = waiting.turns.splice(tops.indexOf(Math.min(...tops)), 1);
    next.go();
    await nextFrame();
  }
  waiting.busy = false;
}

// After the next frame; a page that nobody looks at has none.
function nextFrame() {
  return new Promise((resolve) => {
    const next = () => setTimeout(resolve);
    if (document.hidden) next();
    else requestAnimationFrame(next);
  });
}
