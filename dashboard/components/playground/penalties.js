// Penalties of `isoviz.metrics.penalties` with their gradients, for points (n, d) as a flat array: (points, n, d) → { value, gradient }.

export const PENALTIES = { istar: istarPenalty, cosreg: cosinePenalty };

// 1 − IsoScore; with T = tr S and F = ‖S‖², IsoScore = (T²/F − 1)/(d − 1).
export function istarPenalty(points, n, d) {
  const centred = new Float64Array(n * d);
  for (let j = 0; j < d; j += 1) {
    let mean = 0;
    for (let i = 0; i < n; i += 1) mean += points[i * d + j] / n;
    for (let i = 0; i < n; i += 1) centred[i * d + j] = points[i * d + j] - mean;
  }
  const covariance = new Float64Array(d * d);
  for (let i = 0; i < n; i += 1) for (let j = 0; j < d; j += 1) for (let k = 0; k < d; k += 1) covariance[j * d + k] += (centred[i * d + j] * centred[i * d + k]) / (n - 1);
  let [trace, squares] = [0, 0];
  for (let j = 0; j < d; j += 1) trace += covariance[j * d + j];
  for (const value of covariance) squares += value * value;
  const [traceFactor, covarianceFactor] = [(2 * trace) / squares, (2 * trace * trace) / (squares * squares)]; // d(T²/F)/dS = traceFactor I − covarianceFactor S
  const gradient = new Float64Array(n * d);
  for (let i = 0; i < n; i += 1) {
    for (let j = 0; j < d; j += 1) {
      let along = traceFactor * centred[i * d + j];
      for (let k = 0; k < d; k += 1) along -= covarianceFactor * centred[i * d + k] * covariance[k * d + j];
      gradient[i * d + j] = (-2 * along) / ((n - 1) * (d - 1));
    }
  }
  return { value: 1 - ((trace * trace) / squares - 1) / (d - 1), gradient };
}

// CosReg: the sum of the cosines of all ordered pairs, over n².
export function cosinePenalty(points, n, d) {
  const [lengths, units, total] = [new Float64Array(n), new Float64Array(n * d), new Float64Array(d)];
  for (let i = 0; i < n; i += 1) {
    lengths[i] = Math.hypot(...points.subarray(i * d, i * d + d));
    for (let j = 0; j < d; j += 1) total[j] += units[i * d + j] = points[i * d + j] / lengths[i];
  }
  const gradient = new Float64Array(n * d);
  for (let i = 0; i < n; i += 1) {
    let along = 0;
    for (let j = 0; j < d; j += 1) along += units[i * d + j] * total[j];
    for (let j = 0; j < d; j += 1) gradient[i * d + j] = (2 * (total[j] - along * units[i * d + j])) / (lengths[i] * n * n);
  }
  return { value: (total.reduce((sum, value) => sum + value * value, 0) - n) / (n * n), gradient };
}
