// The cloud of a state: x = c ((w z) L D + m_k + t 1) Q. Rows of normal numbers z with weight w (tails); L makes blocks of correlated
// dimensions, D stretches dimensions (spectrum, rogue dimension), m_k is the centre of the row's cluster, t the mean shift, Q the
// rotation, c the scale. Of the base cloud w z the sums stay; a move of what comes after it costs O(d²) and, per point, O(d).

// Variances of the dimensions, their mean 1.
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

// What D multiplies each dimension by.
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

// Centres of the clusters (count, d): a regular simplex of that edge in the first dimensions, around the origin.
export function centresOf({ d, clusters, separation }) {
  const out = new Float64Array(clusters * d);
  for (let k = 1; k < clusters; k += 1) { // Helmert's rows: dimension k − 1 parts cluster k from those before it
    const unit = (separation / Math.SQRT2) / Math.sqrt(k * (k + 1));
    for (let c = 0; c < k; c += 1) out[c * d + k - 1] = unit;
    out[k * d + k - 1] = -k * unit;
  }
  return out;
}

// The rotation as rounds of turns in planes: in round s dimension j turns with j + 2^s. Angles grow with the amount, so that the slider
// moves the cloud without a jump; at 1 each is between 28° and 74°, either way.
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

// Qᵀ A Q of a symmetric (d, d): rows as above, then the same of its transpose, two neighbouring rows at a time.
export function rotatedMatrix(matrix, d, rounds) {
  if (!rounds) return matrix;
  const once = transposed(rotateLines(Float64Array.from(matrix), d, rounds), d, d);
  return rotateLines(once, d, rounds);
}

function rotateLines(matrix, d, rounds) { // Qᵀ A: dimension j's line and that of j + step
  for (const { step, low, cosine, sine } of rounds) {
    for (let k = 0; k < low.length; k += 1) turnLines(matrix, low[k] * d, (low[k] + step) * d, d, cosine[k], sine[k]);
  }
  return matrix;
}

function turnLines(matrix, first, second, d, c, s) {
  for (let k = 0; k < d; k += 1) {
    const x = matrix[first + k];
    const y = matrix[second + k];
    matrix[first + k] = c * x - s * y;
    matrix[second + k] = s * x + c * y;
  }
}

// The three axes that are looked along, as rows (3, d) before the rotation: e_1, e_2, e_3 of the rotated cloud.
export function firstAxes(d, rounds) {
  const count = Math.min(3, d);
  const axes = new Float64Array(count * d);
  for (let k = 0; k < count; k += 1) axes[k * d + k] = 1;
  for (const { step, low, cosine, sine } of [...(rounds ?? [])].reverse()) {
    for (let r = 0; r < count; r += 1) turnPairs(axes, r * d, step, low, cosine, sine.map((value) => -value));
  }
  return axes;
}

// The base cloud: w z (n, d), a label for each row, and which row a copy is of. `draw` counts redraws, 0 is the shown cloud.
export function* drawBase({ d, n, seed, tails, clusters, duplicates }, draw = 0) {
  const points = new Float64Array(n * d);
  const labels = new Uint8Array(n);
  const originals = n - Math.min(n - 1, Math.round(duplicates * n));
  const many = Math.ceil(1e5 / d);
  for (let i = 0; i < n; i += 1) {
    if (i % many === many - 1) yield;
    const about = new Stream(seed, draw, i, PARTS.label);
    const label = about.uniform();
    if (i >= originals) {
      const from = Math.floor(about.uniform() * originals);
      points.copyWithin(i * d, from * d, (from + 1) * d);
      labels[i] = labels[from];
      continue;
    }
    labels[i] = Math.floor(label * clusters);
    new Stream(seed, draw, i, PARTS.coordinates).fill(points, i * d, d);
    if (tails) weigh(points, i * d, d, Math.sqrt((tails - 2) / chiSquared(new Stream(seed, draw, i, PARTS.tail), tails)));
  }
  return { points, labels, originals };
}

function weigh(points, from, count, weight) {
  for (let k = from; k < from + count; k += 1) points[k] *= weight;
}

function chiSquared(stream, degrees) {
  let sum = 0;
  for (let k = 0; k < degrees; k += 1) sum += stream.normal() ** 2;
  return sum;
}

// Sums of the base cloud: mean (d), scatter about it (d, d), and per cluster its size and its sum of centred rows (count, d).
export function* baseSums({ points, labels }, { n, d, clusters }) {
  const mean = meanOf(points, n, d);
  const centred = lessMean(points, mean, n, d);
  yield;
  const scatter = yield* gramOf(transposed(centred, n, d), d, n);
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

export function meanOf(points, n, d) {
  const mean = new Float64Array(d);
  for (let i = 0; i < n; i += 1) addTo(mean, 0, points, i * d, d);
  return mean.map((value) => value / n);
}

export function lessMean(points, mean, n, d) {
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

// D L S L D plus what the cluster centres add: the scatter (d, d) of the cloud before rotation and scale.
export function shapedScatter(sums, state, stretch, centres) {
  const { d, clusters } = state;
  const scatter = correlates(state) ? blockScatter(sums.scatter, state, stretch) : stretchedScatter(sums.scatter, d, stretch);
  if (clusters < 2 || !state.separation) return scatter;
  const along = shapedRows(sums.sums, clusters, d, state, stretch);
  const middle = centreMean(sums.sizes, centres, d);
  const reach = clusters - 1;
  for (let k = 0; k < clusters; k += 1) {
    for (let j = 0; j < reach; j += 1) {
      const centre = centres[k * d + j];
      for (let i = 0; i < d; i += 1) {
        scatter[i * d + j] += along[k * d + i] * centre;
        scatter[j * d + i] += along[k * d + i] * centre;
      }
      for (let i = 0; i < reach; i += 1) scatter[i * d + j] += sums.sizes[k] * (centres[k * d + i] - middle[i]) * (centre - middle[j]);
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
    const own = stretch[i];
    for (let j = 0, at = i * d; j < d; j += 1, at += 1) out[at] = scatter[at] * (own * stretch[j]);
  }
  return out;
}

export function centreMean(sizes, centres, d) {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const out = new Float64Array(d);
  for (let k = 0; k < sizes.length; k += 1) for (let j = 0; j < d; j += 1) out[j] += (sizes[k] / total) * centres[k * d + j];
  return out;
}

// The points (n, d) before shift, rotation and scale.
export function shapedPoints({ points, labels }, state, stretch, centres) {
  const { n, d, clusters } = state;
  const out = shapedRows(points, n, d, state, stretch);
  const reach = state.separation ? Math.min(clusters - 1, d) : 0;
  for (let i = 0; i < n; i += 1) for (let j = 0; j < reach; j += 1) out[i * d + j] += centres[labels[i] * d + j];
  return out;
}

// Points as they lie in the end, (n, d): shifted, rotated, scaled.
export function placedPoints(points, { n, d, shift, scale }, rounds) {
  const out = rotateRows(points.map((value) => value + shift), n, d, rounds);
  return scale === 1 ? out : out.map((value) => value * scale);
}
