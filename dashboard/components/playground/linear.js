// Symmetric matrices in float64, as flat row-major arrays. Slow functions are generators that pause regularly, so that the worker can
// notice a newer state. ml-matrix's EVD is three times slower at d = 256 and cannot pause.

const PAUSE = 4e6; // multiplications between two pauses: a few milliseconds

// tired(work): adds this many multiplications; whether it is time for a pause.
function pacer() {
  let done = 0;
  return (work) => {
    done += work;
    const tired = done > PAUSE;
    if (tired) done = 0;
    return tired;
  };
}

// A Aᵀ of a (rows, width), both triangles.
export function* gramOf(a, rows, width) {
  const out = yield* productOf(a, a, rows, rows, width);
  for (let i = 0; i < rows; i += 1) for (let j = 0; j < i; j += 1) out[j * rows + i] = out[i * rows + j];
  return out;
}

// A Bᵀ of a (rows, width) and b (columns, width), in tiles of 4 × 4 rows; of a product with itself, the lower triangle alone.
export function* productOf(a, b, rows, columns, width) {
  const out = new Float64Array(rows * columns);
  const tired = pacer();
  for (let i = 0; i < rows; i += 4) {
    for (let j = 0; j < (a === b ? i + 1 : columns); j += 4) {
      tile(a, b, i, j, rows, columns, width, out, columns);
      if (tired(16 * width)) yield;
    }
  }
  return out;
}

// Rows i … i + 3 of a times rows j … j + 3 of b; `out` begins `base` entries into the product.
function tile(a, b, i, j, rows, columns, width, out, stride, base = 0) {
  if (i + 4 > rows || j + 4 > columns) {
    for (let r = i; r < Math.min(i + 4, rows); r += 1) {
      for (let c = j; c < Math.min(j + 4, columns); c += 1) {
        let sum = 0;
        for (let k = 0, p = r * width, q = c * width; k < width; k += 1) sum += a[p + k] * b[q + k];
        out[r * stride + c - base] = sum;
      }
    }
    return;
  }
  const [a0, b0] = [i * width, j * width];
  const [a1, a2, a3] = [a0 + width, a0 + 2 * width, a0 + 3 * width];
  const [b1, b2, b3] = [b0 + width, b0 + 2 * width, b0 + 3 * width];
  let s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
  let s20 = 0, s21 = 0, s22 = 0, s23 = 0, s30 = 0, s31 = 0, s32 = 0, s33 = 0;
  for (let k = 0; k < width; k += 1) {
    const x0 = a[a0 + k], x1 = a[a1 + k], x2 = a[a2 + k], x3 = a[a3 + k];
    const y0 = b[b0 + k], y1 = b[b1 + k], y2 = b[b2 + k], y3 = b[b3 + k];
    s00 += x0 * y0; s01 += x0 * y1; s02 += x0 * y2; s03 += x0 * y3;
    s10 += x1 * y0; s11 += x1 * y1; s12 += x1 * y2; s13 += x1 * y3;
    s20 += x2 * y0; s21 += x2 * y1; s22 += x2 * y2; s23 += x2 * y3;
    s30 += x3 * y0; s31 += x3 * y1; s32 += x3 * y2; s33 += x3 * y3;
  }
  let o = i * stride + j - base;
  out[o] = s00; out[o + 1] = s01; out[o + 2] = s02; out[o + 3] = s03;
  o += stride;
  out[o] = s10; out[o + 1] = s11; out[o + 2] = s12; out[o + 3] = s13;
  o += stride;
  out[o] = s20; out[o + 1] = s21; out[o + 2] = s22; out[o + 3] = s23;
  o += stride;
  out[o] = s30; out[o + 1] = s31; out[o + 2] = s32; out[o + 3] = s33;
}

export function transposed(a, rows, columns) {
  const out = new Float64Array(rows * columns);
  for (let i0 = 0; i0 < rows; i0 += 32) {
    for (let j0 = 0; j0 < columns; j0 += 32) {
      const [i1, j1] = [Math.min(i0 + 32, rows), Math.min(j0 + 32, columns)];
      for (let i = i0; i < i1; i += 1) for (let j = j0; j < j1; j += 1) out[j * rows + i] = a[i * columns + j];
    }
  }
  return out;
}

// Eigenvalues of a symmetric (d, d) matrix in descending order, and on request its eigenvectors as the rows of `vectors`.
// Householder tridiagonalisation, then QL with implicit shifts.
export function* eigen(matrix, d, wanted = false) {
  const a = Float64Array.from(matrix); // uses the lower triangle; the reflections replace it
  const diagonal = new Float64Array(d);
  const beside = new Float64Array(d);
  const heights = new Float64Array(d); // of the reflections: H = I − u uᵀ / height
  const p = new Float64Array(d);
  const tired = pacer();
  for (let i = d - 1; i > 0; i -= 1) {
    const row = i * d;
    let scale = 0;
    for (let k = 0; k < i; k += 1) scale += Math.abs(a[row + k]);
    if (i === 1 || scale === 0) {
      beside[i] = a[row + i - 1];
      continue;
    }
    let h = 0;
    for (let k = 0; k < i; k += 1) {
      a[row + k] /= scale;
      h += a[row + k] * a[row + k];
    }
    const f = a[row + i - 1];
    const g = f >= 0 ? -Math.sqrt(h) : Math.sqrt(h);
    beside[i] = scale * g;
    h -= f * g;
    a[row + i - 1] = f - g;
    heights[i] = h;
    reflect(a, p, i, d, h);
    if (tired(2 * i * i)) yield;
  }
  for (let i = 0; i < d; i += 1) diagonal[i] = a[i * d + i];
  let vectors = null; // eigenvectors are rows, so that a rotation combines two contiguous rows
  if (wanted) {
    vectors = new Float64Array(d * d);
    for (let i = 0; i < d; i += 1) vectors[i * d + i] = 1;
    for (let i = 1; i < d; i += 1) { // applies H_{d-1} … H_1 to each row from the right
      if (!heights[i]) continue;
      reflectRows(vectors, a, i, d, heights[i]); // rows from i on are still unit vectors beyond its reach
      if (tired(2 * i * i)) yield;
    }
  }
  yield* implicitQL(diagonal, beside, vectors, d);
  const order = Array.from(diagonal.keys()).sort((i, j) => diagonal[j] - diagonal[i]);
  const values = Float64Array.from(order, (i) => diagonal[i]);
  if (!wanted) return { values, vectors: null };
  const sorted = new Float64Array(d * d);
  order.forEach((from, to) => sorted.set(vectors.subarray(from * d, (from + 1) * d), to * d));
  return { values, vectors: sorted };
}

// A ← H A H of the leading (i, i) part, its lower triangle, with H's u in row i.
function reflect(a, p, i, d, h) {
  const row = i * d;
  p.fill(0, 0, i);
  for (let j = 0; j < i; j += 1) { // p = A u, of the lower triangle alone
    const at = j * d;
    const u = a[row + j];
    let sum = a[at + j] * u;
    for (let k = 0; k < j; k += 1) {
      const value = a[at + k];
      sum += value * a[row + k];
      p[k] += value * u;
    }
    p[j] += sum;
  }
  let along = 0;
  for (let j = 0; j < i; j += 1) {
    p[j] /= h;
    along += p[j] * a[row + j];
  }
  const half = along / (2 * h);
  for (let j = 0; j < i; j += 1) p[j] -= half * a[row + j];
  for (let j = 0; j < i; j += 1) {
    const at = j * d;
    const u = a[row + j];
    const w = p[j];
    for (let k = 0; k <= j; k += 1) a[at + k] -= u * p[k] + w * a[row + k];
  }
}

// Rotates two rows of a matrix, which begin at these places, by an angle with cosine c and sine s.
function turnRows(matrix, first, second, d, c, s) {
  for (let k = 0; k < d; k += 1) {
    const x = matrix[first + k];
    const y = matrix[second + k];
    matrix[first + k] = c * x - s * y;
    matrix[second + k] = s * x + c * y;
  }
}

// Applies the reflection with u in row i of a to the rows of `vectors`.
function reflectRows(vectors, a, i, d, height) {
  const row = i * d;
  for (let at = 0; at < i * d; at += d) {
    let sum = 0;
    for (let k = 0; k < i; k += 1) sum += vectors[at + k] * a[row + k];
    sum /= height;
    for (let k = 0; k < i; k += 1) vectors[at + k] -= sum * a[row + k];
  }
}

function* implicitQL(diagonal, beside, vectors, d) {
  for (let i = 1; i < d; i += 1) beside[i - 1] = beside[i];
  beside[d - 1] = 0;
  const tired = pacer();
  for (let l = 0; l < d; l += 1) {
    for (let round = 0; round < 60; round += 1) {
      let m = l;
      for (; m < d - 1; m += 1) {
        const near = Math.abs(diagonal[m]) + Math.abs(diagonal[m + 1]);
        if (Math.abs(beside[m]) <= 2.220446049250313e-16 * near) break;
      }
      if (m === l) break;
      let g = (diagonal[l + 1] - diagonal[l]) / (2 * beside[l]);
      let r = Math.hypot(g, 1);
      g = diagonal[m] - diagonal[l] + beside[l] / (g + (g >= 0 ? r : -r));
      let [s, c, shift] = [1, 1, 0];
      let i = m - 1;
      const work = (m - l) * (20 + (vectors ? 4 * d : 0));
      for (; i >= l; i -= 1) {
        const f = s * beside[i];
        const b = c * beside[i];
        r = Math.sqrt(f * f + g * g);
        beside[i + 1] = r;
        if (r === 0) {
          diagonal[i + 1] -= shift;
          beside[m] = 0;
          break;
        }
        s = f / r;
        c = g / r;
        g = diagonal[i + 1] - shift;
        r = (diagonal[i] - g) * s + 2 * c * b;
        shift = s * r;
        diagonal[i + 1] = g + shift;
        g = c * r - b;
        if (vectors) turnRows(vectors, i * d, (i + 1) * d, d, c, s);
      }
      if (tired(work)) yield;
      if (r === 0 && i >= l) continue;
      diagonal[l] -= shift;
      beside[l] = g;
      beside[m] = 0;
    }
  }
}

// Runs a generator to its end.
export function finish(steps) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
