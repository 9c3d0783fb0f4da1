// The events of a run with their timing, replayed up to any point. Pure: no DOM, no network.

const LONGEST_PAUSE = 5; // seconds; the run was idle between its end and its resumption

export class Recording {
  constructor() {
    this.rows = [];
    this.offsets = []; // of each row, in seconds since the first event
    this.startTime = 0; // seconds since 1970
    this.lastTime = null;
    this.rewind();
  }

  get duration() {
    return this.offsets.length ? this.offsets[this.offsets.length - 1] : 0;
  }

  // Appends rows `[seq, event]`, which come in order; skips those it has.
  add(rows) {
    for (const row of rows) {
      const [seq, event] = row;
      if (this.rows.length && seq <= this.rows[this.rows.length - 1][0]) continue;
      if (!this.rows.length) this.startTime = event.time;
      const gap = Math.max(0, event.time - (this.lastTime ?? event.time)); // the clock may have been set back
      this.offsets.push(this.duration + (event.kind === "resumed" || event.kind === "entered" ? Math.min(gap, LONGEST_PAUSE) : gap));
      this.lastTime = event.time;
      this.rows.push(row);
    }
  }

  rewind() {
    this.run = emptyRun();
    this.nextRow = 0; // the first row not yet played
  }

  // Folds all events up to `seconds` after the start. Returns the parts that changed.
  playTo(seconds) {
    const backwards = this.nextRow > 0 && this.offsets[this.nextRow - 1] > seconds;
    if (backwards) this.rewind();
    const from = this.nextRow;
    while (this.nextRow < this.rows.length && this.offsets[this.nextRow] <= seconds) this.nextRow += 1;
    const changed = fold(this.run, this.rows.slice(from, this.nextRow));
    return backwards ? new Set(["steps", "evaluated", "measured", "life"]) : changed;
  }
}
