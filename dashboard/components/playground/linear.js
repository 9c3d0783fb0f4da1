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

// ---- products, in panels that fit the cache: four rows side by side, number by number. TALL rows of A meet WIDE rows of B, DEEP numbers
// at a time.

const [TALL, WIDE, DEEP] = [128, 64, 256];
const AT = { tall: 0, wide: TALL * DEEP, tiles: (TALL + WIDE) * DEEP, rest: (TALL + WIDE) * DEEP + TALL * WIDE }; // places in `numbers`

// The inner loops, on one array. Pages that allow WebAssembly replace them (lab/kernels.js).
export const kernels = {
  numbers: new Float64Array(AT.rest),
  strip: 64, // columns of a matrix whose rows turn, side by side
  reserve(count) {
    if (this.numbers.length < count) this.numbers = new Float64Array(count);
  },
  multiply,
  turn,
  spread,
  lessen,
};

// Operands: `rows` rows of `width` numbers, from row-major values, less a mean for each dimension.
export function rowsOf(values, rows, width, { from = 0, mean = ZERO, row = width } = {}) {
  return { values, rows, width, from, row, step: 1, mean, meanRow: 0, meanStep: mean === ZERO ? 0 : 1 };
}

// The dimensions of n row-major points, as rows of n numbers.
export function columnsOf(values, n, d, mean = ZERO) {
  return { values, rows: d, width: n, from: 0, row: 1, step: d, mean, meanRow: mean === ZERO ? 0 : 1, meanStep: 0 };
}

const ZERO = new Float64Array(1);

// A Bᵀ, added to `out` (a.rows, b.rows). Of a product with itself the upper triangle mirrors the lower one.
export function* productOf(a, b = a, out = new Float64Array(a.rows * b.rows)) {
  const tired = pacer();
  for (let i = 0; i < a.rows; i += TALL) {
    const tall = Math.min(TALL, a.rows - i);
    const columns = a === b ? Math.min(b.rows, i + TALL) : b.rows;
    for (let from = 0; from < a.width; from += DEEP) {
      const depth = Math.min(DEEP, a.width - from);
      pack(a, i, tall, from, depth, AT.tall);
      for (let j = 0; j < columns; j += WIDE) {
        const wide = Math.min(WIDE, columns - j);
        pack(b, j, wide, from, depth, AT.wide);
        kernels.multiply(AT.tall, AT.wide, AT.tiles, depth, Math.ceil(tall / 4), Math.ceil(wide / 4));
        addTiles(out, i * b.rows + j, b.rows, tall, wide);
        if (!tired(tall * wide * depth)) continue;
        yield;
        pack(a, i, tall, from, depth, AT.tall); // another computation may have come in between
      }
    }
  }
  if (a === b) for (let i = 0; i < a.rows; i += 1) for (let j = 0; j < i; j += 1) out[j * a.rows + i] = out[i * a.rows + j];
  return out;
}

// The products of each of m rows with all rows up to the end of its block, (end − first, end), in one buffer; undefined in between, for
// pauses.
export function* rowProducts(values, m, width, mean) {
  const room = new Float64Array(TALL * m);
  for (let first = 0; first < m; first += TALL) {
    const end = Math.min(first + TALL, m);
    const products = room.subarray(0, (end - first) * end).fill(0);
    yield* productOf(rowsOf(values, end - first, width, { from: first * width, mean }), rowsOf(values, end, width, { mean }), products);
    yield { first, end, products };
  }
  release(room);
}

// Returns the memory of large arrays at once: the garbage collector may wait until they amount to several times the file.
export function release(...arrays) {
  for (const { buffer } of arrays) buffer.transfer?.(0);
}

// A last group of less than four rows repeats its last row.
function pack({ values, rows, from: start, row, step, mean, meanRow, meanStep }, first, count, from, depth, to) {
  const { numbers } = kernels;
  for (let quad = first; quad < first + count; quad += 4) {
    const [r1, r2, r3] = [1, 2, 3].map((r) => Math.min(r, rows - 1 - quad));
    let at = start + quad * row + from * step;
    let less = quad * meanRow + from * meanStep;
    for (let k = 0; k < depth; k += 1, at += step, less += meanStep, to += 4) {
      numbers[to] = values[at] - mean[less];
      numbers[to + 1] = values[at + r1 * row] - mean[less + r1 * meanRow];
      numbers[to + 2] = values[at + r2 * row] - mean[less + r2 * meanRow];
      numbers[to + 3] = values[at + r3 * row] - mean[less + r3 * meanRow];
    }
  }
}

// Adds the 4 × 4 tiles of a panel to a matrix, from a place on.
function addTiles(out, place, stride, tall, wide) {
  const { numbers } = kernels;
  const across = Math.ceil(wide / 4);
  for (let i = 0; i < tall; i += 1) {
    const tiles = AT.tiles + 16 * (i >> 2) * across + 4 * (i & 3);
    for (let j = 0; j < wide; j += 1) out[place + i * stride + j] += numbers[tiles + 16 * (j >> 2) + (j & 3)];
  }
}

// The tiles of a panel of `tall` groups of four rows times one of `wide` groups; places in `numbers`.
function multiply(a, b, out, depth, tall, wide) {
  const { numbers } = this;
  for (let i = 0; i < tall; i += 1, a += 4 * depth) {
    for (let j = 0, q = b; j < wide; j += 1, out += 16) {
      let s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
      let s20 = 0, s21 = 0, s22 = 0, s23 = 0, s30 = 0, s31 = 0, s32 = 0, s33 = 0;
      for (let p = a; p < a + 4 * depth; p += 4, q += 4) {
        const x0 = numbers[p], x1 = numbers[p + 1], x2 = numbers[p + 2], x3 = numbers[p + 3];
        const y0 = numbers[q], y1 = numbers[q + 1], y2 = numbers[q + 2], y3 = numbers[q + 3];
        s00 += x0 * y0; s01 += x0 * y1; s02 += x0 * y2; s03 += x0 * y3;
        s10 += x1 * y0; s11 += x1 * y1; s12 += x1 * y2; s13 += x1 * y3;
        s20 += x2 * y0; s21 += x2 * y1; s22 += x2 * y2; s23 += x2 * y3;
        s30 += x3 * y0; s31 += x3 * y1; s32 += x3 * y2; s33 += x3 * y3;
      }
      numbers[out] = s00; numbers[out + 1] = s01; numbers[out + 2] = s02; numbers[out + 3] = s03;
      numbers[out + 4] = s10; numbers[out + 5] = s11; numbers[out + 6] = s12; numbers[out + 7] = s13;
      numbers[out + 8] = s20; numbers[out + 9] = s21; numbers[out + 10] = s22; numbers[out + 11] = s23;
      numbers[out + 12] = s30; numbers[out + 13] = s31; numbers[out + 14] = s32; numbers[out + 15] = s33;
    }
  }
}

// Turns neighbouring ones of d rows: count times, from the last pair upwards, each by its cosine and sine at `angles`. Each strip of
// columns stands together.
function turn(rows, strips, d, last, count, angles) {
  const { numbers, strip: wide } = this;
  for (let strip = 0; strip < strips; strip += 1) {
    for (let t = 0; t < count; t += 1) {
      const at = rows + wide * (strip * d + last - t);
      const [c, s] = [numbers[angles + 2 * t], numbers[angles + 2 * t + 1]];
      for (let k = at; k < at + wide; k += 1) {
        const x = numbers[k];
        const y = numbers[k + wide];
        numbers[k] = c * x - s * y;
        numbers[k + wide] = s * x + c * y;
      }
    }
  }
}

// Adds `own` times a row to the numbers at p, and returns the row's product with u; of 2 × pairs numbers.
function spread(row, u, p, own, pairs) {
  const { numbers } = this;
  let sum = 0;
  for (let k = 0; k < 2 * pairs; k += 1) {
    const value = numbers[row + k];
    sum += value * numbers[u + k];
    numbers[p + k] += value * own;
  }
  return sum;
}

// Subtracts f times the numbers at x and g times those at y from a row.
function lessen(row, x, y, f, g, pairs) {
  const { numbers } = this;
  for (let k = 0; k < 2 * pairs; k += 1) numbers[row + k] -= f * numbers[x + k] + g * numbers[y + k];
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

// Eigenvalues of a symmetric (d, d) matrix in descending order, and its first `count` eigenvectors as the rows of `vectors`.
// Householder tridiagonalisation, then QL with implicit shifts; a few vectors by inverse iteration. It works in `numbers`: another one
// must not begin before it ends.
export function* eigen(matrix, d, count = 0) {
  const wide = kernels.strip;
  const strips = Math.ceil(d / wide);
  const a = AT.rest; // its lower triangle; the reflections replace it
  const p = a + wide * strips * d + 2;
  const u = p + d + 2;
  const q = u + d + 2;
  kernels.reserve(q + (count < d ? count : d + 2) * d + 2);
  kernels.numbers.set(matrix, a);
  kernels.numbers.fill(0, p, q);
  const beside = new Float64Array(d);
  const heights = new Float64Array(d); // of the reflections: H = I − u uᵀ / height
  const tired = pacer();
  for (let i = d - 1; i > 0; i -= 1) {
    heights[i] = reflected(a, p, u, i, d, beside);
    if (tired(2 * i * i)) yield;
  }
  const diagonal = Float64Array.from({ length: d }, (_, i) => kernels.numbers[a + i * d + i]);
  if (count < d) { // few vectors, or none
    const band = [diagonal.slice(), beside.slice()];
    yield* implicitQL(diagonal, beside, null, d);
    const values = diagonal.sort().reverse();
    const vectors = new Float64Array(count * d);
    for (let k = 0; k < count; k += 1) tridiagonalVector(...band, values[k], vectors, k, d);
    kernels.numbers.set(vectors, q);
    for (let i = 1; i < d; i += 1) if (heights[i]) reflectRows(q, a, p, u, i, d, heights[i], count);
    return { values, vectors: kernels.numbers.slice(q, q + count * d) };
  }
  kernels.numbers.fill(0, q, q + d * d);
  for (let i = 0; i < d; i += 1) kernels.numbers[q + i * d + i] = 1;
  for (let i = 1; i < d; i += 1) { // applies H_{d-1} … H_1 to each row from the right
    if (!heights[i]) continue;
    reflectRows(q, a, p, u, i, d, heights[i], i); // rows from i on are still unit vectors beyond its reach
    if (tired(2 * i * i)) yield;
  }
  const { numbers } = kernels;
  const place = (i, k) => a + wide * (Math.floor(k / wide) * d + i) + (k % wide); // the reflections are done: strips take their place
  for (let i = 0; i < d; i += 1) for (let k = 0; k < d; k += 1) numbers[place(i, k)] = numbers[q + i * d + k];
  yield* implicitQL(diagonal, beside, { at: a, strips, angles: q }, d);
  const order = Array.from(diagonal.keys()).sort((i, j) => diagonal[j] - diagonal[i]);
  const vectors = new Float64Array(d * d);
  for (let i = 0; i < d; i += 1) for (let k = 0; k < d; k += 1) vectors[i * d + k] = numbers[place(order[i], k)];
  return { values: Float64Array.from(order, (i) => diagonal[i]), vectors };
}

// One step of the tridiagonalisation: A ← H A H of the leading (i, i) part, with H's u in row i. Returns its height, 0 without reflection.
function reflected(a, p, u, i, d, beside) {
  const { numbers } = kernels;
  const row = a + i * d;
  let scale = 0;
  for (let k = 0; k < i; k += 1) scale += Math.abs(numbers[row + k]);
  if (i === 1 || scale === 0) {
    beside[i] = numbers[row + i - 1];
    return 0;
  }
  let h = 0;
  for (let k = 0; k < i; k += 1) {
    numbers[row + k] /= scale;
    h += numbers[row + k] * numbers[row + k];
  }
  const f = numbers[row + i - 1];
  const g = f >= 0 ? -Math.sqrt(h) : Math.sqrt(h);
  beside[i] = scale * g;
  h -= f * g;
  numbers[row + i - 1] = f - g;
  numbers.copyWithin(u, row, row + i);
  numbers.fill(0, p, p + i + 1);
  numbers[u + i] = 0;
  for (let j = 0; j < i; j += 1) { // p = A u, of the lower triangle alone
    const at = a + j * d;
    const own = numbers[u + j];
    let sum = kernels.spread(at, u, p, own, j >> 1) + numbers[at + j] * own;
    if (j & 1) {
      const last = numbers[at + j - 1];
      sum += last * numbers[u + j - 1];
      numbers[p + j - 1] += last * own;
    }
    numbers[p + j] += sum;
  }
  let along = 0;
  for (let j = 0; j < i; j += 1) {
    numbers[p + j] /= h;
    along += numbers[p + j] * numbers[u + j];
  }
  const half = along / (2 * h);
  for (let j = 0; j < i; j += 1) numbers[p + j] -= half * numbers[u + j];
  for (let j = 0; j < i; j += 1) kernels.lessen(a + j * d, p, u, numbers[u + j], numbers[p + j], (j >> 1) + 1);
  return h;
}

// Row k of `vectors`: the unit eigenvector of a tridiagonal matrix, orthogonal to the rows before it, by inverse iteration with Givens
// rotations.
function tridiagonalVector(diagonal, beside, value, vectors, k, d) {
  const row = vectors.subarray(k * d, (k + 1) * d);
  for (let i = 0; i < d; i += 1) row[i] = 1 + ((i * 7919 + k * 104729) % 1009) / 1009; // not orthogonal to it by chance
  const tiny = EPS * Math.max(...diagonal.map(Math.abs), 1e-300);
  for (let round = 0; round < 4; round += 1) {
    for (let other = 0; other < k; other += 1) subtractAlong(vectors, k * d, vectors.subarray(other * d, (other + 1) * d), alongAxis(vectors, other * d, row));
    const [r0, r1, r2] = [new Float64Array(d), new Float64Array(d), new Float64Array(d)]; // the bands of R
    let [x, y] = [diagonal[0] - value, d > 1 ? beside[1] : 0];
    for (let i = 0; i < d; i += 1) {
      const below = i + 1 < d ? beside[i + 1] : 0;
      const next = i + 2 < d ? beside[i + 2] : 0;
      const length = Math.hypot(x, below);
      const [c, s] = length ? [x / length, below / length] : [1, 0];
      const z = i + 1 < d ? diagonal[i + 1] - value : 0;
      [r0[i], r1[i], r2[i]] = [length || tiny, c * y + s * z, s * next];
      [x, y] = [c * z - s * y, c * next];
      if (i + 1 < d) [row[i], row[i + 1]] = [c * row[i] + s * row[i + 1], c * row[i + 1] - s * row[i]];
    }
    for (let i = d - 1; i >= 0; i -= 1) row[i] = (row[i] - r1[i] * (row[i + 1] ?? 0) - r2[i] * (row[i + 2] ?? 0)) / (Math.abs(r0[i]) > tiny ? r0[i] : tiny);
    scaleRow(row, 0, d, 1 / Math.max(...row.map(Math.abs)));
    scaleRow(row, 0, d, 1 / Math.sqrt(squaresOf(row, 0, d)));
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

// Applies the reflection with u in row i of a to the first rows of the (d, d) matrix at q.
function reflectRows(q, a, p, u, i, d, height, count) {
  const { numbers } = kernels;
  numbers.copyWithin(u, a + i * d, a + i * d + i);
  numbers[u + i] = 0;
  const pairs = (i + 1) >> 1;
  for (let at = q; at < q + count * d; at += d) kernels.lessen(at, u, u, kernels.spread(at, u, p, 0, pairs) / height, 0, pairs);
}

// vectors: the places of their strips and of room for cosines and sines, or null.
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
        if (vectors) {
          kernels.numbers[vectors.angles + 2 * (m - 1 - i)] = c;
          kernels.numbers[vectors.angles + 2 * (m - 1 - i) + 1] = s;
        }
      }
      if (vectors) kernels.turn(vectors.at, vectors.strips, d, m - 1, m - 1 - i, vectors.angles);
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
