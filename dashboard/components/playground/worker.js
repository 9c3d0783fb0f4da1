// Runs in the worker: computes the latest state and abandons it when a newer one arrives.

const SLICE = 6; // milliseconds of work between checks for a newer state

export function serve(port, engine = new Engine()) {
  const { port1, port2 } = new MessageChannel(); // yields to incoming messages without a timer's delay
  let [pending, busy, resume] = [null, false, null];
  port2.onmessage = () => resume();
  const yieldToMessages = () => new Promise((resolve) => ((resume = resolve), port1.postMessage(0)));

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
      if (performance.now() - sliceStart < SLICE) continue;
      await yieldToMessages();
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
    if (!busy) work();
  };
}
