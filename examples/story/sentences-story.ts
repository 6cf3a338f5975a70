import { goldenSentences } from "./golden-sentences.ts";
import { countsBetween, Hosting, type EndpointPlan } from "./hosting.ts";
import { agreement, nearestNeighbours } from "./similarity.ts";
import type { StoryContext, TryIt } from "./story-context.ts";
import { latencyTable, loadedTable, neighbourTable } from "./tables.ts";
import { revisitTenants, tenantCount, uploadTenants, visitTenants } from "./visits.ts";

const revisitCount = 6;
const memoryBudgetBytes = 384 * 2 ** 20;

const plan: EndpointPlan = {
  name: "sentence-embeddings",
  prefix: "tenants/",
  // A small budget, so that the story shows evictions: it holds the encoder once, and the Python steps of about a dozen
  // tenants.
  environment: { GALATEA_MODEL_MEMORY_BYTES: String(memoryBudgetBytes) },
};

/** Computes sentence embeddings of many tenants on one endpoint, invokes every tenant and prints tables. */
export async function sentencesStory(context: StoryContext): Promise<TryIt> {
  const { data, platform, progress, signal } = context;
  const hosting = new Hosting(plan, { ...platform, signal });
  await progress.step(`${tenantCount} tenants' archives in S3`, (detail) =>
    uploadTenants(hosting, context.sentences, detail),
  );
  await progress.step("multi-model endpoint", () => hosting.createEndpoint());
  const golden = await goldenSentences();
  const sentences = golden.map((each) => each.text);
  const before = await hosting.modelCounts();
  const visits = await progress.step("sentences to every tenant, cold then warm", (detail) =>
    visitTenants(hosting, sentences, detail),
  );
  const reloadedMs = await progress.step("the first tenants again, evicted meanwhile", () =>
    revisitTenants(hosting, sentences, revisitCount),
  );
  const embeddings = visits.at(-1)?.embeddings ?? [];
  const difference = agreement(
    visits.map((visit) => visit.embeddings),
    golden.map((each) => each.embedding),
  );
  process.stdout.write(`\n${neighbourTable(sentences, nearestNeighbours(embeddings))}`);
  process.stdout.write(
    `\nLargest difference from the reference embeddings, over all tenants: ${difference.toExponential(1)}\n`,
  );
  if (!(difference < 1e-4)) throw new Error(`embeddings differ from the reference by ${difference}`);
  process.stdout.write(`\n${latencyTable(visits, reloadedMs)}`);
  const counts = countsBetween(before, await hosting.modelCounts());
  process.stdout.write(`\n${await loadedTable(tenantCount, counts, data)}`);
  return { endpoint: plan.name, archive: "tenant-07.tar.gz", sentence: sentences[0] ?? "" };
}
