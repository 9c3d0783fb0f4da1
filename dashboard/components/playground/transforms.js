// Transforms of `isoviz.posthoc`, fitted on the cloud and applied to it in order.
// Clouds here have shift 0, scale 1 and no rotation: their points are final.

const TOLERANCE = 1e-7;

export function* transformed(cloud, steps) {
  let result = cloud;
  for (const step of steps) result = yield* STEPS[step.slug](result, step);
  return result;
}

const STEPS = {
  *centring(cloud) {
    return { ...cloud, points: subtractMean(cloud.points, cloud.mean, cloud.n, cloud.d), mean: new Float64Array(cloud.d) };
  },

  *all_but_the_top(cloud, { remove }) {
    const { n, d } = cloud;
    const { spreads, vectors } = yield* principalAxes(cloud);
    const points = subtractMean(cloud.points, cloud.mean, n, d);
    const rank = spreads.filter((value) => value > 0).length;
    const count = Math.min(remove, rank);
    const axes = Array.from({ length: count }, (_, k) => vectors.subarray(k * d, (k + 1) * d));
    for (let i = 0; i < n; i += 1) {
      const projections = axes.map((axis) => alongAxis(points, i * d, axis));
      axes.forEach((axis, k) => subtractAlong(points, i * d, axis, projections[k]));
    }
    if (count >= rank) points.fill(0); // only rounding is left
    return yield* cloudOf(points, cloud);
  },

  *truncation({ points, mean, covariance, d, ...cloud }, { keep }) {
    const width = Math.min(keep, d);
    const leading = (values, rows) => values.filter((_, at) => at % d < width).subarray(0, rows * width);
    return { ...cloud, d: width, points: leading(points, cloud.n), mean: mean.slice(0, width), covariance: leading(covariance, width) };
  },

  *zca(cloud, { strength, eps }) {
    const { n, d } = cloud;
    const { spreads, vectors } = yield* principalAxes(cloud);
    const factors = whiteningFactors(spreads, d, strength, eps);
    const scaled = vectors.slice();
    for (let k = 0; k < d; k += 1) for (let j = 0; j < d; j += 1) scaled[k * d + j] *= factors[k];
    const matrix = yield* productOf(columnsOf(vectors, d, d), columnsOf(scaled, d, d)); // V diag(f) Vᵀ, symmetric
    const points = yield* productOf(rowsOf(cloud.points, n, d, { mean: cloud.mean }), rowsOf(matrix, d, d));
    return yield* cloudOf(points, cloud);
  },

  *unit_norm({ n, d, points, ...cloud }) {
    const unit = points.slice();
    for (let i = 0; i < n; i += 1) scaleRow(unit, i * d, d, 1 / (Math.sqrt(squaresOf(points, i * d, d)) || 1));
    return yield* cloudOf(unit, { n, d, ...cloud }, meanOf(unit, n, d));
  },

  *isobn(cloud, { beta }) {
    return scaledCloud(cloud, isobnFactors(cloud, beta, 0.1), false);
  },

  *batch_norm(cloud, { eps }) {
    const { n, d, covariance, mean } = cloud;
    const factors = Float64Array.from({ length: d }, (_, j) => {
      const spread = Math.sqrt((Math.max(0, covariance[j * d + j]) * (n - 1)) / n);
      const width = eps > 0 ? Math.hypot(spread, Math.sqrt(eps)) : spread > EPS * Math.abs(mean[j]) ? spread : 0;
      return width > 1e-100 ? 1 / width : 0;
    });
    return scaledCloud(cloud, factors, true);
  },
};

function alongAxis(points, row, axis) {
  let sum = 0;
  for (let j = 0; j < axis.length; j += 1) sum += points[row + j] * axis[j];
  return sum;
}

function subtractAlong(points, row, axis, reach) {
  for (let j = 0; j < axis.length; j += 1) points[row + j] -= reach * axis[j];
}

// Standard deviations along the principal directions in descending order, 0 if only rounding, and the directions as rows.
function* principalAxes({ d, covariance, mean }) {
  const { values, vectors } = yield* eigen(covariance, d, d);
  const threshold = d * EPS * Math.max(0, values[0]);
  const coordinate = EPS * mean.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
  const spreads = values.map((value) => (value > threshold && Math.sqrt(value) > coordinate ? Math.sqrt(value) : 0));
  return { spreads, vectors };
}

function whiteningFactors(spreads, d, strength, eps) {
  if (strength === 0) return spreads.map(() => 1);
  if (eps > 0) return spreads.map((value) => Math.hypot(value, Math.sqrt(eps)) ** -strength);
  const threshold = spreads[0] * Math.sqrt(TOLERANCE * Math.sqrt(d));
  return spreads.map((value) => (value > threshold ? value ** -strength : 0));
}

// θ of IsoBN as in the paper, from population statistics.
function isobnFactors({ n, d, covariance }, beta, eps) {
  const inverse = inverseSpreads(covariance, d);
  const spreads = Float64Array.from({ length: d }, (_, j) => Math.sqrt((Math.max(0, covariance[j * d + j]) * (n - 1)) / n));
  const largest = spreads.reduce((max, value) => Math.max(max, value), 0);
  if (!(largest > 0)) return spreads.map(() => 1);
  const theta = new Float64Array(d);
  for (let i = 0; i < d; i += 1) {
    let gamma = inverse[i] ? 0 : 1;
    for (let j = 0; j < d; j += 1) {
      const rho = Math.min(1, Math.abs(covariance[i * d + j]) * inverse[i] * inverse[j]);
      gamma += rho * rho;
    }
    theta[i] = (spreads[i] * gamma + eps) ** -beta;
  }
  const top = theta.reduce((max, value) => Math.max(max, value), 0);
  let [before, after] = [0, 0];
  for (let i = 0; i < d; i += 1) {
    before += (spreads[i] / largest) ** 2;
    after += ((spreads[i] / largest) * (theta[i] / top)) ** 2;
  }
  return theta.map((value) => (value / top) * Math.sqrt(before / after));
}

function scaledCloud(cloud, factors, centred) {
  const { n, d } = cloud;
  const points = new Float64Array(n * d);
  for (let i = 0, at = 0; i < n; i += 1) for (let j = 0; j < d; j += 1, at += 1) points[at] = (centred ? cloud.points[at] - cloud.mean[j] : cloud.points[at]) * factors[j];
  const covariance = cloud.covariance.slice();
  for (let i = 0, at = 0; i < d; i += 1) for (let j = 0; j < d; j += 1, at += 1) covariance[at] *= factors[i] * factors[j];
  return { ...cloud, points, covariance, mean: centred ? new Float64Array(d) : cloud.mean.map((value, j) => value * factors[j]) };
}

// A cloud of centred points, or of points with this mean.
export function* cloudOf(points, { n, d, originals, eps }, mean = new Float64Array(d)) {
  const covariance = yield* productOf(columnsOf(points, n, d, mean));
  for (let at = 0; at < d * d; at += 1) covariance[at] /= n - 1;
  return { n, d, points, mean, covariance, shift: 0, scale: 1, rounds: null, originals, eps };
}
