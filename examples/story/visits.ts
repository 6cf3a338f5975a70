import { join } from "node:path";
import { rm } from "node:fs/promises";
import type { Hosting } from "./hosting.ts";
import { stageTenant, tenantName } from "./tenants.ts";

export const tenantCount = 24;
const warmCalls = 3;

/** One tenant's answers: the embeddings of all sentences, and what the client waited. */
export interface Visit {
  readonly tenant: string;
  readonly embeddings: readonly (readonly number[])[];
  readonly coldMs: number;
  readonly warmMs: readonly number[];
}

export interface Embedded {
  readonly embeddings: readonly (readonly number[])[];
  readonly tookMs: number;
}

/** Uploads every tenant's archive that is not there yet. */
export async function uploadTenants(
  hosting: Hosting,
  { repository, staging }: { readonly repository: string; readonly staging: string },
  detail: (text: string) => void,
): Promise<void> {
  await hosting.makeBucket();
  for (let i = 0; i < tenantCount; i++) {
    const tenant = tenantName(i);
    const fresh = await hosting.upload(`${tenant}.tar.gz`, () =>
      stageTenant(repository, join(staging, tenant), tenant),
    );
    if (fresh) detail(`${i + 1} of ${tenantCount} uploaded`);
    await rm(join(staging, tenant), { recursive: true, force: true });
  }
}

/** Asks every tenant, once cold and then warm. */
export async function visitTenants(
  hosting: Hosting,
  sentences: readonly string[],
  detail: (text: string) => void,
): Promise<readonly Visit[]> {
  const visits: Visit[] = [];
  for (let i = 0; i < tenantCount; i++) {
    const tenant = tenantName(i);
    const archive = `${tenant}.tar.gz`;
    detail(tenant);
    const cold = await embed(hosting, archive, sentences);
    const warmMs: number[] = [];
    for (let call = 0; call < warmCalls; call++) warmMs.push((await embed(hosting, archive, sentences)).tookMs);
    visits.push({ tenant, embeddings: cold.embeddings, coldMs: cold.tookMs, warmMs });
  }
  return visits;
}

/** Asks the tenants of the beginning again: their models were evicted, their files are still there. */
export async function revisitTenants(
  hosting: Hosting,
  sentences: readonly string[],
  count: number,
): Promise<readonly number[]> {
  const tookMs: number[] = [];
  for (let i = 0; i < count; i++) tookMs.push((await embed(hosting, `${tenantName(i)}.tar.gz`, sentences)).tookMs);
  return tookMs;
}

/** The embeddings of sentences, by an archive of MiniLM's ensemble. */
export async function embed(hosting: Hosting, archive: string, sentences: readonly string[]): Promise<Embedded> {
  const text = { name: "TEXT", shape: [sentences.length, 1], datatype: "BYTES", data: sentences };
  const { outputs, tookMs } = await hosting.ask(archive, { inputs: [text] });
  const output = outputs.find((each) => each.name === "EMBEDDING");
  const width = output?.shape.at(-1) ?? 0;
  return { embeddings: sentences.map((_, i) => output?.data.slice(i * width, (i + 1) * width) ?? []), tookMs };
}
