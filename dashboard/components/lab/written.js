// Vectors that people wrote as text, as in isoviz/tables/kinds and isoviz/vectors/cells.py: words with their numbers, cells, JSON.

const COUNTS = /^\s*(\d+)[ \t]+(\d+)(?:[ \t]+\d+)?\s*$/; // word2vec's first line
const PRINTED = /^\s*(?:(?:torch|np|numpy)\.)?(?:tensor|array)\(/;
const BASE64 = /^[A-Za-z0-9+/]{10,}={0,2}$/;
const PLAUSIBLE = [1e-12, 1e6]; // magnitudes of numbers in base64; other text decodes to numbers of any magnitude
const CALLED = { keys: "id", custom_id: "id", words: "text", tokens: "text", documents: "text" }; // names elsewhere → here
const LOOKED_AT = 50; // lines that decide whether a file holds vectors

const isFraction = (cell) => isNumber(cell) && /[.e]/i.test(cell);

// { n, d, values, words } of lines of words with numbers, or of numbers alone; null if the first lines are not all such, like sentences.
export function wordVectors(text) {
  const lines = text.split("\n");
  while (lines.length && !lines.at(-1).trim()) lines.pop();
  const counts = lines[0]?.match(COUNTS);
  const first = lines.slice(counts ? 1 : 0, LOOKED_AT).map((line) => line.trimEnd());
  if (first.length < (counts ? 1 : 2)) return null;
  const separator = first.every((line) => line.split("\t").length > 2) ? "\t" : " ";
  const cells = first.map((line) => line.split(separator));
  const widths = cells.map(({ length }) => length).sort((a, b) => a - b);
  const d = counts ? Number(counts[2]) : widths[widths.length >> 1] - 1;
  const bare = !counts && d > 0 && cells.every((row) => row.length === d + 1 && row.every(isFraction));
  if (!bare && (d < 2 || !cells.every((row) => row.length > d && row.slice(-d).every(isNumber)))) return null;
  const numbers = cells.flatMap((row) => row.slice(-d));
  if (!counts && 2 * numbers.filter(isFraction).length < numbers.length) return null; // counts and years at the end of sentences
  const [n, width] = [lines.length - (counts ? 1 : 0), bare ? d + 1 : d];
  requireSize(n, width);
  const words = bare ? null : new Array(n);
  const values = new Float32Array(n * width);
  for (let i = 0; i < n; i += 1) {
    const row = lines[lines.length - n + i].trimEnd().split(separator);
    const from = row.length - width;
    for (let j = 0; j < width; j += 1) {
      if (!isNumber(row[from + j] ?? "")) fail(`row ${i + 1} ('${row.join(separator).slice(0, 30)}') does not end in ${width} numbers`);
      values[i * width + j] = Number(row[from + j]);
    }
    if (words) words[i] = row.slice(0, from).join(separator);
  }
  return { n, d: width, values, words };
}

// word2vec's binary file: "n d", then each word, a blank and d float32.
export function word2vec(buffer) {
  const bytes = new Uint8Array(buffer);
  let at = bytes.indexOf(10) + 1;
  const [n, d] = new TextDecoder().decode(bytes.subarray(0, at)).split(" ").map(Number);
  requireSize(n, d);
  const [values, words] = [new Float32Array(n * d), new Array(n)];
  for (let i = 0; i < n; i += 1) {
    const blank = bytes.indexOf(32, at);
    if (blank < 0 || blank + 1 + 4 * d > bytes.length) fail(`is cut off or damaged: word ${i + 1} of ${n} is incomplete`);
    words[i] = new TextDecoder().decode(bytes.subarray(at, blank)).trimStart();
    at = blank + 1 + 4 * d;
    values.set(new Float32Array(buffer.slice(blank + 1, at)), i * d);
  }
  return { n, d, values, words };
}

// Whether cells look like vectors, readable or not, by the first; in base64, by all.
export function areVectors(cells) {
  const [first = ""] = cells;
  const parts = partsOf(first);
  const count = parts.filter((part) => isNumber(part) || part === "...").length;
  if (first.trimStart().startsWith("[") || PRINTED.test(first)) return count > 0 && 2 * count >= parts.length;
  if (parts.length >= 4) return count === parts.length && /[.e]/i.test(first);
  return cells.length > 0 && cells.every(decodedFloats) && cells.reduce((sum, cell) => sum + decodedFloats(cell).length, 0) >= 16;
}

// The numbers of a cell, as JSON, as numpy or PyTorch print them, with bars, commas or blanks, or as base64; null if it holds none.
export function numbersIn(cell) {
  const parts = partsOf(cell);
  if (parts.every(isNumber) && cell.split("[").length < 3) return parts.map(Number);
  return decodedFloats(cell);
}

// What stands between separators: bars, else semicolons, commas, blanks.
function partsOf(cell) {
  const printed = cell.replace(PRINTED, "");
  const inner = (printed === cell ? cell : printed.replace(/,\s*\w+\s*=[^,\]]*/g, "")).replace(/[[\](){}]/g, " ").replace(/^[\s,;|]+|[\s,;|]+$/g, "");
  const separator = ["|", ";", ","].find((sign) => inner.includes(sign));
  const parts = inner.split(separator ?? /\s+/).map((part) => part.trim());
  return separator === "|" || separator === ";" ? parts.map((part) => part.replace(",", ".")) : parts;
}

function decodedFloats(text) {
  if (!BASE64.test(text) || text.length % 4) return null;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  if (bytes.length % 4) return null;
  const values = new Float32Array(bytes.buffer);
  return values.every((value) => value === 0 || (Math.abs(value) > PLAUSIBLE[0] && Math.abs(value) < PLAUSIBLE[1])) ? values : null;
}

const isVector = (value) => Array.isArray(value) && value.length > 1 && value.every((one) => typeof one === "number");
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isAnswer = (value) => Array.isArray(value?.data) && isObject(value.data[0]) && "embedding" in value.data[0];

// Rows of a JSON document; none if it has another shape.
export function rowsOfDocument(content) {
  if (Array.isArray(content)) return content.every(isVector) ? content.map((vector) => ({ vector })) : content.every(isObject) ? rowsOfAnswers(content) : [];
  if (!isObject(content)) return [];
  if (isAnswer(content)) return rowsOfAnswers([content]);
  const entries = Object.entries(content);
  if (entries.every(([, value]) => isVector(value))) return entries.map(([text, vector]) => ({ text, vector }));
  if (entries.every(([, value]) => isObject(value))) return rowsOfAnswers(entries.map(([id, value]) => ({ id, ...value })));
  const named = entries.find(([, value]) => Array.isArray(value) && value.length && value.every((one) => one === null || isVector(one)));
  const columns = named ? entries.filter(([name, value]) => name === named[0] || (value?.length === named[1].length && !value.some?.(isVector))) : [];
  return (named?.[1] ?? []).map((_, i) => Object.fromEntries(columns.map(([name, values]) => [CALLED[name] ?? name, values[i]])));
}

// The objects themselves, or the rows of OpenAI's answers: the id of a request, and a vector for each of its inputs.
export function rowsOfAnswers(objects) {
  return objects.flatMap((one) => {
    const batch = "custom_id" in one && "response" in one;
    if (!batch && !isAnswer(one)) return [one];
    const data = (batch ? one.response?.body?.data : one.data) ?? [];
    const vectors = [...data].sort((a, b) => a.index - b.index).map(({ embedding }) => (typeof embedding === "string" ? Array.from(decodedFloats(embedding) ?? []) : embedding));
    if (!batch) return vectors.map((vector) => ({ vector }));
    return vectors.length < 2 ? [{ id: one.custom_id, vector: vectors[0] ?? null }] : vectors.map((vector, place) => ({ id: `${one.custom_id}/${place}`, vector }));
  });
}
