// The cloud's random numbers. Every row has a separate stream, so that adding points or dimensions keeps the existing ones.
// A stream is xoshiro128** (Blackman & Vigna 2018), its four words hashed from (seed, draw, row, part); two outputs make a uniform
// number of 52 bits in (0, 1), and Wichura's AS 241 turns it into a normal one. Only +, −, ×, ÷, √ are used, which IEEE 754
// rounds identically, so the same seed gives the same bits in every browser. tests/dashboard/playground_stream.py is the Python version.

const hashed = (word) => {
  let h = word >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x21f0aaad);
  h = Math.imul(h ^ (h >>> 15), 0x735a2d97);
  return (h ^ (h >>> 15)) >>> 0;
};

// streams of a row: coordinates, label and copied row, tail weight; and one stream for the rotation
export const PARTS = { coordinates: 0, label: 1, tail: 2, rotation: 3 };

export class Stream {
  constructor(seed, draw, row, part) {
    let h = hashed((seed >>> 0) + 0x9e3779b9);
    for (const word of [draw, row, part]) h = hashed(h ^ hashed(word + 0x9e3779b9));
    [this.a, this.b, this.c, this.d] = [1, 2, 3, 4].map((k) => hashed(h + Math.imul(k, 0x9e3779b9)) | 0);
  }

  word() {
    const { a, b, c, d } = this;
    const five = Math.imul(b, 5);
    const output = Math.imul((five << 7) | (five >>> 25), 9);
    const second = d ^ b;
    const third = c ^ a;
    this.b = b ^ third;
    this.a = a ^ second;
    this.c = third ^ (b << 9);
    this.d = (second << 11) | (second >>> 21);
    return output >>> 0;
  }

  uniform() {
    const high = this.word() >>> 6;
    const low = this.word() >>> 6;
    return (high * 67108864 + low + 0.5) * 2.220446049250313e-16; // 2^-52
  }

  normal() {
    return normalOf(this.uniform());
  }

  // `count` normal numbers into `out` from `start`.
  fill(out, start, count) {
    for (let i = start; i < start + count; i += 1) out[i] = normalOf(this.uniform());
  }
}

// log x for x in (0, 1), from basic operations only: x = m 2^e with m in [√½, √2), log m = 2 artanh((m − 1)/(m + 1)).
function logOf(x) {
  let m = x;
  let e = 0;
  while (m < 0.7071067811865476) {
    m *= 2;
    e -= 1;
  }
  const s = (m - 1) / (m + 1);
  const q = s * s;
  let sum = 0;
  for (let k = 23; k >= 1; k -= 2) sum = sum * q + 1 / k;
  return 2 * s * sum + e * 0.6931471805599453;
}

// The quantile of the normal distribution (Wichura 1988, algorithm AS 241, PPND16).
function normalOf(p) {
  const q = p - 0.5;
  if (q <= 0.425 && q >= -0.425) {
    const r = 0.180625 - q * q;
    return (q * (((((((r * 2509.0809287301226727 + 33430.575583588128105) * r + 67265.770927008700853) * r + 45921.953931549871457) * r + 13731.693765509461125) * r + 1971.5909503065514427) * r + 133.14166789178437745) * r + 3.387132872796366608))
      / (((((((r * 5226.495278852545925 + 28729.085735721942674) * r + 39307.89580009271061) * r + 21213.794301586595867) * r + 5394.1960214247511077) * r + 687.1870074920579083) * r + 42.313330701600911252) * r + 1);
  }
  let r = Math.sqrt(-logOf(q < 0 ? p : 1 - p));
  let quantile;
  if (r <= 5) {
    r -= 1.6;
    quantile = (((((((r * 7.7454501427834140764e-4 + 0.0227238449892691845833) * r + 0.24178072517745061177) * r + 1.27045825245236838258) * r + 3.64784832476320460504) * r + 5.7694972214606914055) * r + 4.6303378461565452959) * r + 1.42343711074968357734)
      / (((((((r * 1.05075007164441684324e-9 + 5.475938084995344946e-4) * r + 0.0151986665636164571966) * r + 0.14810397642748007459) * r + 0.68976733498510000455) * r + 1.6763848301838038494) * r + 2.05319162663775882187) * r + 1);
  } else {
    r -= 5;
    quantile = (((((((r * 2.01033439929228813265e-7 + 2.71155556874348757815e-5) * r + 0.0012426609473880784386) * r + 0.026532189526576123093) * r + 0.29656057182850489123) * r + 1.7848265399172913358) * r + 5.4637849111641143699) * r + 6.6579046435011037772)
      / (((((((r * 2.04426310338993978564e-15 + 1.4215117583164458887e-7) * r + 1.8463183175100546818e-5) * r + 7.868691311456132591e-4) * r + 0.0148753612908506148525) * r + 0.13692988092273580531) * r + 0.59983220655588793769) * r + 1);
  }
  return q < 0 ? -quantile : quantile;
}
