// Finding names by words: in any order, by any part of them, with or without accents.

/** @param {string} text */
const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/**
 * Those whose names contain every word that is typed: equal names first, then those that begin with what is typed, then
 * those in which every word begins one, then the rest.
 * @template {{ name: string }} T
 * @param {T[]} all
 * @param {string} typed
 * @returns {T[]}
 */
export function found(all, typed) {
  const whole = plain(typed).trim();
  const words = whole.split(/\s+/);
  const rank = (name) => {
    if (name === whole) return 0;
    if (name.startsWith(whole)) return 1;
    const begins = name.split(/[^\p{L}\p{N}]+/u);
    return words.every((word) => begins.some((begin) => begin.startsWith(word))) ? 2 : 3;
  };
  const ranked = all.map((each) => ({ each, name: plain(each.name) }));
  const matching = ranked.filter(({ name }) => words.every((word) => name.includes(word)));
  return matching.map(({ each, name }) => ({ each, rank: rank(name) })).sort((a, b) => a.rank - b.rank).map(({ each }) => each);
}
