/**
 * Writes packages/aws/src/spec/gen/<service>.json from the service models that botocore publishes. Each file has the
 * operations with a row in its service, all shapes that they reference, without documentation, and the names of the
 * operations that are not implemented. Then runs aws-types.ts, which writes the types. Run: node scripts/aws-spec.ts
 * [--check] (--check compares instead of writing)
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { ServiceModel } from "@galatea/aws/spec";
import { builtOperations, specFolder } from "./aws-services.ts";
import { serviceTypes } from "./aws-types.ts";

const botocore = {
  version: "1.44.5",
  sha256: "8f16a56d1dff125dd65322ae021efa7ba5195a6db5102b96862566055b748921",
};

type Json = Record<string, unknown>;
interface BotocoreModel {
  metadata: Json & { apiVersion: string; protocols: string[] };
  operations: Record<string, Json & { http: { method: string; requestUri: string; responseCode?: number } }>;
  shapes: Record<string, Json>;
}

const protocolNames: Readonly<Record<string, string>> = {
  json: "json",
  query: "query",
  "rest-json": "rest-json",
  "smithy-rpc-v2-cbor": "cbor",
};
const shapeKeys = new Set(
  "type members required member key value min max pattern enum sensitive flattened locationName timestampFormat payload streaming union eventstream".split(
    " ",
  ),
);
const memberKeys = new Set("shape location locationName flattened timestampFormat streaming".split(" "));

const checking = process.argv.includes("--check");
const scratch = mkdtempSync(join(tmpdir(), "galatea-aws-spec-"));
try {
  const source = fetchBotocore(scratch);
  for (const [service, kept] of await builtOperations()) {
    const model = compact(service, kept, source);
    emit(`${service}.json`, model);
    emit(`${service}.ts`, serviceTypes(service, JSON.parse(model) as ServiceModel));
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function fetchBotocore(folder: string): string {
  const wheel = `botocore-${botocore.version}-py3-none-any.whl`;
  const pip = ["-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check"];
  execFileSync("python3", [...pip, `botocore==${botocore.version}`, "-d", folder], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const found = createHash("sha256")
    .update(readFileSync(join(folder, wheel)))
    .digest("hex");
  if (found !== botocore.sha256) throw new Error(`${wheel}: expected sha256 ${botocore.sha256}, found ${found}`);
  execFileSync("python3", ["-m", "zipfile", "-e", join(folder, wheel), folder]);
  return join(folder, "botocore", "data");
}

function compact(service: string, kept: readonly string[], data: string): string {
  const version = readdirSync(join(data, service)).sort().at(-1);
  const file = join(data, service, version ?? "", "service-2.json.gz");
  const model = JSON.parse(gunzipSync(readFileSync(file)).toString("utf8")) as BotocoreModel;
  const operations: Json = {};
  const shapes: Record<string, Json> = {};
  for (const name of kept.toSorted()) {
    const operation = model.operations[name];
    if (operation === undefined) throw new Error(`${service} has no operation ${name}`);
    const shapeName = (key: string) => (operation[key] as { shape: string } | undefined)?.shape;
    operations[name] = defined({
      method: operation.http.method,
      uri: operation.http.requestUri,
      status: operation.http.responseCode,
      input: shapeName("input"),
      output: shapeName("output"),
      resultWrapper: (operation["output"] as { resultWrapper?: string } | undefined)?.resultWrapper,
    });
    for (const key of ["input", "output"]) reach(model, shapeName(key), shapes);
  }
  const errors: Json = {};
  for (const [name, shape] of Object.entries(model.shapes).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (shape["exception"] !== true) continue;
    const error = shape["error"] as { code?: string; httpStatusCode?: number; senderFault?: boolean } | undefined;
    const fault = shape["fault"] === true;
    errors[name] = defined({
      code: error?.code,
      status: error?.httpStatusCode ?? (fault ? 500 : undefined),
      fault: fault || undefined,
    });
    reach(model, name, shapes);
  }
  const { metadata } = model;
  const document = defined({
    service,
    source: `botocore ${botocore.version}`,
    apiVersion: metadata.apiVersion,
    protocols: metadata.protocols.map((protocol) => protocolNames[protocol] ?? protocol),
    jsonVersion: metadata["jsonVersion"],
    targetPrefix: metadata["targetPrefix"],
    xmlNamespace: metadata["xmlNamespace"],
    queryCompatible: metadata["awsQueryCompatible"] === undefined ? undefined : true,
    operations,
    otherOperations: Object.keys(model.operations)
      .filter((name) => !kept.includes(name))
      .toSorted(),
    errors,
    shapes: Object.fromEntries(Object.entries(shapes).toSorted(([a], [b]) => (a < b ? -1 : 1))),
  });
  return `${JSON.stringify(document)}\n`;
}

function reach(model: BotocoreModel, name: string | undefined, into: Record<string, Json>): void {
  if (name === undefined || into[name] !== undefined) return;
  const shape = model.shapes[name];
  if (shape === undefined) throw new Error(`no shape ${name}`);
  const pick = (from: Json, keys: ReadonlySet<string>) =>
    Object.fromEntries(Object.entries(from).filter(([key]) => keys.has(key)));
  const kept = pick(shape, shapeKeys);
  into[name] = kept;
  for (const key of ["member", "key", "value"] as const) {
    const inner = kept[key] as Json | undefined;
    if (inner === undefined) continue;
    kept[key] = pick(inner, memberKeys);
    reach(model, inner["shape"] as string, into);
  }
  const members = kept["members"] as Record<string, Json> | undefined;
  if (members === undefined) return;
  kept["members"] = Object.fromEntries(Object.entries(members).map(([key, member]) => [key, pick(member, memberKeys)]));
  for (const member of Object.values(members)) reach(model, member["shape"] as string, into);
}

function defined(value: Json): Json {
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined));
}

function emit(file: string, text: string): void {
  const target = new URL(file, specFolder);
  if (checking) {
    if (readFileSync(target, "utf8") !== text)
      throw new Error(`${target.pathname} is stale: run node scripts/aws-spec.ts`);
    return;
  }
  writeFileSync(target, text);
  console.log(`${file}: ${text.length} bytes`);
}
