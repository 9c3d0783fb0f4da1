// True values, of the distribution that a state draws from. Null if there is no closed form.

// The covariance is block-diagonal: D R D, plus s²/(2C) on the first C − 1 dimensions for C clusters at distance s.
function clusterVariance({ clusters, separation }) {
  return clusters > 1 ? (separation * separation) / (2 * clusters) : 0;
}

// (d, d), before rotation and scale.
export function trueCovariance(state, stretch) {
  const { d, block, rho, clusters } = state;
  const out = new Float64Array(d * d);
  for (let i = 0; i < d; i += 1) out[i * d + i] = stretch[i] * stretch[i] + (i < clusters - 1 ? clusterVariance(state) : 0);
  if (block < 2) return out;
  for (let start = 0; start < d; start += block) {
    const end = Math.min(start + block, d);
    for (let i = start; i < end; i += 1) for (let j = start; j < end; j += 1) if (i !== j) out[i * d + j] = rho * stretch[i] * stretch[j];
  }
  return out;
}

// Eigenvalues in descending order, computed block by block.
export function trueEigenvalues(covariance, { d, block, rho }) {
  const values = [];
  const size = rho ? block : 1;
  for (let start = 0; start < d; start += size) {
    const width = Math.min(size, d - start);
    const part = new Float64Array(width * width);
    for (let i = 0; i < width; i += 1) for (let j = 0; j < width; j += 1) part[i * width + j] = covariance[(start + i) * d + start + j];
    values.push(...(width > 1 ? finish(eigen(part, width)).values : part));
  }
  return Float64Array.from(values).sort().reverse().map((value) => Math.max(0, value));
}

// name → value, with the names of measure.js. rotated: the covariance after the rotation, before the scale.
export function trueNumbers(state, covariance, values, rotated) {
  const { d, shift, tails, clusters, separation, scale } = state;
  const [trace, squares] = [sumOf(values), sumOf(values.map((value) => value * value))];
  const ratio = trace * trace / squares;
  const score = (ratio - 1) / (d - 1);
  const rank = values.filter((value) => value > 1e-12 * values[0]).length;
  const separated = clusters > 1 && separation > 0;
  const spherical = !separated && values[0] - values[d - 1] <= 1e-12 * values[0];
  const centredAtOrigin = shift === 0;
  const numbers = {
    isoscore: score,
    isoscore_unbiased: score,
    isoscore_star: score,
    participation_ratio: ratio,
    ev_1: values[0] / trace,
    effective_rank: entropyRank(values),
    alpha_req: decayOf(values, rank, d),
    rogue_share: largestOnDiagonal(rotated, d) / trace,
    abs_correlation: meanCorrelation(rotated, d),
    rankme: centredAtOrigin ? entropyRank(values.map(Math.sqrt)) : null,
    mean_cosine: centredAtOrigin && (!separated || clusters === 2) ? 0 : null,
    uniformity: centredAtOrigin && spherical ? Math.log(hypergeometric(d / 2, 4)) - 4 : null,
    twonn: rank,
    local_dimension: rank,
    hubness: null,
    reciprocity: null,
    epps_pulley: null,
    massive_activation: null,
    i1: null,
    i2: null,
  };
  if (spherical && !centredAtOrigin && !tails) numbers.mean_cosine = coneCosine(d, shift * Math.sqrt(d), Math.sqrt(values[0]));
  if (centredAtOrigin && !separated && !tails) [numbers.i1, numbers.i2] = truePartition(values, scale);
  return numbers;
}

function sumOf(values) {
  return values.reduce((sum, value) => sum + value, 0);
}

// exp of the entropy of the shares.
export function entropyRank(values) {
  const total = sumOf(values);
  let entropy = 0;
  for (const value of values) if (value > 0) entropy -= (value / total) * Math.log(value / total);
  return Math.exp(entropy);
}

// α of the power law of values in descending order, `count` of which are above rounding errors and `possible` could be: weighted least
// squares of log λ on log rank, as in isoviz/metrics/spectrum.py.
export function decayOf(values, count, possible) {
  const size = possible - count <= Math.floor(Math.min(possible, 100) / 10) ? possible : count;
  const leftOut = Math.floor(Math.min(size, 100) / 10);
  const used = values.subarray(leftOut, Math.min(size - leftOut, 100));
  if (used.length < 2) return null;
  const ranks = Array.from(used, (_, i) => leftOut + i + 1);
  const middle = sumOf(ranks.map((rank) => Math.log(rank) / rank)) / sumOf(ranks.map((rank) => 1 / rank));
  let [cross, square] = [0, 0];
  ranks.forEach((rank, i) => {
    const x = Math.log(rank) - middle;
    cross -= (x * Math.log(used[i])) / rank;
    square += (x * x) / rank;
  });
  return cross / square;
}

function largestOnDiagonal(matrix, d) {
  let largest = 0;
  for (let i = 0; i < d; i += 1) largest = Math.max(largest, matrix[i * d + i]);
  return largest;
}

// Mean |ρ| of distinct dimensions that vary.
export function meanCorrelation(covariance, d) {
  const inverse = inverseSpreads(covariance, d);
  const count = inverse.filter((value) => value > 0).length;
  if (count < 2) return null;
  let sum = 0;
  for (let i = 0; i < d; i += 1) if (inverse[i]) sum += correlationsBefore(covariance, i, d, inverse);
  return (2 * sum) / (count * (count - 1));
}

function correlationsBefore(covariance, i, d, inverse) {
  let sum = 0;
  for (let j = 0; j < i; j += 1) sum += Math.min(1, Math.abs(covariance[i * d + j]) * inverse[i] * inverse[j]);
  return sum;
}

// 1/σ of each dimension, 0 where it does not vary: σ at most 1e-12 of the largest.
export function inverseSpreads(covariance, d) {
  const spreads = Float64Array.from({ length: d }, (_, i) => Math.sqrt(Math.max(0, covariance[i * d + i])));
  const threshold = 1e-12 * spreads.reduce((max, value) => Math.max(max, value), 0);
  return spreads.map((value) => (value > threshold ? 1 / value : 0));
}

// ₀F₁(b; x): the mean of exp(4 cos) over independent directions is ₀F₁(d/2; 4).
function hypergeometric(b, x) {
  let [term, total] = [1, 1];
  for (let k = 1; k < 80; k += 1) {
    term *= x / (k * (b + k - 1));
    total += term;
  }
  return total;
}

// ‖E x/‖x‖‖² of a spherical Gaussian cloud with standard deviation σ and mean at distance m. The mean direction has length
// Γ((d+1)/2)/Γ(d/2+1) · a · ₁F₁(½; d/2+1; −a²)
// with a = m/(σ√2). Kummer's e^−y ₁F₁(d/2+½; d/2+1; y) has positive terms only; they are summed with their logarithm.
export function coneCosine(d, distance, spread) {
  const y = (distance / spread) ** 2 / 2;
  let [logTerm, sum, shift] = [0, 1, 0];
  for (let k = 0; k < 20000; k += 1) {
    logTerm += Math.log((d / 2 + 0.5 + k) / ((d / 2 + 1 + k) * (k + 1))) + Math.log(y);
    if (logTerm > shift + 200) { // rescale before exp overflows
      sum *= Math.exp(shift - logTerm);
      shift = logTerm;
    }
    const term = Math.exp(logTerm - shift);
    sum += term;
    if (k > y && term < 1e-18 * sum) break;
  }
  const resultant = Math.exp(halfGammaRatio(d) + 0.5 * Math.log(y) - y + shift + Math.log(sum));
  return resultant * resultant;
}

// log Γ((d + 1)/2) − log Γ(d/2 + 1), step by step from d = 1 or 2.
function halfGammaRatio(d) {
  let value = d % 2 ? Math.log(2 / Math.sqrt(Math.PI)) : Math.log(Math.sqrt(Math.PI) / 2);
  for (let k = d % 2 ? 1 : 2; k < d; k += 2) value += Math.log((k + 1) / (k + 2));
  return value;
}

// I1 and I2 of infinitely many Gaussian points: Z(v) of an eigenvector grows like exp(λ/2).
function truePartition(values, scale) {
  const logs = values.map((value) => (value * scale * scale) / 2);
  return partitionOf(logs);
}

// (I1, I2) from log Z.
export function partitionOf(logs) {
  const largest = logs.reduce((max, value) => Math.max(max, value), -Infinity);
  const relative = logs.map((value) => Math.exp(value - largest));
  const mean = sumOf(relative) / relative.length;
  const squares = sumOf(relative.map((value) => (value - mean) ** 2)) / mean ** 2;
  return [relative.reduce((min, value) => Math.min(min, value), Infinity), Math.sqrt(squares / relative.length)];
}
