// The measures of `isoviz.metrics` on one cloud, in float64, by the same definitions and with the same thresholds.
// A cloud: { n, d, points, mean, covariance, shift, scale, rounds, originals, eps } with points and mean before shift, rotation and scale;
// invariant measures skip rotation and scale. eps: the resolution of the points' number type, if not double precision.

const EPS = 2.220446049250313e-16;
const EQUAL = 1e-6; // distances that differ by a smaller share are equally far
const TWIN = 64 * EPS; // of a squared distance to the squared lengths, up to which two points are one
const COPIES = [2 ** -11, 2 ** -16]; // of a distance to the longer point's length: half precision; single precision and small noise
const APART = 32; // times such a distance, by how much points that are no copies must lie apart
const NARROW = 2 ** -19; // directions narrower than this share of the widest hold rounding errors only
export const NEIGHBOURS = 10;
const DIRECTIONS = 32; // along which points are multiplied at a time
export const MAX_PAIRED = 2000; // points used for pairs; larger clouds are sampled

// Numbers that need no eigenvalues: name → value, or null if undefined, with the reason in `problems`.
export function closedNumbers(cloud, known, zeta, problems) {
  const { n, d, mean, covariance, shift, eps = EPS } = cloud;
  const { trace, squares } = traces(covariance, d);
  const { quartic, cosine, zeros } = rowSums(cloud);
  const numbers = { isoscore: null, isoscore_unbiased: null, isoscore_star: null, participation_ratio: null, mean_cosine: cosine };
  if (cosine === null) problems.mean_cosine = `needs at least 2 nonzero vectors, got ${n - zeros}`;
  let collapsed = true;
  for (let j = 0; j < d; j += 1) if (!(covariance[j * d + j] <= (eps * (mean[j] + shift)) ** 2)) collapsed = false;
  cloud.collapsed = collapsed;
  if (collapsed) {
    for (const name of ["isoscore", "isoscore_unbiased", "isoscore_star", "participation_ratio"]) problems[name] = "all points are equal";
    return numbers;
  }
  numbers.participation_ratio = (trace * trace) / squares;
  if (d === 1) {
    problems.isoscore = problems.isoscore_unbiased = problems.isoscore_star = "d = 1, there is only one direction";
    return numbers;
  }
  numbers.isoscore = (numbers.participation_ratio - 1) / (d - 1);
  numbers.isoscore_unbiased = n < 4 ? null : unbiasedScore({ trace, squares, quartic }, n, d);
  if (numbers.isoscore_unbiased === null) problems.isoscore_unbiased = n < 4 ? `needs at least 4 points, got ${n}` : "the points differ only in mutually orthogonal directions; use more points";
  else if (isWhite(covariance, d, numbers.participation_ratio, squares / trace, squares)) {
    numbers.isoscore_unbiased = null;
    problems.isoscore_unbiased = WHITENED;
  }
  if (known) {
    const mixed = mixedTraces(covariance, known, d, zeta);
    numbers.isoscore_star = ((mixed.trace * mixed.trace) / mixed.squares - 1) / (d - 1);
  }
  return numbers;
}

export const WHITENED = "these rows were whitened on themselves, so they are not independent draws";

// Whether the covariance is a multiple of a projection of rank 2 or more, which independent draws never give.
function isWhite(covariance, d, ratio, mean, squares) {
  if (Math.round(ratio) < 2 || Math.abs(ratio - Math.round(ratio)) > 1e-7 * ratio) return false;
  const difference = finish(productOf(rowsOf(covariance, d, d))).map((value, at) => value - mean * covariance[at]);
  return squaresOf(difference, 0, d * d) <= (1e-3 * mean) ** 2 * squares;
}

// From tr S, ‖S‖² and Q = Σ‖x̃‖⁴/(n − 1); null if undefined.
function unbiasedScore({ trace, squares, quartic }, n, d) {
  const c = (n - 1) / (n * (n - 2) * (n - 3));
  const u = c * ((n - 1) * (n - 2) * squares + trace * trace - n * quartic);
  const v = c * (2 * squares + (n * n - 3 * n + 1) * trace * trace - n * quartic);
  return u > 1e-6 * squares ? (v / u - 1) / (d - 1) : null;
}

function traces(matrix, d) {
  let [trace, squares] = [0, 0];
  for (let i = 0; i < d; i += 1) {
    trace += matrix[i * d + i];
    squares += squaresOf(matrix, i * d, d);
  }
  return { trace, squares };
}

function squaresOf(values, from, count) {
  let sum = 0;
  for (let k = from; k < from + count; k += 1) sum += values[k] * values[k];
  return sum;
}

function mixedTraces(first, second, d, zeta) {
  let [trace, squares] = [0, 0];
  for (let i = 0, at = 0; i < d; i += 1) {
    let rowSum = 0;
    for (let j = 0; j < d; j += 1, at += 1) {
      const value = (1 - zeta) * first[at] + zeta * second[at];
      rowSum += value * value;
    }
    squares += rowSum;
    trace += (1 - zeta) * first[i * d + i] + zeta * second[i * d + i];
  }
  return { trace, squares };
}

// Q = Σ‖x̃‖⁴/(n − 1), and the mean cosine (‖Σû‖² − n)/(n(n − 1)) over nonzero vectors.
export function rowSums({ n, d, points, mean, shift }) {
  const total = new Float64Array(d);
  let [quartic, zeros] = [0, 0];
  for (let i = 0; i < n; i += 1) {
    const [squared, length] = lengthsOf(points, mean, i * d, d, shift);
    quartic += squared * squared;
    if (length > 0) addUnit(total, points, i * d, d, shift, 1 / Math.sqrt(length));
    else zeros += 1;
  }
  const nonzero = n - zeros;
  return { quartic: quartic / (n - 1), zeros, cosine: nonzero < 2 ? null : (squaresOf(total, 0, d) - nonzero) / (nonzero * (nonzero - 1)) };
}

function lengthsOf(points, mean, at, d, shift) {
  let [squared, length] = [0, 0];
  for (let j = 0; j < d; j += 1) {
    const value = points[at + j];
    const centred = value - mean[j];
    squared += centred * centred;
    length += (value + shift) * (value + shift);
  }
  return [squared, length];
}

function addUnit(total, points, at, d, shift, inverse) {
  for (let j = 0; j < d; j += 1) total[j] += (points[at + j] + shift) * inverse;
}

// Numbers that depend on the axes: σ of each dimension (divisor n), the largest dimension's share, |ρ| as bytes, and mean |ρ|.
export function dimensionNumbers({ n, d, scale, collapsed }, rotated, problems) {
  const inverse = inverseSpreads(rotated, d);
  const sigma = new Float64Array(d);
  let [trace, widest] = [0, 0];
  for (let i = 0; i < d; i += 1) {
    const variance = Math.max(0, rotated[i * d + i]);
    sigma[i] = scale * Math.sqrt((variance * (n - 1)) / n);
    trace += variance;
    widest = Math.max(widest, variance);
  }
  const cells = new Uint8Array(d * d);
  for (let i = 0; i < d; i += 1) paintRow(cells, rotated, i, d, inverse);
  const mean = collapsed ? null : meanCorrelation(rotated, d);
  if (mean === null) problems.abs_correlation = collapsed ? "all points are equal" : "fewer than two dimensions vary";
  if (collapsed) problems.rogue_share = "all points are equal";
  return { values: { rogue_share: collapsed ? null : widest / trace, abs_correlation: mean }, sigma, cells };
}

function paintRow(cells, covariance, i, d, inverse) {
  for (let j = 0; j < d; j += 1) cells[i * d + j] = Math.min(255, Math.round(255 * Math.abs(covariance[i * d + j]) * inverse[i] * inverse[j]));
  cells[i * d + i] = 255;
}

function withoutRounding(values, size) {
  const threshold = size * EPS * values[0];
  return values.map((value) => (value <= threshold ? 0 : value));
}

// Parts of a cloud's numbers that need eigenvalues or pairs: name → (cloud) → { values, problems, … }.
export const SLOWER = { spectrum: spectrumNumbers, pairs: pairNumbers, entries: entryNumbers, origin: originNumbers };

// EV_k, the effective rank and the decay of the spectrum; also the first three principal directions.
export function* spectrumNumbers(cloud) {
  const problems = {};
  if (cloud.collapsed) {
    problems.ev_1 = problems.effective_rank = problems.alpha_req = "all points are equal";
    return { values: { ev_1: null, effective_rank: null, alpha_req: null }, problems, curve: [], axes: null };
  }
  const { n, d } = cloud;
  const small = needsPoints(cloud);
  const matrix = small ? yield* productOf(rowsOf(cloud.points, n, d, { mean: cloud.mean })) : cloud.covariance;
  const size = small ? n : d;
  const found = yield* eigen(matrix, size, Math.min(3, size));
  const values = withoutRounding(found.values, size);
  const total = values.reduce((sum, value) => sum + value, 0);
  let sum = 0;
  const curve = Float64Array.from(values, (value) => (sum += value) / total).subarray(0, Math.min(n, d));
  const decay = decayOf(values, values.filter((value) => value > NARROW ** 2 * values[0]).length, Math.min(n - 1, d));
  if (decay === null) problems.alpha_req = "the points vary in one direction only";
  const count = found.vectors.length / size;
  const axes = small ? yield* productOf(rowsOf(found.vectors, count, n), columnsOf(cloud.points, n, d, cloud.mean)) : found.vectors;
  for (let k = 0; k < count; k += 1) scaleRow(axes, k * d, d, 1 / (Math.sqrt(squaresOf(axes, k * d, d)) || 1));
  return { values: { ev_1: curve[0], effective_rank: entropyRank(values), alpha_req: decay }, problems, curve, axes };
}

// Whether the spectrum needs the points: with few of them it is that of their products.
export const needsPoints = ({ n, d }) => 2 * n < d;

// RankMe, and the logits of I1 and I2: for each eigenvector of XᵀX the coordinates of all points along it (n) at scale 1, or what
// `kept` makes of them; none of a matrix with more than `most` eigenvectors.
export function* originNumbers(cloud, kept = null, most = Infinity) {
  const { n, d, points, mean, covariance, shift, scale = 1 } = cloud;
  const problems = {};
  const small = n < d;
  const shifted = shift ? points.map((value) => value + shift) : points;
  let matrix;
  if (small) matrix = yield* productOf(rowsOf(shifted, n, d));
  else {
    matrix = covariance.map((value) => value * (n - 1));
    for (let i = 0; i < d; i += 1) for (let j = 0; j < d; j += 1) matrix[i * d + j] += n * (mean[i] + shift) * (mean[j] + shift);
  }
  const size = small ? n : d;
  const { values, vectors } = yield* eigen(matrix, size, size > most ? 0 : size);
  release(matrix);
  if (!(values[0] > 0)) {
    problems.rankme = "all points are zero";
    return { values: { rankme: null }, problems, logits: [Math.log(n)] }; // Z is n
  }
  const significant = withoutRounding(values, size);
  const result = { values: { rankme: entropyRank(significant.map(Math.sqrt)) }, problems, logits: [] };
  if (size > most) {
    problems.i1 = problems.i2 = `needs the eigenvectors, which this page computes up to ${most} dimensions`;
    return result;
  }
  const positive = significant.filter((value) => value > 0);
  // Along directions in which the points are short, Z is n, whichever of them rounding chooses.
  if (positive.some((value, k) => k > 0 && positive[k - 1] - value <= 1e-9 * positive[0] * Math.min(1, scale * Math.sqrt(value / n)))) {
    problems.i1 = problems.i2 = "some directions have equal spread, so the eigenvectors are not unique";
    return result;
  }
  const step = small ? 1 : DIRECTIONS;
  const room = kept && !small ? new Float64Array(step * n) : null;
  for (let k = 0; k < (small ? positive.length : d); k += step) {
    const count = Math.min(step, size - k);
    const along = small ? vectors.slice(k * n, (k + 1) * n).map((u) => u * Math.sqrt(positive[k])) : yield* productOf(rowsOf(vectors, count, d, { from: k * d }), rowsOf(shifted, n, d), room?.fill(0));
    for (let row = 0; row < count; row += 1) {
      const one = along.subarray(row * n, (row + 1) * n);
      result.logits.push(kept ? kept(one) : one);
    }
  }
  if (room) release(room, vectors);
  return result;
}

// (I1, I2) of the logits, or of log Z itself. In directions without variance, Z is n.
export function partitionNumbers(logits, { n, d, scale }) {
  if (!logits.length) return { i1: null, i2: null };
  const logs = logits.map((along) => (typeof along === "number" ? along : logSum(along, scale)));
  while (logs.length < d) logs.push(Math.log(n));
  const [i1, i2] = partitionOf(Float64Array.from(logs));
  return { i1, i2 };
}

// log Z along an eigenvector. Its sign points towards the sum of the points or, if that is only rounding, towards the furthest point.
export function logSum(along, scale = 1) {
  let [sum, size, min, max] = [0, 0, Infinity, -Infinity];
  for (const value of along) {
    sum += value;
    size += Math.abs(value);
    min = Math.min(min, value);
    max = Math.max(max, value);
  }
  const flipped = Math.abs(sum) > 1e-11 * size ? sum < 0 : max < -min;
  const sign = flipped ? -scale : scale;
  const largest = flipped ? -scale * min : scale * max;
  let total = 0;
  for (const value of along) total += Math.exp(sign * value - largest);
  return largest + Math.log(total);
}

// The largest entry over the median one, in magnitude, of at most MAX_PAIRED points.
export function* entryNumbers({ n, d, points, shift, rounds }) {
  const problems = {};
  const rows = pairedRows(n);
  const sizes = rowsAt(points, rows, d);
  if (shift) for (let at = 0; at < sizes.length; at += 1) sizes[at] += shift;
  rotateRows(sizes, rows.length, d, rounds);
  for (let at = 0; at < sizes.length; at += 1) sizes[at] = Math.abs(sizes[at]);
  const middle = smallest(sizes, (sizes.length - 1) >> 1);
  if (!(middle > 0)) problems.massive_activation = "the median entry is 0";
  return { values: { massive_activation: middle > 0 ? sizes.reduce((max, value) => Math.max(max, value), 0) / middle : null }, problems };
}

// The k-th smallest value, from 0, by Hoare's quickselect, which reorders the values.
function smallest(values, k) {
  for (let low = 0, high = values.length - 1; low < high; ) {
    const pivot = values[(low + high) >> 1];
    let [i, j] = [low - 1, high + 1];
    for (;;) {
      do i += 1; while (values[i] < pivot);
      do j -= 1; while (values[j] > pivot);
      if (i >= j) break;
      const value = values[i];
      values[i] = values[j];
      values[j] = value;
    }
    if (k <= j) high = j;
    else low = j + 1;
  }
  return values[k];
}

// ---- pairs of points

// Rows used for pairs: all, or evenly spaced ones.
export function pairedRows(count, most = MAX_PAIRED) {
  const m = Math.min(count, most);
  return Int32Array.from({ length: m }, (_, i) => Math.floor((i * count) / m));
}

export function rowsAt(points, rows, d) {
  const out = new points.constructor(rows.length * d);
  rows.forEach((row, i) => out.set(points.subarray(row * d, (row + 1) * d), i * d));
  return out;
}

export function* pairNumbers(cloud) {
  const problems = {};
  const { n, originals } = cloud; // others are copies
  const rows = pairedRows(n);
  const all = yield* pairsOf(cloud, rows, true);
  const values = { uniformity: all.uniformity, epps_pulley: all.normality, hubness: null, reciprocity: null, twonn: null, local_dimension: null };
  if (values.epps_pulley === null) problems.epps_pulley = all.m < 3 ? "needs at least 3 points" : "all points are equal";
  if (values.uniformity === null) problems.uniformity = "needs at least 2 nonzero vectors";
  if (cloud.collapsed) problems.hubness = problems.reciprocity = problems.twonn = problems.local_dimension = "all points are equal";
  if (cloud.collapsed) return { values, problems };
  const distinct = yield* withoutCopies(cloud, rows, all);
  if (distinct.m <= NEIGHBOURS + 1) problems.hubness = problems.reciprocity = `needs at least ${NEIGHBOURS + 2} distinct points, got ${distinct.m}`;
  else {
    const graph = yield* graphOf(distinct.chosen, cloud.d, distinct);
    values.hubness = hubnessOf(graph, distinct.k, problems);
    values.reciprocity = reciprocityOf(graph, distinct.k);
  }
  const drawn = pairedRows(originals);
  const first = originals < n ? yield* withoutCopies(cloud, drawn, yield* pairsOf(cloud, drawn)) : distinct;
  values.twonn = twonnOf(first, problems);
  values.local_dimension = localDimensionOf(first, problems);
  return { values, problems, copies: rows.length - distinct.m };
}

// The pairs of the rows without copies. If copies cannot be told from neighbours, only rows that are equal up to rounding are left out.
function* withoutCopies(cloud, rows, all) {
  return (yield* copiesOf(cloud, rows, all.links))?.found ?? (yield* withoutTwins(cloud, rows, all));
}

// For each row the place of the first row of its group, with the pairs of these rows; null without copies. As in isoviz/metrics/copies.py:
// rows nearer than a tolerance, in chains, are copies if the others lie much farther apart.
export function* copiesOf(cloud, rows, links) {
  for (const [level, tolerance] of COPIES.entries()) {
    const leaders = rows.map((_, i) => leaderOf(links[level], i));
    const firsts = rows.filter((_, i) => leaders[i] === i);
    if (firsts.length === rows.length) break;
    if (firsts.length < 2) continue;
    const found = yield* pairsOf(cloud, firsts);
    const spacings = Float64Array.from(found.sizes, (size, i) => found.distances[i * found.k] / size).sort();
    const middle = firsts.length >> 1;
    if ((spacings[middle] + spacings[(firsts.length - 1) >> 1]) / 2 >= APART * tolerance) return { leaders, found };
  }
  return null;
}

function leaderOf(links, i) {
  while (links[i] !== i) i = links[i] = links[links[i]];
  return i;
}

// Joins the groups of two rows at each tolerance that their squared distance does not exceed, of a squared length.
export function link(links, i, j, squared, length) {
  for (let level = 0; level < COPIES.length && squared <= COPIES[level] ** 2 * length; level += 1) {
    const [a, b] = [leaderOf(links[level], i), leaderOf(links[level], j)];
    links[level][Math.max(a, b)] = Math.min(a, b);
  }
}

export const unlinked = (count) => COPIES.map(() => Int32Array.from({ length: count }, (_, i) => i));

function* withoutTwins(cloud, rows, found) {
  const { m, k, indices, distances, lengths } = found;
  const copies = new Set();
  for (let i = 0; i < m; i += 1) {
    const j = indices[i * k];
    if (distances[i * k] ** 2 <= TWIN * (lengths[i] + lengths[j])) copies.add(Math.max(i, j));
  }
  if (!copies.size) return found;
  const distinct = rows.filter((_, i) => !copies.has(i));
  return distinct.length < 3 ? { m: distinct.length } : yield* withoutTwins(cloud, distinct, yield* pairsOf(cloud, distinct));
}

// Nearest neighbours (rows, k) with exact distances, the uniformity and, if `normal`, the Epps–Pulley statistic.
function* pairsOf({ n, d, points, mean: meanOfAll, shift, collapsed }, rows, normal = false) {
  const m = rows.length;
  const chosen = m < n ? rowsAt(points, rows, d) : points;
  const mean = m < n ? meanOf(chosen, m, d) : meanOfAll;
  const [lengths, sizes, alongMean] = [new Float64Array(m), new Float64Array(m), new Float64Array(m)];
  const shiftedMean = mean.map((value) => value + shift);
  const shiftedMeanSquare = squaresOf(shiftedMean, 0, d);
  for (let i = 0; i < m; i += 1) {
    let [square, along, size] = [0, 0, 0];
    for (let j = 0; j < d; j += 1) {
      const value = chosen[i * d + j];
      const centred = value - mean[j];
      square += centred * centred;
      along += centred * shiftedMean[j];
      size += (value + shift) * (value + shift);
    }
    [lengths[i], alongMean[i], sizes[i]] = [square, along, Math.sqrt(size)];
  }
  const k = Math.min(NEIGHBOURS, m - 1);
  const near = Math.min(k + 2, m - 1);
  const nearest = { distances: new Float64Array(m * near).fill(Infinity), indices: new Int32Array(m * near).fill(-1), near };
  const links = unlinked(m);
  const cosines = { lengths: sizes, alongMean, square: shiftedMeanSquare, sum: 0, pairs: 0, links };
  const unit = (m * d) / lengths.reduce((sum, value) => sum + value, 0); // scales the mean variance to 1
  const directions = normal && !collapsed && m > 2 ? { unit, along: meanOverDirections(d, 2 * unit * lengths.reduce((max, value) => Math.max(max, value), 0)), sum: 0 } : null;
  for (const block of rowProducts(chosen, m, d, mean)) {
    yield;
    for (let i = block?.first; i < block?.end; i += 1) {
      accumulateRow(block.products, (i - block.first) * block.end, i, lengths, nearest, cosines);
      if (directions) accumulateDirections(block.products, (i - block.first) * block.end, i, lengths, directions);
      if (i % 16 === 0) yield;
    }
  }
  const exact = exactNeighbours(chosen, m, d, nearest, k);
  const uniformity = cosines.pairs ? Math.log(cosines.sum / cosines.pairs) - 4 : null;
  const normality = directions && Math.sqrt(2 * Math.PI) * (1 + (2 * directions.sum) / m - Math.SQRT2 * lengths.reduce((sum, value) => sum + directions.along((unit * value) / 4), 0) + m / Math.sqrt(3));
  return { m, k, ...exact, chosen, lengths, sizes, links, uniformity, normality };
}

function accumulateDirections(block, at, i, lengths, directions) {
  const { unit, along } = directions;
  for (let j = 0; j < i; j += 1) directions.sum += along(Math.max(0, (unit * (lengths[i] + lengths[j] - 2 * block[at + j])) / 2));
}

// s ↦ mean of exp(−s a₁²) over unit vectors a, for 0 ≤ s ≤ largest: √r times a polynomial of r = 1/(1 + 2s/d), as in
// isoviz/metrics/gaussian.py. The mean is an integral over a₁ = tanh u, for which the trapezoidal rule is accurate to rounding.
export function meanOverDirections(d, largest) {
  if (d === 1) return (s) => Math.exp(-s);
  const integral = (s) => {
    const step = Math.min(0.125, 0.25 / Math.sqrt(s + (d - 1) / 2));
    let [sum, term] = [1, 1];
    for (let u = step; term > 1e-18 * sum; u += step) sum += 2 * (term = Math.exp((1 - d) * Math.log(Math.cosh(u)) - s * Math.tanh(u) ** 2));
    return step * sum;
  };
  const [count, whole, least] = [65, integral(0), 1 / (1 + (2 * largest) / d)];
  const angles = Array.from({ length: count }, (_, k) => (Math.PI * (k + 0.5)) / count);
  const values = angles.map((angle) => {
    const r = least + ((1 - least) * (Math.cos(angle) + 1)) / 2;
    return integral(((1 / r - 1) * d) / 2) / (whole * Math.sqrt(r));
  });
  const coefficients = angles.map((_, j) => ((j ? 2 : 1) / count) * values.reduce((sum, value, k) => sum + value * Math.cos(j * angles[k]), 0));
  while (Math.abs(coefficients.at(-1)) <= 1e-14 * Math.abs(coefficients[0])) coefficients.pop();
  return (s) => {
    const r = 1 / (1 + (2 * s) / d);
    const x = (r - least) * (2 / (1 - least)) - 1;
    let b = 0;
    let before = 0;
    for (let j = coefficients.length - 1; j > 0; j -= 1) {
      const next = 2 * x * b - before + coefficients[j];
      before = b;
      b = next;
    }
    return Math.sqrt(r) * (x * b - before + coefficients[0]);
  };
}

// Processes row i of the Gram matrix up to column i − 1: updates the neighbours of both points and the uniformity.
function accumulateRow(block, at, i, lengths, nearest, cosines) {
  const { near, distances } = nearest;
  const { lengths: sizes, alongMean, links } = cosines;
  const [squaredLength, size, projection, last] = [lengths[i], sizes[i], alongMean[i] + cosines.square, near - 1];
  let [sum, pairs] = [0, 0];
  for (let j = 0; j < i; j += 1) {
    const inner = block[at + j];
    const squared = squaredLength + lengths[j] - 2 * inner;
    if (squared < distances[i * near + last]) insertNeighbour(nearest, i, j, squared);
    if (squared < distances[j * near + last]) insertNeighbour(nearest, j, i, squared);
    link(links, i, j, squared, Math.max(size, sizes[j]) ** 2);
    const product = size * sizes[j];
    if (product > 0) {
      sum += Math.exp((4 * (inner + projection + alongMean[j])) / product);
      pairs += 1;
    }
  }
  cosines.sum += sum;
  cosines.pairs += pairs;
}

function insertNeighbour({ distances, indices, near }, i, j, squared) {
  let at = (i + 1) * near - 1;
  for (; at > i * near && distances[at - 1] > squared; at -= 1) {
    distances[at] = distances[at - 1];
    indices[at] = indices[at - 1];
  }
  distances[at] = squared;
  indices[at] = j;
}

// Candidates come from the Gram matrix; their distances are recomputed from differences, which avoids cancellation.
function exactNeighbours(rows, m, d, { indices, near }, k) {
  const distances = new Float64Array(m * k);
  const chosen = new Int32Array(m * k);
  const beyond = new Float64Array(m).fill(Infinity); // distances of the nearest points after them
  for (let i = 0; i < m; i += 1) {
    const candidates = [];
    for (let c = 0; c < near; c += 1) {
      const j = indices[i * near + c];
      if (j >= 0) candidates.push([Math.sqrt(squaredDistance(rows, i * d, j * d, d)), j]);
    }
    candidates.sort((a, b) => a[0] - b[0]);
    for (let c = 0; c < k; c += 1) [distances[i * k + c], chosen[i * k + c]] = candidates[c];
    if (candidates.length > k) beyond[i] = candidates[k][0];
  }
  return { distances, beyond, indices: chosen };
}

function squaredDistance(rows, first, second, d) {
  let sum = 0;
  for (let j = 0; j < d; j += 1) {
    const step = rows[first + j] - rows[second + j];
    sum += step * step;
  }
  return sum;
}

// Which points are neighbours of each point, ascending, and how likely (isoviz/metrics/nearest.py, graph): points as far as the k-th
// are tied with it, and any order of them is as likely as any other.
function* graphOf(rows, d, { m, k, indices, distances, beyond }) {
  const graph = [];
  for (let i = 0; i < m; i += 1) {
    const last = distances[(i + 1) * k - 1];
    if (beyond[i] > last * (1 + EQUAL)) {
      graph.push({ to: indices.slice(i * k, (i + 1) * k).sort(), chance: new Float64Array(k).fill(1) });
      continue;
    }
    const [to, chance] = [[], []];
    for (let j = 0; j < m; j += 1) {
      const apart = j === i ? Infinity : Math.sqrt(squaredDistance(rows, i * d, j * d, d));
      if (apart > last * (1 + EQUAL)) continue;
      to.push(j);
      chance.push(apart < last * (1 - EQUAL) ? 1 : 0);
    }
    const nearer = chance.reduce((sum, value) => sum + value, 0);
    const share = (k - nearer) / (to.length - nearer);
    graph.push({ to: Int32Array.from(to), chance: Float64Array.from(chance, (value) => value || share) });
    if (i % 16 === 0) yield;
  }
  return graph;
}

function hubnessOf(graph, k, problems) {
  const m = graph.length;
  const counts = new Float64Array(m);
  for (const { to, chance } of graph) to.forEach((j, at) => (counts[j] += chance[at]));
  let [second, third] = [0, 0];
  for (const count of counts) {
    second += (count - k) ** 2 / m;
    third += (count - k) ** 3 / m;
  }
  if (second > EQUAL ** 2) return third / second ** 1.5;
  problems.hubness = "every point is a neighbour of equally many points";
  return null;
}

// Share of pairs (i, j), j a neighbour of i, where i is also a neighbour of j.
function reciprocityOf(graph, k) {
  let mutual = 0;
  graph.forEach(({ to, chance }, i) => to.forEach((j, at) => (mutual += chance[at] * chanceOf(graph[j], i))));
  return mutual / (graph.length * k);
}

function chanceOf({ to, chance }, i) {
  let [low, high] = [0, to.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (to[middle] < i) low = middle + 1;
    else high = middle;
  }
  return to[low] === i ? chance[low] : 0;
}

function localDimensionOf({ m, k, distances }, problems) {
  if (m <= NEIGHBOURS) {
    problems.local_dimension = `needs at least ${NEIGHBOURS + 1} distinct points, got ${m}`;
    return null;
  }
  let sum = 0;
  for (let at = 0; at < m * k; at += 1) sum += Math.log(distances[at - (at % k) + k - 1] / distances[at]);
  if (sum > m * (k - 1) * EQUAL) return (m * (k - 1)) / sum;
  problems.local_dimension = "all neighbours are equally far";
  return null;
}

function twonnOf({ m, k, distances }, problems) {
  if (m < 3) {
    problems.twonn = `needs at least 3 distinct points, got ${m}`;
    return null;
  }
  const ratios = Array.from({ length: m }, (_, i) => distances[i * k + 1] / distances[i * k]).sort((a, b) => a - b);
  let [cross, square] = [0, 0];
  for (let i = 0; i < Math.floor(m * (1 - 0.1)); i += 1) {
    const log = Math.log(ratios[i]);
    cross -= log * Math.log1p(-(i + 1) / m);
    square += log * log;
  }
  if (square > Math.floor(m * (1 - 0.1)) * EQUAL ** 2) return cross / square;
  problems.twonn = "no point's second neighbour is farther than its first";
  return null;
}
