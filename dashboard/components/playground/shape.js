// The cloud of a state: x = c ((w z) L D + m_k + t 1) Q. Rows of normal numbers z with weight w (tails); L makes blocks of correlated
// dimensions, D stretches dimensions (spectrum, rogue dimension), m_k is the centre of the row's cluster, t the mean shift, Q the
// rotation, c the scale. The sums of the base cloud w z are cached; changing any later step costs O(d²), and O(d) per point.

// Variances of the dimensions, with mean 1.
export function spectrumOf({ d, spectrum, decay, rank, floor }) {
  const family = {
    flat: () => 1,
    power: (j) => (j + 1) ** -decay,
    exponential: (j) => Math.exp((-decay * j) / (d - 1)),
    step: (j) => (j < rank ? 1 : floor),
  }[spectrum];
  const values = Float64Array.from({ length: d }, (_, j) => family(j));
  const mean = values.reduce((sum, value) => sum + value, 0) / d;
  return values.map((value) => value / mean);
}

// The diagonal of D.
export function stretchOf(state) {
  const stretch = spectrumOf(state).map(Math.sqrt);
  stretch[state.rogue - 1] *= state.rogueScale;
  return stretch;
}

// L of one block of b dimensions is a I + e 1 1ᵀ, the symmetric root of (1 − ρ) I + ρ 1 1ᵀ.
function rootOf(rho, size) {
  const a = Math.sqrt(1 - rho);
  return [a, (Math.sqrt(1 - rho + size * rho) - a) / size];
}

// Cluster centres (clusters, d): a regular simplex around the origin in the first dimensions, with edge length `separation`.
export function centresOf({ d, clusters, separation }) {
  const out = new Float64Array(clusters * d);
  for (let k = 1; k < clusters; k += 1) { // Helmert's rows: dimension k − 1 separates cluster k from the clusters before it
    const unit = (separation / Math.SQRT2) / Math.sqrt(k * (k + 1));
    for (let c = 0; c < k; c += 1) out[c * d + k - 1] = unit;
    out[k * d + k - 1] = -k * unit;
  }
  return out;
}

// The rotation as rounds of plane rotations: round s rotates dimensions j and j + 2^s. Angles grow continuously with the slider; at 1
// each is between 28° and 74° in either direction.
export function rotationOf({ d, seed, rotation }) {
  if (!rotation) return null;
  const stream = new Stream(seed, 0, 0, PARTS.rotation);
  const rounds = [];
  for (let step = 1; step < d; step *= 2) {
    const [low, cosine, sine] = [[], [], []];
    for (let j = 0; j + step < d; j += 1) {
      if (j & step) continue;
      const u = 2 * stream.uniform() - 1;
      const t = rotation * (u < 0 ? -0.25 + 0.5 * u : 0.25 + 0.5 * u);
      low.push(j);
      cosine.push((1 - t * t) / (1 + t * t));
      sine.push((2 * t) / (1 + t * t));
    }
    rounds.push({ step, low, cosine, sine });
  }
  return rounds;
}

// Rows (count, d) times Q, in place.
export function rotateRows(rows, count, d, rounds) {
  for (const { step, low, cosine, sine } of rounds ?? []) {
    for (let r = 0; r < count; r += 1) turnPairs(rows, r * d, step, low, cosine, sine);
  }
  return rows;
}

function turnPairs(rows, at, step, low, cosine, sine) {
  for (let k = 0; k < low.length; k += 1) {
    const j = at + low[k];
    const x = rows[j];
    const y = rows[j + step];
    rows[j] = cosine[k] * x - sine[k] * y;
    rows[j + step] = sine[k] * x + cosine[k] * y;
  }
}

// Qᵀ A Q of a symmetric (d, d) matrix: rotates its rows, then those of its transpose.
export function rotatedMatrix(matrix, d, rounds) {
  if (!rounds) return matrix;
  const once = transposed(rotateLines(Float64Array.from(matrix), d, rounds), d, d);
  return rotateLines(once, d, rounds);
}

function rotateLines(matrix, d, rounds) { // Qᵀ A: rotates rows j and j + step
  for (const { step, low, cosine, sine } of rounds) {
    for (let k = 0; k < low.length; k += 1) turnRows(matrix, low[k] * d, (low[k] + step) * d, d, cosine[k], sine[k]);
  }
  return matrix;
}

// The first three axes of the rotated cloud, as rows (3, d) in coordinates before the rotation.
export function firstAxes(d, rounds) {
  const count = Math.min(3, d);
  const axes = new Float64Array(count * d);
  for (let k = 0; k < count; k += 1) axes[k * d + k] = 1;
  for (const { step, low, cosine, sine } of [...(rounds ?? [])].reverse()) {
    for (let r = 0; r < count; r += 1) turnPairs(axes, r * d, step, low, cosine, sine.map((value) => -value));
  }
  return axes;
}

// The base cloud: w z (n, d), a label for each row, and the number of distinct rows. draw: 0 for the displayed cloud, else the redraw.
export function* drawBase({ d, n, seed, tails, clusters, duplicates }, draw = 0) {
  const points = new Float64Array(n * d);
  const labels = new Uint8Array(n);
  const originals = n - Math.min(n - 1, Math.round(duplicates * n));
  const rowsPerSlice = Math.ceil(1e5 / d);
  for (let i = 0; i < n; i += 1) {
    if (i % rowsPerSlice === rowsPerSlice - 1) yield;
    const stream = new Stream(seed, draw, i, PARTS.label);
    const label = stream.uniform();
    if (i >= originals) {
      const from = Math.floor(stream.uniform() * originals);
      points.copyWithin(i * d, from * d, (from + 1) * d);
      labels[i] = labels[from];
      continue;
    }
    labels[i] = Math.floor(label * clusters);
    new Stream(seed, draw, i, PARTS.coordinates).fill(points, i * d, d);
    if (tails) scaleRow(points, i * d, d, Math.sqrt((tails - 2) / chiSquared(new Stream(seed, draw, i, PARTS.tail), tails)));
  }
  return { points, labels, originals };
}

function scaleRow(points, from, count, weight) {
  for (let k = from; k < from + count; k += 1) points[k] *= weight;
}

function chiSquared(stream, degrees) {
  let sum = 0;
  for (let k = 0; k < degrees; k += 1) sum += stream.normal() ** 2;
  return sum;
}

// Sums of the base cloud: mean (d), scatter (d, d), and per cluster its size and its sum of centred rows (clusters, d).
export function* baseSums({ points, labels }, { n, d, clusters }) {
  const mean = meanOf(points, n, d);
  const centred = subtractMean(points, mean, n, d);
  yield;
  const scatter = yield* productOf(columnsOf(centred, n, d));
  const sizes = new Float64Array(clusters);
  const sums = new Float64Array(clusters * d);
  for (let i = 0; i < n; i += 1) {
    sizes[labels[i]] += 1;
    addTo(sums, labels[i] * d, centred, i * d, d);
  }
  return { mean, scatter, sizes, sums };
}

function addTo(sums, at, rows, from, d) {
  for (let j = 0; j < d; j += 1) sums[at + j] += rows[from + j];
}

// From the first point on: equal points have exactly this mean, and points far from the origin keep their digits.
export function meanOf(points, n, d) {
  const sums = new Float64Array(d);
  for (let i = 1, at = d; i < n; i += 1) for (let j = 0; j < d; j += 1, at += 1) sums[j] += points[at] - points[j];
  return sums.map((sum, j) => points[j] + sum / n);
}

export function subtractMean(points, mean, n, d) {
  const out = new Float64Array(n * d);
  for (let i = 0, at = 0; i < n; i += 1) for (let j = 0; j < d; j += 1, at += 1) out[at] = points[at] - mean[j];
  return out;
}

const correlates = ({ block, rho }) => block > 1 && rho !== 0;

// Rows (count, d) times L D, into a new array.
export function shapedRows(rows, count, d, state, stretch) {
  const { block, rho } = state;
  const out = new Float64Array(count * d);
  if (!correlates(state)) {
    for (let i = 0, at = 0; i < count; i += 1) for (let j = 0; j < d; j += 1, at += 1) out[at] = rows[at] * stretch[j];
    return out;
  }
  for (let start = 0; start < d; start += block) {
    const end = Math.min(start + block, d);
    const [a, e] = rootOf(rho, end - start);
    for (let i = 0; i < count; i += 1) {
      const at = i * d;
      let sum = 0;
      for (let j = start; j < end; j += 1) sum += rows[at + j];
      sum *= e;
      for (let j = start; j < end; j += 1) out[at + j] = (a * rows[at + j] + sum) * stretch[j];
    }
  }
  return out;
}

// The scatter (d, d) of the cloud before rotation and scale: D L S L D plus the contribution of the cluster centres.
export function shapedScatter(sums, state, stretch, centres) {
  const { d, clusters } = state;
  const scatter = correlates(state) ? blockScatter(sums.scatter, state, stretch) : stretchedScatter(sums.scatter, d, stretch);
  if (clusters < 2 || !state.separation) return scatter;
  const along = shapedRows(sums.sums, clusters, d, state, stretch);
  const mean = clusterMean(sums.sizes, centres, d);
  const dimensions = clusters - 1;
  for (let k = 0; k < clusters; k += 1) {
    for (let j = 0; j < dimensions; j += 1) {
      const centre = centres[k * d + j];
      for (let i = 0; i < d; i += 1) {
        scatter[i * d + j] += along[k * d + i] * centre;
        scatter[j * d + i] += along[k * d + i] * centre;
      }
      for (let i = 0; i < dimensions; i += 1) scatter[i * d + j] += sums.sizes[k] * (centres[k * d + i] - mean[i]) * (centre - mean[j]);
    }
  }
  return scatter;
}

function blockScatter(scatter, state, stretch) {
  const { d } = state;
  const half = shapedRows(scatter, d, d, state, stretch); // S L D
  return shapedRows(transposed(half, d, d), d, d, state, stretch); // (S L D)ᵀ L D, symmetric
}

function stretchedScatter(scatter, d, stretch) {
  const out = new Float64Array(d * d);
  for (let i = 0; i < d; i += 1) {
    const factor = stretch[i];
    for (let j = 0, at = i * d; j < d; j += 1, at += 1) out[at] = scatter[at] * (factor * stretch[j]);
  }
  return out;
}

export function clusterMean(sizes, centres, d) {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const out = new Float64Array(d);
  for (let k = 0; k < sizes.length; k += 1) for (let j = 0; j < d; j += 1) out[j] += (sizes[k] / total) * centres[k * d + j];
  return out;
}

// The points (n, d) before shift, rotation and scale.
export function shapedPoints({ points, labels }, state, stretch, centres) {
  const { n, d, clusters } = state;
  const out = shapedRows(points, n, d, state, stretch);
  const dimensions = state.separation ? Math.min(clusters - 1, d) : 0;
  for (let i = 0; i < n; i += 1) for (let j = 0; j < dimensions; j += 1) out[i * d + j] += centres[labels[i] * d + j];
  return out;
}

// The final points (n, d): shifted, rotated, scaled.
export function placedPoints(points, { n, d, shift, scale }, rounds) {
  const out = rotateRows(points.map((value) => value + shift), n, d, rounds);
  return scale === 1 ? out : out.map((value) => value * scale);
}
