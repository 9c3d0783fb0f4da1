// What compression costs in neighbours: dimensions × bits × a rotation, each with the share of a row's 10 nearest rows that it keeps, as
// `neighbour_recall` of isoviz/readouts/cosines.py counts it. In the worker.

const QUERIES = 300; // evenly spaced rows whose neighbours among all rows are compared
const KEPT = 10; // neighbours
const TIED = 1e-6; // cosines closer than this are tied
export const ROTATIONS = ["none", "pca", "whitening"];

// Yields { done } shares of the work, and { point: { rotation, bits, k, bytes, recall, error } }. error: the standard error of the mean.
export function* frontierOf(cloud) {
  const { n, d } = cloud;
  const count = Math.min(n, QUERIES);
  const queries = Int32Array.from({ length: count }, (_, q) => Math.floor((q * n) / count));
  const widths = widthsOf(d);
  const passes = 1 + ROTATIONS.length * BITS.length;
  let done = 0;
  const truth = [];
  for (const { q, cosines } of cosinesOf(cloud.points, queries, n, d, [d])) {
    truth.push(nearestOf(cosines[0], queries[q]));
    yield { done: (done + (q + 1) / count) / passes };
  }
  for (const rotation of ROTATIONS) {
    const points = yield* rotated(cloud, rotation);
    for (const bits of BITS) {
      done += 1;
      const coded = bits === 32 ? points : bits === 8 ? inSteps(points, n, d) : signs(points, n, d);
      yield {};
      const recalls = widths.map(() => new Float64Array(count));
      for (const { q, cosines } of cosinesOf(coded, queries, n, d, widths)) {
        cosines.forEach((each, w) => (recalls[w][q] = recallOf(truth[q], each, queries[q])));
        yield { done: (done + (q + 1) / count) / passes };
      }
      for (const [w, k] of widths.entries()) yield { point: { rotation, bits, k, bytes: (k * bits) / 8, ...summaryOf(recalls[w]) } };
    }
  }
}

// d, then halves down to 8: at most four.
export function widthsOf(d) {
  return [d, d >> 1, d >> 2, d >> 3].filter((k, at) => at === 0 || k >= 8);
}

// The points, or their principal coordinates, whitened or not; single precision as they would be stored.
function* rotated(cloud, rotation) {
  const { n, d, points, mean } = cloud;
  if (rotation === "none") return points;
  const { spreads, vectors } = yield* principalAxes(cloud);
  const factors = whiteningFactors(spreads, d, rotation === "pca" ? 0 : 1, 0);
  const out = new Float32Array(n * d);
  for (let start = 0; start < n; start += BLOCK) {
    const rows = Math.min(BLOCK, n - start);
    const centred = new Float64Array(rows * d);
    for (let i = 0; i < rows; i += 1) for (let j = 0; j < d; j += 1) centred[i * d + j] = points[(start + i) * d + j] - mean[j];
    const along = yield* productOf(centred, vectors, rows, d, d);
    for (let at = 0; at < along.length; at += 1) out[start * d + at] = along[at] * factors[at % d];
  }
  return out;
}

// Each number as the nearest of 256 values between its dimension's ends.
function inSteps(points, n, d) {
  const [low, high] = [new Float64Array(d).fill(Infinity), new Float64Array(d).fill(-Infinity)];
  for (let at = 0; at < n * d; at += 1) {
    low[at % d] = Math.min(low[at % d], points[at]);
    high[at % d] = Math.max(high[at % d], points[at]);
  }
  const step = low.map((start, j) => (high[j] - start) / 255);
  return Float32Array.from(points, (value, at) => low[at % d] + Math.floor((value - low[at % d]) / (step[at % d] || 1) + 0.5) * step[at % d]);
}

// 1 where a number exceeds its dimension's mean, else −1.
function signs(points, n, d) {
  const mean = meanOf(points, n, d);
  return Int8Array.from(points, (value, at) => (value > mean[at % d] ? 1 : -1));
}

// For each query, its cosines with all rows in the first k dimensions, for every width k (descending), in one pass.
function* cosinesOf(points, queries, n, d, widths) {
  const steps = [...widths].reverse();
  const lengths = steps.map(() => new Float64Array(n));
  for (let i = 0; i < n; i += 1) {
    let [sum, j] = [0, 0];
    steps.forEach((k, s) => {
      for (; j < k; j += 1) sum += points[i * d + j] * points[i * d + j];
      lengths[s][i] = Math.sqrt(sum);
    });
  }
  for (const [q, query] of queries.entries()) {
    const cosines = steps.map(() => new Float64Array(n));
    const own = Float64Array.from(points.subarray(query * d, (query + 1) * d));
    for (let i = 0; i < n; i += 1) {
      let [sum, j] = [0, 0];
      for (let s = 0; s < steps.length; s += 1) {
        for (const at = i * d; j < steps[s]; j += 1) sum += own[j] * points[at + j];
        const product = lengths[s][query] * lengths[s][i];
        cosines[s][i] = product > 0 ? sum / product : 0;
      }
    }
    yield { q, cosines: cosines.reverse() };
  }
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
