// What the worker and the screen of people's own vectors share.

export const SHARES = [0.5, 0.95, 0.99, 0.999]; // shares of unrelated pairs, as in `isoviz.readouts.ruler`
export const BITS = [32, 8, 1]; // of a number in the compression frontier

// Colours 0 to 9 of the rows: the nine most frequent labels, then all others.
export function colouring(labels) {
  if (!labels) return null;
  const places = new Map(frequentLabels(labels).map((label, at) => [label, at]));
  return Uint8Array.from(labels, (label) => places.get(label) ?? 9);
}

export function frequentLabels(labels) {
  const counts = new Map();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([label]) => label);
  return sorted.slice(0, sorted.length > 10 ? 9 : 10);
}
