// The worker's end: takes the latest state, sends answers, and drops what a newer state has overtaken.

const SLICE = 6; // milliseconds of work between two looks for a newer state

export function serve(port) {
  const engine = new Engine();
  const { port1, port2 } = new MessageChannel(); // a pause in which messages are heard, without a timer's delay
  let [latest, busy, resume] = [null, false, null];
  port2.onmessage = () => resume();
  const breathe = () => new Promise((done) => ((resume = done), port1.postMessage(0)));

  const work = async () => {
    busy = true;
    while (latest) {
      const { id, state, paused } = latest;
      latest = null;
      try {
        await answer(id, state, paused);
      } catch (error) {
        port.postMessage({ id, part: "failed", message: String(error?.stack ?? error) });
      }
    }
    busy = false;
  };

  const answer = async (id, state, paused) => {
    let since = performance.now();
    for (const step of engine.steps(state, paused)) {
      if (step?.answer) port.postMessage({ id, ...step.answer });
      if (performance.now() - since < SLICE) continue;
      await breathe();
      if (latest) return;
      since = performance.now();
    }
  };

  port.onmessage = ({ data }) => {
    if (data.ask === "cloud") {
      port.postMessage({ id: data.id, part: "cloud", ...engine.cloudOf(data.state, data) });
      return;
    }
    latest = data;
    if (!busy) work();
  };
}
