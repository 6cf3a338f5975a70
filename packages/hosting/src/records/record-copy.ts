import { createHash, type Hash } from "node:crypto";
import { copyMetrics, type CopiedTable, type MetricCopySource, type MetricCopyTarget } from "./metric-copy.ts";

/** A document as a copy carries it: with its version and its value in each order. */
export interface CopiedDocument {
  readonly kind: string;
  readonly key: string;
  readonly version: number;
  readonly body: string;
  readonly orders: Readonly<Record<string, string>>;
}

/** Documents of one database, ascending by kind and key in pages of bounded size. */
export interface CopiedDocuments {
  pages(): AsyncIterable<readonly CopiedDocument[]>;
}

/** The records of one moment. */
export interface CopySource extends CopiedDocuments, AsyncDisposable {
  /** The version of the last write. */
  readonly version: number;
  /** True while a platform uses the records: its later writes are not in the copy. */
  readonly isInUse: boolean;
  readonly metrics: MetricCopySource;
}

/** Empty records that nothing else uses. Nothing is visible before `commit`; disposal without it leaves them empty. */
export interface CopyTarget extends CopiedDocuments, AsyncDisposable {
  readonly metrics: MetricCopyTarget;
  write(page: readonly CopiedDocument[]): Promise<void>;
  commit(version: number): Promise<void>;
}

/** The copied documents of one kind. */
export interface CopiedKind {
  readonly kind: string;
  readonly count: number;
  readonly bytes: number;
  /** SHA-256 over the documents, in hexadecimal; equal for equal documents in every database. */
  readonly sha256: string;
}

/** The number of documents that a source reads at once. */
export const copyPageMax = 200;

/**
 * Copies all documents and metrics, reads them again from the target, and commits when their counts and checksums are equal.
 * Deletions are not copied: a reader of changes from before the copy lists again.
 */
export async function copyRecords(
  source: CopySource,
  target: CopyTarget,
): Promise<{ readonly documents: readonly CopiedKind[]; readonly metrics: readonly CopiedTable[] }> {
  const read = new CopyDigest();
  for await (const page of source.pages()) {
    read.add(page);
    await target.write(page);
  }
  const copied = read.kinds();
  const written = new CopyDigest();
  for await (const page of target.pages()) written.add(page);
  const found = new Map(written.kinds().map((each) => [each.kind, each]));
  for (const { kind, count, sha256 } of copied) {
    const copy = found.get(kind);
    if (copy?.count !== count || copy.sha256 !== sha256) {
      throw new Error(`the copy of '${kind}' differs: ${copy?.count ?? 0} of ${count} documents; nothing was copied`);
    }
  }
  const metrics = await copyMetrics(source.metrics, target.metrics);
  await target.commit(source.version);
  return { documents: copied, metrics };
}

class CopyDigest {
  readonly #kinds = new Map<string, { count: number; bytes: number; readonly hash: Hash }>();

  add(page: readonly CopiedDocument[]): void {
    for (const { kind, key, version, body, orders } of page) {
      const sum = this.#kinds.get(kind) ?? { count: 0, bytes: 0, hash: createHash("sha256") };
      this.#kinds.set(kind, sum);
      sum.count += 1;
      sum.bytes += Buffer.byteLength(body);
      const sorted = Object.entries(orders).toSorted(([one], [other]) => (one < other ? -1 : 1));
      sum.hash.update(`${JSON.stringify([key, version, body, sorted])}\n`);
    }
  }

  kinds(): readonly CopiedKind[] {
    return [...this.#kinds].map(([kind, { count, bytes, hash }]) => ({
      kind,
      count,
      bytes,
      sha256: hash.digest("hex"),
    }));
  }
}
