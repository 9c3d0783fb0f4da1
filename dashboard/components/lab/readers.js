// Vectors from people's files, in a worker: arrays and tables here, what is written as text in written.js. Data only.
// A file becomes { vectors: { n, d, values } or null, columns: { text, label, id } }; `values` keeps single or double precision.

export const LIMITS = { rows: 20000, dimensions: 4096, numbers: 20000 * 1024, bytes: 512 * 2 ** 20 };
const NAMES = { id: ["id", "_id", "ids"], text: ["text", "sentence", "texts"], label: ["label", "labels", "group", "groups"] };
const INDEX = /^(?:|Unnamed: \d+|__index_level_\d+__|row name|.+[_ .-](?:id|ID|Id)|[a-z]+I[dD]|idx|index)$/; // columns that count or name rows
const CALLED_VECTORS = /^(?:.*[\W_])?(?:embeddings?|emb|vectors?|vecs?)$/i;
const CODECS = ["UNCOMPRESSED", "SNAPPY"]; // of Parquet
const SEPARATORS = { ",": "commas", ";": "semicolons", "\t": "tabs" };
const DECIMAL_COMMA = /^(\s*[+-]?\d*),(\d*(?:e[+-]?\d+)?\s*)$/i;
const FORMATS = ".npy, .npz, .csv, .tsv, .json, .jsonl, .safetensors, .parquet, .vec, .bin, .fvecs or .fbin";
const BINARY = { fvecs: "F32", bvecs: "U8", ivecs: "I32", fbin: "F32", u8bin: "U8", i8bin: "I8" }; // of nearest-neighbour benchmarks
const [SMALLEST, LARGEST] = [1e-70, 1e70]; // sizes of a file's largest number; fourth powers must fit double precision

// A fault of the file, in the visitor's terms.
export class FileError extends Error {}

const fail = (problem) => {
  throw new FileError(problem);
};

// The vectors of one of the files, and columns of any of them. report(text) says what is being done. Of texts without vectors, an
// encoder makes them.
export async function readFiles(files, report = () => {}, encoder = null) {
  const found = [];
  for (const file of files) {
    report(`Reading ${file.name}`);
    found.push({ name: file.name, ...(await readOne(file, report)) });
  }
  if (found.length > 1) for (const entry of found) if (entry.vectors?.d === 1 && found.some(({ vectors }) => vectors?.d > 1)) Object.assign(entry, labelsOf(entry));
  const texts = encoder && found.every(({ vectors }) => (vectors?.d ?? 1) === 1) && found.find(({ columns }) => columns?.text);
  if (texts) Object.assign(texts, { name: `${texts.name}, encoded by this page`, vectors: vectorsOf(texts, encoder), encoded: true });
  const withVectors = found.filter(({ vectors }) => vectors);
  if (!withVectors.length) fail(`${found.map(({ name }) => name).join(", ")}: no vectors; drop it together with its vectors, a ${FORMATS} file with one vector per row`);
  if (withVectors.length > 1) fail(`${withVectors.map(({ name }) => name).join(" and ")} both hold vectors; drop one at a time`);
  const [{ name, vectors, encoded }] = withVectors;
  const columns = {};
  for (const entry of found) {
    for (const [role, values] of Object.entries(entry.columns ?? {})) {
      if (values.length !== vectors.n) fail(`${entry.name}: ${values.length} ${role === "id" ? "ids" : `${role}s`} for ${vectors.n} vectors`);
      columns[role] ??= values.map(String);
    }
  }
  if (vectors.d === 1) fail(`${name} holds one number per row, which is no vector${vectors.source ? ` (column '${vectors.source}')` : ""}; as labels, drop it together with vectors`);
  report("Checking the numbers");
  checkFinite(vectors, name);
  return { name, encoded, ...withoutZeros(name, vectors, columns) };
}

function vectorsOf({ name, columns: { text } }, encoder) {
  requireSize(text.length, encoder.d);
  const vectors = encoder.encode(text);
  if (!vectors.values.some(Boolean)) fail(`${name}: the page's encoder knows no word of these texts; it reads English`);
  return vectors;
}

// A file of one number per row, dropped beside vectors.
function labelsOf({ vectors, columns }) {
  return { vectors: null, columns: { label: Array.from(vectors.values, String), ...columns } };
}

// Rows of zeros have no direction; they are left out of every number, unless there are no others.
function withoutZeros(name, { n, d, values }, columns) {
  const rows = Int32Array.from({ length: n }, (_, i) => i).filter((i) => values.subarray(i * d, (i + 1) * d).some(Boolean));
  if (!rows.length || rows.length === n) return { n, d, values, columns, zeros: 0 };
  if (rows.length === 1) fail(`${name} has a single row that is not zero; measures need at least two`);
  const kept = Object.entries(columns).map(([role, cells]) => [role, Array.from(rows, (i) => cells[i])]);
  return { n: rows.length, d, values: rowsAt(values, rows, d), columns: { id: Array.from(rows, (i) => `row ${i + 1}`), ...Object.fromEntries(kept) }, zeros: n - rows.length };
}

async function readOne(file, report, unpacked = false) {
  if (!file.size) fail(`${file.name} is empty`);
  if (file.size > LIMITS.bytes) fail(`${file.name} has ${megabytes(file.size)} MB; at most ${megabytes(LIMITS.bytes)} MB are read here. isoviz measure reads larger files`);
  const suffix = file.name.toLowerCase().match(/\.(\w+)$/)?.[1];
  const start = new Uint8Array(await file.slice(0, 32).arrayBuffer());
  const begins = (text) => [...text].every((letter, at) => start[at] === letter.charCodeAt(0));
  try {
    if (begins("\x1f\x8b") && !unpacked) return await readOne(new File([await inflated(file, LIMITS.bytes, "gzip")], file.name.replace(/\.gz$/i, "")), report, true);
    if (begins("\x93NUMPY")) return ofArrays({ [file.name.replace(/\.npy$/i, "")]: npyArray(await file.arrayBuffer()) });
    if (begins("PK")) return ofArrays(await npzArrays(file));
    if (begins("PAR1")) return ofTable(await parquetRows(file, report));
    if (suffix === "safetensors") return ofArrays(safetensors(await file.arrayBuffer()));
    if (suffix in BINARY) return { vectors: benchmarkRows(await file.arrayBuffer(), BINARY[suffix], suffix.endsWith("vecs")), columns: {} };
    if (suffix === "bin" && /^\d{1,9} \d{1,6}\n/.test(String.fromCharCode(...start))) return ofWords(word2vec(await file.arrayBuffer()));
    if (suffix === "json") return ofTable(documentRows(await utf8(file)));
    if (suffix === "jsonl" || suffix === "ndjson") return ofTable(await jsonLines(file));
    if (suffix === "csv" || suffix === "tsv") return ofTable(await csvRows(file, suffix));
    if (["txt", "vec", "glove"].includes(suffix)) {
      const text = await utf8(file);
      const found = wordVectors(text);
      if (found) return ofWords(found);
      if (suffix === "txt") return { vectors: null, columns: { text: text.replace(/\r?\n$/, "").split(/\r?\n/) } };
      fail("holds no words with vectors");
    }
  } catch (error) {
    if (error instanceof FileError) fail(error.message.startsWith(file.name.replace(/\.gz$/i, "")) ? error.message : `${file.name}: ${error.message}`);
    fail(`${file.name} cannot be read: ${error?.message ?? error}`);
  }
  const isText = start.every((byte) => byte > 8 && byte < 127 && (byte > 31 || byte < 14));
  return fail(`${file.name} is ${suffix === "npy" && isText ? "text" : "of another kind"}; expected ${FORMATS}`);
}

const ofWords = ({ words, ...vectors }) => ({ vectors, columns: words ? { id: words, text: words } : {} });

const megabytes = (bytes) => Math.round(bytes / 2 ** 20);

async function utf8(file) {
  const bytes = await file.arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return fail("is not UTF-8; save it as UTF-8");
  }
}

function checkFinite({ values, d }, name) {
  let largest = 0;
  for (let at = 0; at < values.length; at += 1) {
    const size = Math.abs(values[at]);
    if (size > largest) largest = size;
    if (size <= LARGEST) continue;
    fail(`${name}: row ${Math.floor(at / d) + 1}, dimension ${(at % d) + 1} is ${Number.isNaN(values[at]) ? "not a number" : values[at]}; leave such rows out`);
  }
  if (largest > 0 && largest < SMALLEST) fail(`${name}: its largest number is ${largest}; multiply the vectors by a constant`);
}

function requireSize(n, d) {
  if (!n || !d) fail(`contains no points: its shape is (${n}, ${d})`);
  if (n < 2) fail("has a single row; measures need at least two");
  const most = Math.min(LIMITS.rows, Math.floor(LIMITS.numbers / Math.min(d, LIMITS.dimensions)));
  if (d > LIMITS.dimensions || n > most) fail(`has ${n} rows of ${d} numbers; this page takes up to ${most} rows of ${Math.min(d, LIMITS.dimensions)}. isoviz measure has no such limit`);
}

// ---- arrays

// The one array of numbers with two axes; arrays with one axis and a usual name become columns.
function ofArrays(arrays) {
  const matrices = Object.entries(arrays).filter(([, { shape, values }]) => shape.length === 2 && !Array.isArray(values));
  if (matrices.length > 1) fail(`holds ${matrices.length} arrays (${matrices.map(([name]) => name).join(", ")}); keep one`);
  const columns = {};
  for (const [name, { shape, values }] of Object.entries(arrays)) {
    const role = Object.keys(NAMES).find((each) => NAMES[each].includes(name.toLowerCase()));
    if (role && shape.length === 1) columns[role] = Array.from(values);
  }
  const [[name, single] = []] = Object.entries(arrays).filter(([, { shape, values }]) => shape.length === 1 && !Array.isArray(values));
  if (!matrices.length && !Object.keys(columns).length && single) return { vectors: { n: single.shape[0], d: 1, values: floats(single.values), source: name }, columns };
  if (!matrices.length && !Object.keys(columns).length) {
    const shapes = Object.values(arrays).map(({ shape }) => `(${shape.join(", ")})`);
    fail(shapes.length ? `has the shape ${shapes.join(", ")}; expected (points, dimensions). Of three axes, average one, for example x.mean(axis=1)` : "holds no array that is read here; save it with np.save");
  }
  if (!matrices.length) return { vectors: null, columns };
  const [, { shape: [n, d], values }] = matrices[0];
  requireSize(n, d);
  return { vectors: { n, d, values: floats(values) }, columns };
}

const floats = (values) => (values instanceof Float32Array || values instanceof Float64Array ? values : Float64Array.from(values, Number));

const isShape = (shape) => Array.isArray(shape) && shape.every((size) => Number.isSafeInteger(size) && size >= 0);
const volume = (shape) => shape.reduce((product, size) => product * size, 1);

export function npyArray(buffer) {
  if (buffer.byteLength < 12) fail("is cut off: its header is longer than the file");
  const view = new DataView(buffer);
  const major = view.getUint8(6);
  if (major < 1 || major > 3) fail(`is a .npy file of version ${major}, which is unknown`);
  const [length, from] = major === 1 ? [view.getUint16(8, true), 10] : [view.getUint32(8, true), 12];
  if (length > 65536 || from + length > buffer.byteLength) fail("is cut off: its header is longer than the file");
  const header = new TextDecoder("latin1").decode(new Uint8Array(buffer, from, length));
  const kind = header.match(/'descr':\s*'([<>|=])(\w)(\d+)'/);
  const shape = header.match(/'shape':\s*\(([^)]*)\)/)?.[1].split(",").map((part) => part.trim()).filter(Boolean).map(Number);
  if (!isShape(shape)) fail("has a header that is not understood");
  if (!kind || kind[2] === "O") fail("holds Python objects or records; save numbers, for example np.save(path, x.astype('float32'))");
  const [, order, letter, width] = kind;
  const unit = letter === "U" ? 4 : 1;
  const promised = volume(shape) * Number(width) * unit;
  if (promised > buffer.byteLength - from - length) fail(`is cut off: its header declares ${promised} bytes of numbers, the file has ${buffer.byteLength - from - length}`);
  const bytes = new Uint8Array(buffer, from + length, promised);
  if (letter === "U" || letter === "S") return { shape, values: textsOf(bytes, Number(width) * unit, unit, order === ">") };
  const values = decoded(bytes, `${{ f: "F", i: "I", u: "U", b: "U" }[letter] ?? letter}${8 * Number(width)}`, order === ">");
  return { shape, values: /'fortran_order':\s*True/.test(header) && shape.length === 2 ? rowMajor(values, shape) : values };
}

function textsOf(bytes, size, unit, big) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: size ? bytes.byteLength / size : 0 }, (_, row) => {
    let text = "";
    for (let at = row * size; at < (row + 1) * size; at += unit) {
      const code = unit === 4 ? view.getUint32(at, !big) : view.getUint8(at);
      if (code) text += String.fromCodePoint(code);
    }
    return text;
  });
}

function rowMajor(values, [n, d]) {
  const out = new values.constructor(values.length);
  for (let j = 0; j < d; j += 1) for (let i = 0; i < n; i += 1) out[i * d + j] = values[j * n + i];
  return out;
}

const TYPES = { F64: Float64Array, F32: Float32Array, I8: Int8Array, U8: Uint8Array, I16: Int16Array, U16: Uint16Array, I32: Int32Array, U32: Uint32Array, I64: BigInt64Array, U64: BigUint64Array };

const widthOf = (type) => Number(type.match(/\d+/)?.[0] ?? 8) / 8; // bytes of a number

// Numbers of a type such as F32, on these bytes if they begin at a multiple of its width.
function decoded(bytes, type, big = false) {
  const width = widthOf(type);
  if (big && width > 1) for (let at = 0; at < bytes.length; at += width) bytes.subarray(at, at + width).reverse();
  const typed = (Type) => new Type(bytes.byteOffset % width ? bytes.slice().buffer : bytes.buffer, bytes.byteOffset % width ? 0 : bytes.byteOffset, bytes.length / width);
  if (type in TYPES) return typed(TYPES[type]);
  if (type === "F16") return Float32Array.from(typed(Uint16Array), half);
  if (type === "BF16") return new Float32Array(Uint32Array.from(typed(Uint16Array), (bits) => bits << 16).buffer);
  return fail(`holds numbers of the type ${type}, which is not read here`);
}

function half(bits) {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const size = exponent === 31 ? (fraction ? NaN : Infinity) : exponent ? 2 ** (exponent - 25) * (1024 + fraction) : fraction * 2 ** -24;
  return bits >> 15 ? -size : size;
}

// Reads the archive's directory; unpacks only what fits the limit, whatever the directory declares.
async function npzArrays(file) {
  const buffer = await file.arrayBuffer();
  const view = new DataView(buffer);
  let end = buffer.byteLength - 22;
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end -= 1;
  if (end < 0) fail("is cut off: it has no directory");
  let at = view.getUint32(end + 16, true);
  const arrays = {};
  let [room, unread] = [LIMITS.bytes, null];
  for (let entry = 0; entry < view.getUint16(end + 10, true); entry += 1) {
    if (at + 46 > buffer.byteLength || view.getUint32(at, true) !== 0x02014b50) fail("has a directory that is not understood");
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true));
    const [method, packed, local] = [view.getUint16(at + 10, true), view.getUint32(at + 20, true), view.getUint32(at + 42, true)];
    const name = new TextDecoder().decode(new Uint8Array(buffer, at + 46, nameLength));
    at += 46 + nameLength + extra + comment;
    if (!name.endsWith(".npy")) continue;
    if (local + 30 > buffer.byteLength) fail("has a directory that is not understood");
    const from = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const size = packed === 0xffffffff ? buffer.byteLength - from : packed; // larger sizes stand in an extra field
    if (method !== 8 && (method !== 0 || size !== packed)) fail(`is packed by method ${method}, which is not read here; use np.savez or np.savez_compressed`);
    const bytes = method === 0 ? buffer.slice(from, from + size) : await inflated(new Blob([new Uint8Array(buffer, from, Math.min(size, buffer.byteLength - from))]), room, "deflate-raw");
    room -= bytes.byteLength;
    try {
      arrays[name.slice(0, -4)] = npyArray(bytes);
    } catch (error) {
      unread ??= error; // texts as Python objects, beside the vectors
    }
  }
  if (unread && !Object.values(arrays).some(({ shape }) => shape.length === 2)) throw unread;
  return arrays;
}

async function inflated(packed, room, kind) {
  const reader = packed.stream().pipeThrough(new DecompressionStream(kind)).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > room) {
      await reader.cancel();
      fail(`unpacks to more than ${megabytes(LIMITS.bytes)} MB`);
    }
    parts.push(value);
  }
  return new Blob(parts).arrayBuffer();
}

// As the library of the format demands, the arrays fill the file after the header, without gaps.
function safetensors(buffer) {
  const length = buffer.byteLength < 8 ? Infinity : Number(new DataView(buffer).getBigUint64(0, true));
  if (8 + length > buffer.byteLength) fail("is cut off: its header is longer than the file");
  const { __metadata__: _, ...entries } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length))) ?? {};
  const arrays = {};
  let end = 0;
  if (!Object.values(entries).every((entry) => isShape(entry?.shape) && isShape(entry.data_offsets) && typeof entry.dtype === "string")) fail("has a header that is not understood");
  for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(entries).sort(([, a], [, b]) => a.data_offsets[0] - b.data_offsets[0] || a.data_offsets[1] - b.data_offsets[1])) {
    const size = volume(shape) * widthOf(dtype);
    if (from !== end || to - from !== size) fail(`is damaged: array '${name}' of shape (${shape.join(", ")}) takes ${size} bytes from byte ${end}, its header says ${from} to ${to}`);
    if (8 + length + to > buffer.byteLength) fail(`is cut off: array '${name}' ends behind the file`);
    arrays[name] = { shape, values: decoded(new Uint8Array(buffer, 8 + length + from, size), dtype) };
    end = to;
  }
  if (8 + length + end < buffer.byteLength) fail(`is damaged: its arrays have ${end} bytes, the file has ${buffer.byteLength - 8 - length}`);
  return arrays;
}

// .fvecs and the like: each row after its dimension; .fbin and the like: n and d, then all numbers.
function benchmarkRows(buffer, type, each) {
  const [view, width] = [new DataView(buffer), widthOf(type)];
  const d = buffer.byteLength < 8 ? 0 : view.getInt32(each ? 0 : 4, true);
  const size = d * width + (each ? 4 : 0); // bytes of a row
  const n = each ? buffer.byteLength / size : view.getInt32(0, true);
  if (!(d > 0) || !Number.isInteger(n) || buffer.byteLength !== n * size + (each ? 0 : 8)) fail(`is damaged or of another format: its rows do not all have ${d} dimensions`);
  requireSize(n, d);
  const values = new (type === "F32" ? Float32Array : Float64Array)(n * d);
  for (let i = 0; i < n; i += 1) {
    if (each && view.getInt32(i * size, true) !== d) fail(`has rows of unequal length; the first has ${d} dimensions`);
    values.set(decoded(new Uint8Array(buffer, i * size + (each ? 4 : 8), d * width), type), i * d);
  }
  return { n, d, values };
}

// ---- tables: { names, rows: arrays of cells, commas: whether numbers may have decimal commas }

async function csvRows(file, suffix) {
  const whole = await utf8(file);
  const [excel, said] = whole.match(/^\s*sep=(.)\s*\n/) ?? [""]; // Excel's first line
  const text = whole.slice(excel.length);
  const line = text.match(/^.*\S.*$/m)?.[0] ?? "";
  const semicolons = line.includes(";") && (!line.includes(",") || areValues(line.split(";")));
  const delimiter = suffix === "tsv" || line.includes("\t") ? "\t" : said ?? (semicolons ? ";" : ""); // "": Papa Parse finds it
  const { data, errors, meta } = Papa.parse(text, { delimiter, skipEmptyLines: true });
  const [first = [], ...others] = data;
  const headless = areValues(first) || (first.length === 1 && !isRole(first[0]) && (suffix === "tsv" || isNumber(first[0]))); // the projector's labels have no header
  if (!headless && others.length && others.every(({ length }) => length === first.length + 1)) first.unshift(first.some((name) => name.toLowerCase() === "id") ? "row name" : "id"); // as R writes them
  const quotes = errors.find(({ type }) => type === "Quotes");
  const rowNamed = (row) => (row ? `row ${row}` : "the header");
  if (quotes) fail(`${rowNamed(quotes.row + headless)}: ${quotes.message}`);
  const longer = data.findIndex((row) => row.slice(first.length).some(Boolean));
  if (longer > 0) fail(`${rowNamed(longer + headless)} has more cells than the ${headless ? "first row" : "header"} (${first.length}); put texts that contain ${SEPARATORS[meta.delimiter] ?? meta.delimiter} in double quotes`);
  const commas = meta.delimiter === ";" || (meta.delimiter === "\t" && data.slice(0, 50).some((row) => row.some((cell) => DECIMAL_COMMA.test(cell))) && !data.slice(0, 50).some((row) => row.some(isFraction)));
  return headless ? { names: first.length > 1 ? first.map((_, j) => `column ${j + 1}`) : ["label"], rows: data, commas } : { names: first, rows: others, commas };
}

// Whether a table's first line is a row: mostly numbers, with decimal points or commas, that do not count the columns.
function areValues(cells) {
  const numbers = cells.map((cell) => cell.replace(",", ".")).filter(isNumber).map(Number);
  const counts = numbers.length > 3 || numbers[0] === 0 || numbers[0] === 1;
  return 2 * numbers.length > cells.length && !(counts && numbers.every((value, j) => !j || value - numbers[j - 1] === 1));
}

async function jsonLines(file) {
  const objects = [];
  for (const [at, line] of (await utf8(file)).split("\n").entries()) {
    if (!line.trim()) continue;
    let value;
    try {
      value = JSON.parse(line);
    } catch {
      fail(`line ${at + 1} is not JSON`);
    }
    objects.push(Array.isArray(value) ? { vector: value } : value);
    if (typeof value !== "object" || value === null) fail(`line ${at + 1} is neither an object nor a list`);
  }
  return ofObjects(rowsOfAnswers(objects));
}

function documentRows(text) {
  let content;
  try {
    content = JSON.parse(text);
  } catch (error) {
    fail(`is not JSON: ${error.message}`);
  }
  const rows = rowsOfDocument(content);
  if (!rows.length) fail(`holds no rows with vectors; expected [[0.1, …], …], a list of objects, {"text": [0.1, …], …} or {"embeddings": [[0.1, …], …], …}`);
  return ofObjects(rows);
}

async function parquetRows(file, report) {
  const buffer = await file.arrayBuffer();
  const metadata = hyparquet.parquetMetadata(buffer);
  if (Number(metadata.num_rows) > LIMITS.rows) requireSize(Number(metadata.num_rows), 1);
  const codec = metadata.row_groups.flatMap(({ columns }) => columns).map(({ meta_data: data }) => data?.codec).find((name) => name && !CODECS.includes(name));
  if (codec) fail(`is compressed by ${codec}, which is not read here; save it with Snappy or without compression`);
  report(`Decoding ${file.name}`);
  const numbers = metadata.schema.filter(({ type }) => type === "FLOAT" || type === "DOUBLE").map(({ name }) => name);
  return ofObjects(await hyparquet.parquetReadObjects({ file: buffer, metadata }), new Set(numbers));
}

// Columns that are null in all rows are left out, except those that hold numbers according to the file.
function ofObjects(objects, numbers = new Set()) {
  const found = new Set();
  for (const object of objects) for (const name of Object.keys(object)) if (object[name] != null || numbers.has(name)) found.add(name);
  const names = [...found];
  return { names, rows: objects.map((object) => names.map((name) => object[name])) };
}

// The vectors of a table are its only column of lists, else all columns of numbers without another role.
function ofTable({ names, rows, commas }) {
  if (!rows.length) fail("has no rows");
  if (rows.length > LIMITS.rows) requireSize(rows.length, 1);
  const lower = names.map((name) => name.toLowerCase());
  const places = {};
  for (const [role, usual] of Object.entries(NAMES)) {
    const at = usual.map((name) => lower.indexOf(name)).find((index) => index >= 0);
    if (at !== undefined) places[role] = at;
  }
  const taken = new Set(Object.values(places));
  const free = names.map((_, j) => j).filter((j) => !taken.has(j) && !INDEX.test(names[j]));
  if (commas) for (const row of rows) for (const j of free) row[j] = row[j]?.replace(DECIMAL_COMMA, "$1.$2");
  const samples = names.map((_, j) => someFilled(rows, j));
  const mostly = (j, isKind) => samples[j].filter(isKind).length > samples[j].length / 2;
  const called = free.filter((j) => CALLED_VECTORS.test(names[j]));
  const lists = free.filter((j) => mostly(j, isList) || areVectors(samples[j].filter((cell) => typeof cell === "string")));
  if (lists.length > 1) fail(`${lists.length} columns hold lists (${lists.map((j) => names[j]).join(", ")}); keep one`);
  const numeric = lists.length ? [] : free.filter((j) => mostly(j, isNumber));
  const numbers = numeric.length ? free.filter((j) => numeric.includes(j) || !samples[j].length) : []; // empty ones are refused below
  const [unread] = lists.length ? [] : called.filter((j) => !numeric.includes(j) && samples[j].length);
  if (unread !== undefined) fail(`column '${names[unread]}' holds no vectors that can be read, but '${String(samples[unread][0]).slice(0, 40)}'`);
  const columns = Object.fromEntries(Object.entries(places).map(([role, j]) => [role, rows.map((row) => String(row[j] ?? ""))]));
  if (!lists.length && !numbers.length) {
    if (Object.keys(columns).length) return { vectors: null, columns };
    fail(`no column of lists and no column of numbers (columns: ${names.slice(0, 8).join(", ")})`);
  }
  if (lists.length) return { vectors: ofLists(rows, lists[0], names[lists[0]]), columns };
  return { vectors: { ...ofNumbers(rows, numbers, names), source: names[numbers[0]] }, columns };
}

function someFilled(rows, j) {
  const cells = [];
  for (let i = 0; i < rows.length && cells.length < 50; i += 1) if (!isEmpty(rows[i][j])) cells.push(rows[i][j]);
  return cells;
}

const isEmpty = (cell) => cell === "" || cell == null;
const isList = (cell) => Array.isArray(cell) || ArrayBuffer.isView(cell);
const isRole = (name) => Object.values(NAMES).flat().includes(name.toLowerCase());
const isNumber = (cell) => (typeof cell === "string" ? cell.trim() !== "" && Number.isFinite(Number(cell)) : typeof cell === "number" || typeof cell === "bigint");

function ofLists(rows, at, name) {
  const lists = rows.map((row) => (typeof row[at] === "string" ? numbersIn(row[at]) : row[at]));
  const d = lists.find((list) => list?.length)?.length ?? 0;
  const problems = lists.map((list, i) => problemOf(list, rows[i][at], d));
  const first = problems.findIndex(Boolean);
  if (first >= 0) fail(`${problems.filter(Boolean).length} of ${rows.length} rows have no readable vector, the first is row ${first + 1}, column '${name}': ${problems[first]}`);
  requireSize(rows.length, d);
  const values = new (lists[0] instanceof Float32Array ? Float32Array : Float64Array)(rows.length * d);
  lists.forEach((list, i) => list.forEach((value, j) => (values[i * d + j] = Number(value))));
  return { n: rows.length, d, values };
}

function problemOf(list, cell, d) {
  if (isEmpty(cell)) return "it is empty";
  if (typeof cell === "string" && cell.includes("...")) return `'${cell.slice(0, 40)}': the numbers are missing where numpy wrote '...'`;
  if (!list) return `'${String(cell).slice(0, 30)}' is not a list of numbers`;
  if (list.length !== d) return `${list.length} numbers where earlier rows have ${d}`;
  const wrong = Array.prototype.findIndex.call(list, (value) => !isNumber(value));
  return wrong < 0 ? null : `number ${wrong + 1} is ${JSON.stringify(list[wrong] ?? null)}`;
}

function ofNumbers(rows, places, names) {
  const d = places.length;
  requireSize(rows.length, d);
  const values = new Float64Array(rows.length * d);
  rows.forEach((row, i) => {
    places.forEach((place, j) => {
      if (!isNumber(row[place])) fail(`row ${i + 1}, column '${names[place]}': ${isEmpty(row[place]) ? "it is empty" : `'${String(row[place]).slice(0, 30)}' is not a number`}`);
      values[i * d + j] = Number(row[place]);
    });
  });
  return { n: rows.length, d, values };
}
