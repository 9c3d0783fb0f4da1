// plotly.js from our own server, each of its two scripts once per page. Who waits for one goes on in turn, the upper ones of the page
// first: the first figure is on the screen before the next is begun.
const waiting = (globalThis.isovizPlotly ??= { scripts: new Map(), turns: [], going: null, basic: null }); // by all components of a page

// The whole of it, which is the page's `Plotly`: Streamlit's own charts may have brought it already. The browser is busy with it for
// most of a second, so the figures that do without go first.
export async function loadPlotly(path, element) {
  await together();
  await waiting.basic;
  if (!globalThis.Plotly) await once(path);
  await turn(element);
  return atHome(globalThis.Plotly);
}

// What draws lines and bars: a quarter of the size, so much sooner there. A new tab has it from the page's HTML (early_script.py).
export function loadBasicPlotly(path, element) {
  const mine = basicInTurn(path, element);
  waiting.basic = Promise.allSettled([waiting.basic, mine]);
  return mine;
}

async function basicInTurn(path, element) {
  if (!globalThis.isovizBasicPlotly) await once(path);
  await turn(element);
  return atHome(globalThis.isovizBasicPlotly);
}

// No figure of any page offers to send itself to the servers of plotly's makers ("Share chart"), and none could.
function atHome(plotly) {
  plotly.setPlotConfig({ showSendToCloud: false, plotlyServerURL: "" });
  return plotly;
}

function once(path) {
  if (!waiting.scripts.has(path)) {
    const { href } = addressOf(path);
    // one that the page's HTML has asked for, unless it did not come: the page is complete without it only then
    const loading = document.readyState !== "complete" && [...document.scripts].find((one) => one.src === href);
    const script = loading || document.createElement("script");
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
    waiting.going ??= takeTurns();
  });
}

async function takeTurns() {
  await together();
  while (waiting.turns.length) {
    const tops = waiting.turns.map(({ element }) => element?.getBoundingClientRect().top ?? Infinity);
    const [next] = waiting.turns.splice(tops.indexOf(Math.min(...tops)), 1);
    next.go();
    await nextFrame();
  }
  waiting.going = null;
}

// All that are mounted at the same time have asked by then.
function together() {
  return new Promise((resolve) => setTimeout(resolve));
}

// After the next frame; a page that no one looks at has none.
function nextFrame() {
  return new Promise((resolve) => {
    const next = () => setTimeout(resolve);
    if (document.hidden) next();
    else requestAnimationFrame(next);
  });
}
