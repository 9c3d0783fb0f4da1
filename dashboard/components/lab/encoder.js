// Texts as vectors without a model: the mean of the vectors of their pieces, from a table that factory/static_encoder.py distils.

const REMOVED = /[\0\ufffd]|(?![\t\n\r])\p{C}/gu; // unknown and control characters
const IDEOGRAPHS = /[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u{20000}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu; // each is a word
const PUNCTUATION = /[!-/:-@[-`{-~]|\p{P}/gu;
const LONGEST_WORD = 100; // characters; longer ones are no words
const FULL_SCALE = 127; // of the table's integers, which stand for −1 to 1

export class StaticEncoder {
  // pieces: one a line. npy: a .npy file of int8, (pieces, dimensions).
  constructor({ pieces, npy }) {
    this.places = new Map(pieces.split("\n").map((piece, place) => [piece, place]));
    const { shape, values } = npyArray(npy);
    Object.assign(this, { d: shape[1], table: values });
  }

  // Single precision, (texts, d); zeros for a text of which no piece is known.
  encode(texts) {
    const { d, table } = this;
    const values = new Float32Array(texts.length * d);
    const sums = new Float64Array(d);
    for (const [i, text] of texts.entries()) {
      const places = this.piecesOf(text);
      sums.fill(0);
      for (const place of places) for (let j = 0; j < d; j += 1) sums[j] += table[place * d + j];
      for (let j = 0; j < d && places.length; j += 1) values[i * d + j] = sums[j] / (places.length * FULL_SCALE);
    }
    return { n: texts.length, d, values };
  }

  // WordPiece in lower case and without accents, as BERT's; words that are not made of known pieces are left out.
  piecesOf(text) {
    const plain = text.replace(REMOVED, "").replace(IDEOGRAPHS, " $& ").normalize("NFD").replace(/\p{Mn}/gu, "").toLowerCase();
    return plain.replace(PUNCTUATION, " $& ").split(/\s+/).flatMap((word) => this.piecesOfWord([...word]));
  }

  // The longest known piece at each place.
  piecesOfWord(letters) {
    const found = [];
    for (let from = 0; from < letters.length && letters.length <= LONGEST_WORD; ) {
      let to = letters.length;
      const piece = () => (from ? "##" : "") + letters.slice(from, to).join("");
      while (to > from && !this.places.has(piece())) to -= 1;
      if (to === from) return [];
      found.push(this.places.get(piece()));
      from = to;
    }
    return found;
  }
}
