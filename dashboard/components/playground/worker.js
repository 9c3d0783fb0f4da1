// Runs in the worker: computes the latest state and abandons it when a newer one arrives.

const SLICE = 6; // milliseconds of work between checks for a newer state

export function serve(port, engine = new Engine()) {
  let [pending, busy, interrupt] = [null, false, null];
  const pause = pauses();

  const work = async () => {
    busy = true;
    while (pending) {
      const { id, state, paused } = pending;
      pending = null;
      try {
        await respond(id, state, paused);
      } catch (error) {
        port.postMessage({ id, part: "failed", message: String(error?.stack ?? error) });
      }
    }
    busy = false;
  };

  const respond = async (id, state, paused) => {
    let sliceStart = performance.now();
    for (const step of engine.steps(state, paused)) {
      if (step?.answer) port.postMessage({ id, ...step.answer });
      if (step instanceof Promise) await Promise.race([step, new Promise((resolve) => (interrupt = resolve))]);
      else if (performance.now() - sliceStart < SLICE) continue;
      else await pause();
      if (pending) return;
      sliceStart = performance.now();
    }
  };

  port.onmessage = ({ data }) => {
    if (data.ask) {
      engine.answer(data, (message) => port.postMessage({ id: data.id, ...message }));
      return;
    }
    pending = data;
    interrupt?.();
    if (!busy) work();
  };
}

// A function that lets waiting messages in, without a timer's delay.
function pauses() {
  const { port1, port2 } = new MessageChannel();
  let resume = null;
  port2.onmessage = () => resume();
  return () => new Promise((resolve) => ((resume = resolve), port1.postMessage(0)));
}
