// The inner loops of linear.js in WebAssembly, two numbers per instruction: three times as fast. Assembled here, so that the page holds
// no binary.

function quickKernels() {
  const [I32, F64, VECTOR] = [0x7f, 0x7c, 0x7b];
  const range = (count) => Array.from({ length: count }, (_, k) => k);
  const each = (count, code) => range(count).flatMap(code);
  const unsigned = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >> 7)]); // LEB128
  const signed = (value) => (value >= -64 && value < 64 ? [value & 127] : [(value & 127) | 128, ...signed(value >> 7)]);
  const vector = (content) => [...unsigned(content.length), ...content];

  // Instructions. Locals and parameters go by their number; addresses are in bytes.
  const get = (local) => [0x20, local];
  const set = (local, value) => [...value, 0x21, local];
  const plus = (x, y) => [...x, ...y, 0x6a];
  const shifted = (local, by) => [...get(local), 0x41, by, 0x74];
  const advance = (local, by) => set(local, plus(get(local), [0x41, ...signed(by)]));
  const before = (x, y) => [...get(x), ...get(y), 0x48];
  const loop = (body, again) => [0x03, 0x40, ...body, ...again, 0x0d, 0, 0x0b];
  const unlessEmpty = (from, end, body) => [...before(from, end), 0x04, 0x40, ...loop(body, before(from, end)), 0x0b];
  const simd = (code) => [0xfd, ...unsigned(code)];
  const access = (code) => (local, offset = 0) => [...get(local), ...simd(code), 3, ...unsigned(offset)];
  const [load, splat] = [access(0), access(10)];
  const store = (local, offset, value) => [...get(local), ...value, ...simd(11), 3, ...unsigned(offset)];
  const [add, subtract, times] = [240, 241, 242].map((code) => (x, y) => [...x, ...y, ...simd(code)]);
  const twice = (local) => [...get(local), ...simd(20)];

  // (a, b, out, depth, tall, wide). Locals: 6 p, 7 q, 8 end, 9 j; 10, 11 b; 12 … 19 sums, 20 zero, 21 a.
  const sum = (r, half) => 12 + 2 * r + half;
  const product = [
    ...each(2, (half) => set(10 + half, load(7, 16 * half))),
    ...each(4, (r) => [...set(21, splat(6, 8 * r)), ...each(2, (half) => set(sum(r, half), add(get(sum(r, half)), times(get(21), get(10 + half)))))]),
    ...advance(6, 32),
    ...advance(7, 32),
  ];
  const tile = [
    ...each(8, (k) => set(12 + k, get(20))),
    ...set(6, get(0)),
    ...loop(product, before(6, 8)),
    ...each(4, (r) => each(2, (half) => store(2, 32 * r + 16 * half, get(sum(r, half))))),
    ...advance(2, 128),
    ...advance(9, -1),
  ];
  const tiles = [...set(8, plus(get(0), shifted(3, 5))), ...set(7, get(1)), ...set(9, get(5)), ...loop(tile, get(9)), ...set(0, get(8)), ...advance(4, -1)];

  // (rows, strips, d, last, count, angles). Locals: 6 at, 7 angle, 8 end; 9 … 12 the row that moves up, 13 cosine, 14 sine, 15 the other row.
  const turns = [
    ...set(13, splat(7)),
    ...set(14, splat(7, 8)),
    ...each(4, (k) => [
      ...set(15, load(6, 16 * k)),
      ...store(6, 64 + 16 * k, add(times(get(14), get(15)), times(get(13), get(9 + k)))),
      ...set(9 + k, subtract(times(get(13), get(15)), times(get(14), get(9 + k)))),
    ]),
    ...advance(6, -64),
    ...advance(7, 16),
  ];
  const strip = [
    ...set(6, plus(get(0), shifted(3, 6))),
    ...set(7, get(5)),
    ...set(8, plus(get(5), shifted(4, 4))),
    ...each(4, (k) => set(9 + k, load(6, 64 + 16 * k))),
    ...loop(turns, before(7, 8)),
    ...each(4, (k) => store(6, 64 + 16 * k, get(9 + k))),
    ...set(0, plus(get(0), shifted(2, 6))),
    ...advance(1, -1),
  ];

  // (row, u, p, own, pairs). Locals: 5 end; 6 own, 7 the row, 8 sum.
  const spread = [...set(7, load(0)), ...set(8, add(get(8), times(get(7), load(1)))), ...store(2, 0, add(load(2), times(get(7), get(6)))), ...each(3, (local) => advance(local, 16))];
  const total = [...get(8), ...simd(33), 0, ...get(8), ...simd(33), 1, 0xa0];

  // (row, x, y, f, g, pairs). Locals: 6 end; 7 f, 8 g.
  const lessen = [...store(0, 0, subtract(load(0), add(times(get(7), load(1)), times(get(8), load(2))))), ...each(3, (local) => advance(local, 16))];

  const functions = {
    multiply: { parameters: range(6).map(() => I32), locals: [4, I32, 12, VECTOR], code: loop(tiles, get(4)) },
    turn: { parameters: range(6).map(() => I32), locals: [3, I32, 7, VECTOR], code: loop(strip, get(1)) },
    spread: { parameters: [I32, I32, I32, F64, I32], result: [F64], locals: [1, I32, 3, VECTOR], code: [...set(5, plus(get(0), shifted(4, 4))), ...set(6, twice(3)), ...unlessEmpty(0, 5, spread), ...total] },
    lessen: { parameters: [I32, I32, I32, F64, F64, I32], locals: [1, I32, 2, VECTOR], code: [...set(6, plus(get(0), shifted(5, 4))), ...set(7, twice(3)), ...set(8, twice(4)), ...unlessEmpty(0, 6, lessen)] },
  };
  const parts = Object.values(functions);
  const section = (id, entries) => [id, ...vector([...unsigned(entries.length), ...entries.flat()])];
  const exported = (name, ...place) => [...vector([...name].map((letter) => letter.charCodeAt(0))), ...place];
  const bytes = [
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, parts.map(({ parameters, result = [] }) => [0x60, ...vector(parameters), ...vector(result)])),
    ...section(3, parts.map((_, at) => [at])),
    ...section(5, [[0, ...unsigned(Math.ceil(kernels.numbers.byteLength / 65536))]]),
    ...section(7, [exported("memory", 2, 0), ...Object.keys(functions).map((name, at) => exported(name, 0, at))]),
    ...section(10, parts.map(({ locals, code }) => vector([locals.length / 2, ...locals, ...code, 0x0b]))),
  ];
  const { memory, ...quick } = new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(bytes))).exports;
  return {
    numbers: new Float64Array(memory.buffer),
    strip: 8,
    reserve(count) {
      const missing = 8 * count - memory.buffer.byteLength;
      if (missing > 0) memory.grow(Math.ceil(missing / 65536));
      this.numbers = new Float64Array(memory.buffer);
    },
    multiply: (a, b, out, depth, tall, wide) => quick.multiply(8 * a, 8 * b, 8 * out, depth, tall, wide),
    turn: (rows, strips, d, last, count, angles) => count && quick.turn(8 * rows, strips, d, last, count, 8 * angles),
    spread: (row, u, p, own, pairs) => quick.spread(8 * row, 8 * u, 8 * p, own, pairs),
    lessen: (row, x, y, f, g, pairs) => quick.lessen(8 * row, 8 * x, 8 * y, f, g, pairs),
  };
}

try {
  Object.assign(kernels, quickKernels());
} catch (error) {
  console.warn(`Without WebAssembly, computing takes longer: ${error.message}`);
}
