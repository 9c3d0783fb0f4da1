// Folds the event rows of one run into the data of its charts. Pure: no DOM, no network.

const TRAINING = { phase: "training", detail: "" };
const ENDINGS = new Set(["finished", "stopped", "failed", "diverged", "lost"]);

export function emptyRun() {
  return {
    cursor: 0, // sequence number of the last row seen
    started: null, // the `started` event of the newest attempt
    phase: null, // the newest `entered` event
    steps: [], // `stepped` events, by step
    evaluated: new Map(), // epoch -> `evaluated` event
    measured: new Map(), // epoch -> {seq, event}
    ending: null, // the event that ended the newest attempt
  };
}

// Adds rows `[seq, event]` to `run`. Returns the parts that changed: "steps", "evaluated", "measured", "life".
export function fold(run, rows) {
  const changed = new Set();
  for (const [seq, event] of rows) {
    if (seq <= run.cursor) continue;
    run.cursor = seq;
    const kind = event.kind;
    if (kind === "stepped") {
      dropBeyond(run, event.step - 1, changed, ["steps"]);
      run.steps.push(event);
      run.phase = TRAINING;
      changed.add("steps");
    } else if (kind === "evaluated") {
      run.evaluated.set(event.epoch, event);
      changed.add("evaluated");
    } else if (kind === "measured") {
      run.measured.set(event.epoch, { seq, event });
      changed.add("measured");
    } else if (kind === "started") {
      run.started = event;
      run.phase = TRAINING;
      run.ending = null;
      dropBeyond(run, event.first_step, changed);
      changed.add("life");
    } else if (kind === "resumed") {
      dropBeyond(run, event.step, changed);
      changed.add("life");
    } else if (kind === "entered") {
      run.phase = event;
      run.ending = null;
      changed.add("life");
    } else if (ENDINGS.has(kind)) {
      run.ending = event;
      changed.add("life");
    }
  }
  return changed;
}

// A resumed run repeats the steps after its checkpoint, so the earlier attempt's events for them no longer apply.
function dropBeyond(run, step, changed, parts = ["steps", "evaluated", "measured"]) {
  if (parts.includes("steps")) {
    while (run.steps.length && run.steps[run.steps.length - 1].step > step) {
      run.steps.pop();
      changed.add("steps");
    }
  }
  for (const [part, stepOf] of [["evaluated", (v) => v.step], ["measured", (v) => v.event.step]]) {
    if (!parts.includes(part)) continue;
    for (const [epoch, value] of run[part]) {
      if (stepOf(value) > step) {
        run[part].delete(epoch);
        changed.add(part);
      }
    }
  }
}

export function lastStep(run) {
  return run.steps.length ? run.steps[run.steps.length - 1] : null;
}

// Epochs in order, as [epoch, value].
export function byEpoch(map) {
  return [...map.entries()].sort((a, b) => a[0] - b[0]);
}
