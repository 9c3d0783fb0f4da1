// The engine on vectors from files: the answers of engine.js without true values and redraws, then the order of the dimensions, the
// ruler and, on request, the neighbours of a row.

const BLOCK = 256; // rows centred at a time: a centred copy of a large file would take twice its memory
const REST = 50; // milliseconds of work between two rests of the frontier
const RULER_ROWS = 3000; // as in `isoviz.cosines`
const GRID = 2001; // cosines of the ruler that the page keeps

export class OwnEngine extends Engine {
  // "open" reads files; the next state is computed on them. "neighbours": the rows with the highest cosines to a row.
  // "frontier": see frontier.js.
  async answer(data, post) {
    if (data.ask === "neighbours") post({ part: "neighbours", row: data.row, found: this.neighbours(data) });
    else if (data.ask === "frontier") await this.frontier(post);
    else await this.open(data, post);
  }

  async frontier(post) {
    const { own } = this;
    let begun = performance.now();
    for (const step of frontierOf(finish(this.cloud()))) {
      if (step?.point) post({ part: "frontier", ...step });
      if (performance.now() - begun < REST) continue;
      if (step?.done) post({ part: "frontier", done: step.done });
      await new Promise((resolve) => setTimeout(resolve)); // other questions and states come in between
      if (this.own !== own) return;
      begun = performance.now();
    }
    post({ part: "frontier", ended: true });
  }

  async open(data, post) {
    try {
      this.own = await readFiles(data.files, (text) => post({ part: "progress", text }));
    } catch (error) {
      if (!(error instanceof FileError)) console.error(error);
      post({ part: "refused", problem: error.message });
      return;
    }
    [this.axes, this.cache] = [{}, new Cache()];
    const { name, n, d, columns } = this.own;
    post({ part: "opened", name, n, d, columns });
  }

  *cloud() {
    const { values: points, n, d, columns } = this.own;
    return yield* this.cache.getOrCompute("own", [], function* () {
      const mean = meanOf(points, n, d);
      yield;
      const covariance = yield* covarianceOf(points, mean, n, d);
      const originals = n;
      return { n, d, points, mean, covariance, originals, known: null, labels: colouring(columns.label), shift: 0, scale: 1, rounds: null };
    });
  }

  *steps(state) {
    if (!this.own) {
      yield { answer: { part: "settled" } };
      return;
    }
    for (const step of super.steps(state, true)) {
      if (step?.answer?.part === "settled") yield* this.afterwards();
      yield step;
    }
  }

  *truth() {
    return { numbers: {}, curve: null };
  }

  *redraws() {}

  *after(cloud, state) {
    if (!state.transforms.length) return null;
    return yield* this.cache.getOrCompute("after", state.transforms, () => transformed(cloud, state.transforms));
  }

  *afterwards() {
    const cloud = yield* this.cloud();
    const order = yield* this.cache.getOrCompute("order", [], () => clusteredOrder(cloud));
    yield { answer: { part: "order", order } };
    const labels = this.own.columns.label;
    const ruler = yield* this.cache.getOrCompute("ruler", [], () => rulerOf(cloud, labels));
    yield { answer: { part: "ruler", ...ruler } };
  }

  neighbours({ row, count }) {
    const { values, n, d } = this.own;
    const length = (i) => Math.sqrt(squaresOf(values, i * d, d));
    const own = length(row);
    const found = [];
    for (let i = 0; i < n; i += 1) {
      if (i === row) continue;
      let inner = 0;
      for (let j = 0; j < d; j += 1) inner += values[row * d + j] * values[i * d + j];
      const product = own * length(i);
      if (product > 0) found.push([i, inner / product]);
    }
    return found.sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, count);
  }
}

export function* covarianceOf(points, mean, n, d) {
  const total = new Float64Array(d * d);
  for (let start = 0; start < n; start += BLOCK) {
    const rows = Math.min(BLOCK, n - start);
    const across = new Float64Array(d * rows);
    for (let i = 0; i < rows; i += 1) for (let j = 0; j < d; j += 1) across[j * rows + i] = points[(start + i) * d + j] - mean[j];
    const part = yield* productOf(across, across, d, d, rows);
    for (let i = 0; i < d; i += 1) for (let j = 0; j <= i; j += 1) total[i * d + j] += part[i * d + j];
    yield;
  }
  for (let i = 0; i < d; i += 1) for (let j = 0; j <= i; j += 1) total[j * d + i] = total[i * d + j] /= n - 1;
  return total;
}

// Average linkage of 1 − |ρ| by chains of nearest neighbours; the order of its leaves, heavier branches first.
function* clusteredOrder({ covariance, d }) {
  const inverse = inverseSpreads(covariance, d);
  const distance = new Float32Array(d * d);
  for (let i = 0; i < d; i += 1) for (let j = 0; j < d; j += 1) distance[i * d + j] = 1 - Math.min(1, Math.abs(covariance[i * d + j]) * inverse[i] * inverse[j]);
  const groups = Array.from({ length: d }, (_, i) => [i]);
  const open = new Set(groups.keys());
  const chain = [];
  while (open.size > 1) {
    if (!chain.length) chain.push(open.values().next().value);
    const tip = chain.at(-1);
    let [best, near] = [chain.at(-2) ?? -1, Infinity];
    if (best >= 0) near = distance[tip * d + best];
    for (const other of open) if (other !== tip && distance[tip * d + other] < near) [best, near] = [other, distance[tip * d + other]];
    if (best !== chain.at(-2)) {
      chain.push(best);
      continue;
    }
    chain.splice(-2);
    const [first, second] = groups[tip].length >= groups[best].length ? [tip, best] : [best, tip];
    const [a, b] = [groups[first].length, groups[second].length];
    for (const other of open) distance[first * d + other] = distance[other * d + first] = (a * distance[first * d + other] + b * distance[second * d + other]) / (a + b);
    groups[first] = [...groups[first], ...groups[second]];
    open.delete(second);
    yield;
  }
  return Int32Array.from(groups[open.values().next().value]);
}

// Cosines of unrelated pairs: all pairs, or those of different labels; of at most `RULER_ROWS` evenly spaced rows.
export function* rulerOf({ n, d, points }, labels) {
  const m = Math.min(n, RULER_ROWS);
  const rows = Int32Array.from({ length: m }, (_, i) => Math.floor((i * n) / m));
  const unit = new Float64Array(m * d);
  for (let i = 0; i < m; i += 1) {
    const length = Math.sqrt(squaresOf(points, rows[i] * d, d));
    if (!(length > 0)) return { levels: null, problem: `row ${rows[i] + 1} has length 0, so it has no cosine` };
    for (let j = 0; j < d; j += 1) unit[i * d + j] = points[rows[i] * d + j] / length;
  }
  const cosines = new Float32Array((m * (m - 1)) / 2);
  let count = 0;
  const block = new Float64Array(4 * m);
  for (let i = 0; i < m; i += 4) {
    for (let j = 0; j < Math.min(i + 4, m); j += 4) tile(unit, unit, i, j, m, m, d, block, m, i * m);
    for (let r = i; r < Math.min(i + 4, m); r += 1) {
      for (let c = 0; c < r; c += 1) if (!labels || labels[rows[r]] !== labels[rows[c]]) cosines[count++] = block[(r - i) * m + c];
    }
    if (i % 16 === 0) yield;
  }
  if (!count) return { levels: null, problem: "all rows have the same label, so no pair is unrelated" };
  const sorted = cosines.subarray(0, count).sort();
  yield;
  return { rows: m, pairs: count, levels: SHARES.map((share) => quantile(sorted, share)), grid: Float32Array.from({ length: GRID }, (_, k) => quantile(sorted, k / (GRID - 1))) };
}

function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const low = Math.floor(place);
  return sorted[low] + (place - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}
