// The events of a run with the time between them, played again as far as one likes. Pure: no DOM, no network.

const LONGEST_PAUSE = 5; // seconds: between an ending and its resumption no one trained

export class Recording {
  constructor() {
    this.rows = [];
    this.at = []; // seconds since the first event, of each row
    this.begin = 0; // seconds since 1970
    this.last = null;
    this.rewind();
  }

  get duration() {
    return this.at.length ? this.at[this.at.length - 1] : 0;
  }

  // Rows `[seq, event]` in order, each once.
  add(rows) {
    for (const row of rows) {
      const [seq, event] = row;
      if (this.rows.length && seq <= this.rows[this.rows.length - 1][0]) continue;
      if (!this.rows.length) this.begin = event.time;
      const waited = Math.max(0, event.time - (this.last ?? event.time)); // a clock that was set back makes no time
      this.at.push(this.duration + (event.kind === "resumed" || event.kind === "entered" ? Math.min(waited, LONGEST_PAUSE) : waited));
      this.last = event.time;
      this.rows.push(row);
    }
  }

  rewind() {
    this.run = emptyRun();
    this.next = 0; // the first row that is not played yet
  }

  // Fold what happened until so many seconds after the beginning, and say which parts changed.
  playTo(seconds) {
    const back = this.next > 0 && this.at[this.next - 1] > seconds;
    if (back) this.rewind();
    const first = this.next;
    while (this.next < this.rows.length && this.at[this.next] <= seconds) this.next += 1;
    const changed = fold(this.run, this.rows.slice(first, this.next));
    return back ? new Set(["steps", "evaluated", "measured", "life"]) : changed;
  }
}
