import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { ModelCounts } from "./hosting.ts";
import type { TryIt } from "./story-context.ts";
import type { Visit } from "./visits.ts";

const textWidth = 46;

export function neighbourTable(
  sentences: readonly string[],
  nearest: readonly { readonly index: number; readonly cosine: number }[],
): string {
  const rows = sentences.map((sentence, i) => {
    const other = nearest[i];
    return `  ${cut(sentence)}  ${other?.cosine.toFixed(3) ?? ""}  ${cut(sentences[other?.index ?? i] ?? "")}`;
  });
  return `  ${"sentence".padEnd(textWidth)}  cos    nearest\n${rows.join("\n")}\n`;
}

export function latencyTable(visits: readonly Visit[], reloadedMs: readonly number[]): string {
  const [first, ...further] = visits;
  if (first === undefined) return "";
  const line = (what: string, values: readonly number[]) =>
    `  ${what.padEnd(textWidth)}  ${percentile(values, 0.5)}  ${percentile(values, 0.99)}`;
  return [
    `  ${"latency in ms, client side".padEnd(textWidth)}     p50     p99`,
    line("first tenant, nothing cached", [first.coldMs]),
    line(
      `${further.length} further tenants, cold, same weights`,
      further.map((visit) => visit.coldMs),
    ),
    line(`${reloadedMs.length} evicted tenants again, reloaded from disk`, reloadedMs),
    line(
      "warm",
      visits.flatMap((visit) => visit.warmMs),
    ),
    "",
  ].join("\n");
}

/** Returns a table of the loaded and evicted models, and of the copies of the weights on disk. */
export async function loadedTable(visited: number, counts: ModelCounts, data: string): Promise<string> {
  const weights = await distinctLargeFiles(join(data, "platform"), "model.onnx");
  const { loads, unloads } = counts;
  return [
    // The instance was empty when this story's platform started.
    `  tenants visited ${visited}, loads ${loads}, unloads ${unloads}, loaded now ${loads - unloads}`,
    `  files named model.onnx in the instance's cache: ${weights.names}; copies on disk: ${weights.copies}` +
      ` (${(weights.bytes / 2 ** 20).toFixed(0)} MiB)`,
    "",
  ].join("\n");
}

async function distinctLargeFiles(
  directory: string,
  name: string,
): Promise<{ readonly names: number; readonly copies: number; readonly bytes: number }> {
  const inodes = new Map<string, number>();
  let names = 0;
  for (const each of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!each.isFile() || each.name !== name) continue;
    const { dev, ino, size } = await stat(join(each.parentPath, each.name));
    names++;
    inodes.set(`${dev}:${ino}`, size);
  }
  return { names, copies: inodes.size, bytes: [...inodes.values()].reduce((sum, size) => sum + size, 0) };
}

/** Returns three commands for another terminal; each runs as it is when it is pasted. */
export function howToCall(
  { url, root, data }: { readonly url: string; readonly root: string; readonly data: string },
  { endpoint, archive, sentence }: TryIt,
): string {
  const env = `cd ${quoted(root)} && npx galatea env --port=${new URL(url).port} --data=${quoted(data)}`;
  const body = JSON.stringify({ inputs: [{ name: "TEXT", shape: [1, 1], datatype: "BYTES", data: [sentence] }] });
  const call = [
    `EndpointName=${JSON.stringify(endpoint)}`,
    `TargetModel=${JSON.stringify(archive)}`,
    `ContentType="application/json"`,
    `Body=json.dumps(${body})`,
  ];
  const program = `import boto3, json; print(boto3.client("sagemaker-runtime").invoke_endpoint(${call.join(", ")})["Body"].read()[:200])`;
  return `
The platform stays up at ${url}; Ctrl-C stops it. Call it from anywhere:

  eval "$(${env})"

  curl -s --aws-sigv4 aws:amz:us-east-1:sagemaker --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" \\
    $AWS_ENDPOINT_URL/endpoints/${endpoint}/invocations \\
    -H 'Content-Type: application/json' -H 'X-Amzn-SageMaker-Target-Model: ${archive}' \\
    -d ${quoted(body)}

  python3 -m venv .venv && .venv/bin/pip install --quiet boto3 && .venv/bin/python -c ${quoted(program)}
`;
}

/** Quotes a text as one word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function cut(text: string): string {
  return text.length > textWidth ? `${text.slice(0, textWidth - 1)}…` : text.padEnd(textWidth);
}

function percentile(values: readonly number[], quantile: number): string {
  const sorted = [...values].sort((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * quantile))] ?? Number.NaN;
  return value.toFixed(1).padStart(6);
}
