import type { Hosting } from "./hosting.ts";

export const tenantCount = 24;
const archiveOf = (index: number) => `tenant-${String(index + 1).padStart(2, "0")}.tar.gz`;
const warmCalls = 3;

/** The responses of one tenant: the embeddings of all sentences, and the latencies on the client's side. */
export interface Visit {
  readonly embeddings: readonly (readonly number[])[];
  readonly coldMs: number;
  readonly warmMs: readonly number[];
}

export interface Embedded {
  readonly embeddings: readonly (readonly number[])[];
  readonly tookMs: number;
}

/**
 * Uploads the first tenant's archive and copies it in S3 for the others, which stores its bytes once. Skips existing
 * archives.
 */
export async function uploadTenants(
  hosting: Hosting,
  repository: string,
  detail: (text: string) => void,
): Promise<void> {
  await hosting.makeBucket();
  await hosting.upload(archiveOf(0), repository, detail);
  for (let i = 1; i < tenantCount; i++) {
    if (await hosting.copy(archiveOf(0), archiveOf(i))) detail(`${i + 1} of ${tenantCount}`);
  }
}

/** Invokes every tenant, first cold and then warm. */
export async function visitTenants(
  hosting: Hosting,
  sentences: readonly string[],
  detail: (text: string) => void,
): Promise<readonly Visit[]> {
  const visits: Visit[] = [];
  for (let i = 0; i < tenantCount; i++) {
    const archive = archiveOf(i);
    detail(`${i + 1} of ${tenantCount}`);
    const cold = await embed(hosting, archive, sentences);
    const warmMs: number[] = [];
    for (let call = 0; call < warmCalls; call++) warmMs.push((await embed(hosting, archive, sentences)).tookMs);
    visits.push({ embeddings: cold.embeddings, coldMs: cold.tookMs, warmMs });
  }
  return visits;
}

/** Invokes the first tenants again: their models were evicted, and their files are still on disk. */
export async function revisitTenants(
  hosting: Hosting,
  sentences: readonly string[],
  count: number,
): Promise<readonly number[]> {
  const tookMs: number[] = [];
  for (let i = 0; i < count; i++) tookMs.push((await embed(hosting, archiveOf(i), sentences)).tookMs);
  return tookMs;
}

/** Returns the embeddings of sentences from an archive of MiniLM's ensemble. */
export async function embed(hosting: Hosting, archive: string, sentences: readonly string[]): Promise<Embedded> {
  const text = { name: "TEXT", shape: [sentences.length, 1], datatype: "BYTES", data: sentences };
  const { outputs, tookMs } = await hosting.ask(archive, { inputs: [text] });
  const output = outputs.find((each) => each.name === "EMBEDDING");
  const width = output?.shape.at(-1) ?? 0;
  return { embeddings: sentences.map((_, i) => output?.data.slice(i * width, (i + 1) * width) ?? []), tookMs };
}
