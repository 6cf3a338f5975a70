import { createHash, type Hash } from "node:crypto";
import { copyMetrics, type CopiedTable, type MetricCopySource, type MetricCopyTarget } from "./metric-copy.ts";

/** A document in a copy, with its version and its value in each order. */
export interface CopiedDocument {
  readonly kind: string;
  readonly key: string;
  readonly version: number;
  readonly body: string;
  readonly orders: Readonly<Record<string, string>>;
}

/** Documents of one database, sorted by kind and key, in pages of bounded size. */
export interface CopiedDocuments {
  pages(): AsyncIterable<readonly CopiedDocument[]>;
}

/** A snapshot of the records of a database. */
export interface CopySource extends CopiedDocuments, AsyncDisposable {
  /** The version of the last write. */
  readonly version: number;
  /** True if a platform uses the records. Its later writes are not in the copy. */
  readonly isInUse: boolean;
  readonly metrics: MetricCopySource;
}

/**
 * Empty records that no other process uses. Nothing is visible before `commit`. Disposing them without a commit leaves them
 * empty.
 */
export interface CopyTarget extends CopiedDocuments, AsyncDisposable {
  readonly metrics: MetricCopyTarget;
  write(page: readonly CopiedDocument[]): Promise<void>;
  commit(version: number): Promise<void>;
}

/** A summary of the copied documents of one kind. */
export interface CopiedKind {
  readonly kind: string;
  readonly count: number;
  readonly bytes: number;
  /** SHA-256 over the documents, in hexadecimal. It does not depend on the database. */
  readonly sha256: string;
}

/** Maximum number of documents that a source reads at once. */
export const copyPageMax = 200;

/**
 * Copies all documents and metrics, and reads them again from the target. Commits if counts and checksums are equal, and
 * rejects otherwise. Deletions are not copied, so readers of changes must list everything again.
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
