// What compression costs in neighbours: dimensions × bits × a rotation, each with the share of a row's 10 nearest rows that it keeps, as
// `neighbour_recall` of isoviz/readouts/cosines.py counts it. In the worker.

const QUERIES = 300; // evenly spaced rows whose neighbours among all rows are compared
const TOGETHER = 100; // queries multiplied at a time
const BLOCK = 256; // rows rotated at a time
const KEPT = 10; // neighbours
const TIED = 1e-6; // cosines closer than this are tied
export const ROTATIONS = ["none", "pca", "whitening"];

// Yields { done } shares of the work, and { point: { rotation, bits, k, bytes, recall, error } }. error: the standard error of the mean.
// axes: of `principalAxes`.
export function* frontierOf(cloud, axes) {
  const { n, d } = cloud;
  const queries = pairedRows(n, QUERIES);
  const widths = widthsOf(d);
  const passes = 1 + ROTATIONS.length * BITS.length;
  let done = 0;
  const truth = [];
  for (const { q, cosines } of cosinesOf(cloud.points, queries, n, d, [d])) {
    if (cosines) truth[q] = nearestOf(cosines, queries[q]);
    yield;
  }
  for (const rotation of ROTATIONS) {
    const points = yield* rotated(cloud, axes, rotation);
    for (const bits of BITS) {
      done += 1;
      yield { done: done / passes };
      const coded = bits === 32 ? points : bits === 8 ? inSteps(points, n, d) : signs(points, n, d);
      const recalls = widths.map(() => new Float64Array(queries.length));
      for (const { q, w, cosines } of cosinesOf(coded, queries, n, d, widths)) {
        if (cosines) recalls[w][q] = recallOf(truth[q], cosines, queries[q]);
        yield;
      }
      for (const [w, k] of widths.entries()) yield { point: { rotation, bits, k, bytes: Math.ceil((k * bits) / 8), ...summaryOf(recalls[w]) } };
      if (coded !== points) release(coded);
    }
    if (points !== cloud.points) release(points);
  }
}

// d, then halves down to 8: at most four.
export function widthsOf(d) {
  return [d, d >> 1, d >> 2, d >> 3].filter((k, at) => at === 0 || k >= 8);
}

// The points, or their principal coordinates, whitened or not; single precision as they would be stored.
function* rotated({ n, d, points, mean }, { spreads, vectors }, rotation) {
  if (rotation === "none") return points;
  const factors = whiteningFactors(spreads, d, rotation === "pca" ? 0 : 1, 0);
  const out = new Float32Array(n * d);
  for (let start = 0; start < n; start += BLOCK) {
    const along = yield* productOf(rowsOf(points, Math.min(BLOCK, n - start), d, { from: start * d, mean }), rowsOf(vectors, d, d));
    for (let at = 0; at < along.length; at += 1) out[start * d + at] = along[at] * factors[at % d];
  }
  return out;
}

// Each number as the nearest of 256 values between its dimension's ends.
function inSteps(points, n, d) {
  const [low, high] = [new Float64Array(d).fill(Infinity), new Float64Array(d).fill(-Infinity)];
  eachNumber(n, d, (at, j) => {
    if (points[at] < low[j]) low[j] = points[at];
    if (points[at] > high[j]) high[j] = points[at];
  });
  const step = low.map((start, j) => (high[j] - start) / 255 || 1);
  const out = new Float32Array(n * d);
  eachNumber(n, d, (at, j) => (out[at] = low[j] + Math.floor((points[at] - low[j]) / step[j] + 0.5) * step[j]));
  return out;
}

// 1 where a number exceeds its dimension's mean, else −1.
function signs(points, n, d) {
  const mean = meanOf(points, n, d);
  const out = new Int8Array(n * d);
  eachNumber(n, d, (at, j) => (out[at] = points[at] > mean[j] ? 1 : -1));
  return out;
}

function eachNumber(n, d, act) {
  for (let i = 0, at = 0; i < n; i += 1) for (let j = 0; j < d; j += 1, at += 1) act(at, j);
}

// For each query q, its cosines with all rows in the first widths[w] dimensions, in one buffer; {} in between, for pauses.
function* cosinesOf(points, queries, n, d, widths) {
  const lengths = widths.map((k) => Float64Array.from({ length: n }, (_, i) => Math.sqrt(squaresOf(points, i * d, k))));
  const cosines = new Float64Array(n);
  const room = new Float64Array(Math.min(TOGETHER, queries.length) * n);
  for (let first = 0; first < queries.length; first += TOGETHER) {
    const block = queries.subarray(first, first + TOGETHER);
    const own = rowsAt(points, block, d);
    const products = room.subarray(0, block.length * n).fill(0);
    let from = 0;
    for (let w = widths.length - 1; w >= 0; from = widths[w], w -= 1) { // from the smallest width: each adds its further dimensions
      const part = { from, row: d };
      for (const _ of productOf(rowsOf(own, block.length, widths[w] - from, part), rowsOf(points, n, widths[w] - from, part), products)) yield {};
      for (const [at, query] of block.entries()) {
        for (let i = 0; i < n; i += 1) cosines[i] = products[at * n + i] / (lengths[w][query] * lengths[w][i] || Infinity);
        yield { q: first + at, w, cosines };
      }
    }
  }
  release(room);
}

// The k-th largest of the values without one row.
function atPlace(values, k, without) {
  const top = new Float64Array(k).fill(-Infinity); // ascending
  for (let i = 0; i < values.length; i += 1) {
    if (values[i] <= top[0] || i === without) continue;
    let at = 0;
    for (; at + 1 < k && top[at + 1] < values[i]; at += 1) top[at] = top[at + 1];
    top[at] = values[i];
  }
  return top[0];
}

function nearestOf(cosines, query) {
  const last = atPlace(cosines, Math.min(KEPT, cosines.length - 1), query) - TIED;
  const found = [];
  for (let i = 0; i < cosines.length; i += 1) if (i !== query && cosines[i] >= last) found.push(i);
  return found;
}

// A tie at the last place counts as the mean over all orders.
function recallOf(neighbours, cosines, query) {
  const k = Math.min(KEPT, cosines.length - 1);
  const last = atPlace(cosines, k, query);
  let [above, tied] = [0, 0];
  for (let i = 0; i < cosines.length; i += 1) {
    if (i === query) continue;
    if (cosines[i] > last + TIED) above += 1;
    else if (cosines[i] >= last - TIED) tied += 1;
  }
  const chance = (k - above) / tied;
  let found = 0;
  for (const i of neighbours) found += cosines[i] > last + TIED ? 1 : cosines[i] >= last - TIED ? chance : 0;
  return found / k;
}

function summaryOf(recalls) {
  const recall = recalls.reduce((sum, value) => sum + value, 0) / recalls.length;
  const square = recalls.reduce((sum, value) => sum + (value - recall) ** 2, 0);
  return { recall, error: recalls.length > 1 ? Math.sqrt(square / (recalls.length - 1) / recalls.length) : null };
}
