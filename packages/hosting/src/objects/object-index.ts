import type { ListOptions, ListPage, ObjectHead } from "./object-store.ts";
import { SortedList } from "./sorted-list.ts";

/**
 * Compares keys in the order of their UTF-8 bytes, as S3 does. The order of UTF-16 units differs only between
 * surrogates and U+E000 to U+FFFF.
 */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at += 1) {
    const x = a.charCodeAt(at);
    const y = b.charCodeAt(at);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

const rank = (unit: number) => (unit < 0xd800 ? unit : unit >= 0xe000 ? unit - 0x800 : unit + 0x2000);

/** Maximum number of hidden keys that one page skips, which takes one or two milliseconds. */
const skippedKeysMax = 1000;

/** The heads of all objects of a bucket, sorted by key. A listing needs two binary searches and no disk access. */
export class ObjectIndex<Entry extends { readonly head: ObjectHead }> {
  readonly #entries = new Map<string, Entry>();
  readonly #keys = new SortedList<string>(compareKeys);

  get size(): number {
    return this.#keys.length;
  }

  get(key: string): Entry | undefined {
    return this.#entries.get(key);
  }

  /** Returns the entries in arbitrary order. */
  all(): Iterable<Entry> {
    return this.#entries.values();
  }

  /** Sets the initial entries. Call it once, when the bucket is opened. */
  load(entries: readonly Entry[]): void {
    for (const entry of entries) this.#entries.set(entry.head.key, entry);
    this.#keys.load(this.#entries.keys());
  }

  set(entry: Entry): void {
    const { key } = entry.head;
    if (!this.#entries.has(key)) this.#keys.insert(key);
    this.#entries.set(key, entry);
  }

  delete(key: string): void {
    if (this.#entries.delete(key)) this.#keys.delete(key);
  }

  list(options: ListOptions): ListPage {
    const { prefix, delimiter, startAfter, keysMax, isListed = () => true } = options;
    const objects: ObjectHead[] = [];
    const commonPrefixes: string[] = [];
    const groupOf = (key: string): string | null => {
      const end = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
      return end === -1 ? null : key.slice(0, end + delimiter.length);
    };
    const before = (key: string) => compareKeys(key, prefix) < 0 || compareKeys(key, startAfter) <= 0;
    let at = this.#keys.firstNot(startAfter === "" ? (key) => compareKeys(key, prefix) < 0 : before);
    let last = "";
    let skippedCount = 0;
    while (at < this.#keys.length) {
      const key = this.#keys.at(at) ?? "";
      if (!key.startsWith(prefix)) break;
      const group = groupOf(key);
      // The previous page already returned this common prefix, so its keys are skipped.
      const isDone = group !== null && group === startAfter;
      if (!isDone && objects.length + commonPrefixes.length >= keysMax) {
        return { objects, commonPrefixes, nextStartAfter: last };
      }
      if (!isDone && !isListed(key)) {
        skippedCount += 1;
        // Exception: if the page ended at a key that equals a common prefix, the next page would skip the whole group.
        if (skippedCount >= skippedKeysMax && key !== group) return { objects, commonPrefixes, nextStartAfter: key };
        at += 1;
        continue;
      }
      if (group === null) {
        const entry = this.#entries.get(key);
        if (entry !== undefined) objects.push(entry.head);
        last = key;
        at += 1;
        continue;
      }
      if (!isDone) commonPrefixes.push(group);
      last = group;
      at = this.#keys.firstNot((other) => other.startsWith(group) || compareKeys(other, group) < 0);
    }
    return { objects, commonPrefixes, nextStartAfter: null };
  }
}
