import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureFramework, startGalatea, type FrameworkName, type RunningServer } from "../environments/index.ts";

export interface TensorFile {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly number[];
  /** Path below the fixture's directory. */
  readonly file: string;
}

/** A request, and the framework's own result. */
export interface Case {
  readonly model: string;
  readonly inputs: readonly TensorFile[];
  readonly outputs: readonly TensorFile[];
}

export interface FrameworkFixture extends AsyncDisposable {
  readonly server: RunningServer;
  readonly directory: string;
  readonly repository: string;
  readonly cases: readonly Case[];
  /** The interpreter with the framework. */
  readonly python: string;
}

/**
 * Starts our server, without loaded models, over a repository that `<name>_models.py` wrote with the framework itself,
 * together with `cases.json`. `more` are further arguments of that script or of another one; `flags` are further flags
 * of the server.
 */
export async function openFramework(
  name: FrameworkName,
  more: readonly string[] = [],
  { script = `${name}_models.py`, flags = [] }: { readonly script?: string; readonly flags?: readonly string[] } = {},
): Promise<FrameworkFixture> {
  const { python } = await ensureFramework(name);
  const directory = await mkdtemp(join(tmpdir(), `galatea-${name}-`));
  const repository = join(directory, "repository");
  await mkdir(repository);
  const models = fileURLToPath(new URL(script, import.meta.url));
  await promisify(execFile)(python, [models, repository, ...more]);
  const cases = JSON.parse(await readFile(join(directory, "cases.json"), "utf8")) as Case[];
  const explicit = ["--model-control-mode=explicit", ...flags];
  const server = await startGalatea({ repositories: [repository], flags: explicit });
  return {
    server,
    directory,
    repository,
    cases,
    python,
    async [Symbol.asyncDispose]() {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export interface Reply {
  readonly status: number;
  readonly error: string | undefined;
  readonly outputs: ReadonlyMap<
    string,
    { readonly datatype: string; readonly shape: readonly number[]; readonly data: Buffer }
  >;
}

/** Loads a model with the repository API. Resolves with null, or with the error text. */
export async function load(server: RunningServer, model: string): Promise<string | null> {
  const url = `http://127.0.0.1:${server.httpPort}/v2/repository/models/${model}/load`;
  const response = await fetch(url, { method: "POST", signal: AbortSignal.timeout(120_000) });
  const text = await response.text();
  return response.ok ? null : (JSON.parse(text) as { error: string }).error;
}

/** Resolves when the model's unloading has begun. */
export async function unload(server: RunningServer, model: string): Promise<void> {
  const url = `http://127.0.0.1:${server.httpPort}/v2/repository/models/${model}/unload`;
  const response = await fetch(url, { method: "POST", signal: AbortSignal.timeout(120_000) });
  assert.equal(response.status, 200, await response.text());
}

/** Sends a request with binary tensors for binary tensors. */
export async function infer(
  server: RunningServer,
  model: string,
  inputs: readonly (Omit<TensorFile, "file"> & { readonly data: Buffer })[],
  outputNames: readonly string[],
): Promise<Reply> {
  const header = Buffer.from(
    JSON.stringify({
      inputs: inputs.map(({ data, ...rest }) => ({ ...rest, parameters: { binary_data_size: data.length } })),
      outputs: outputNames.map((name) => ({ name, parameters: { binary_data: true } })),
    }),
  );
  const response = await fetch(`http://127.0.0.1:${server.httpPort}/v2/models/${model}/infer`, {
    method: "POST",
    headers: { "Inference-Header-Content-Length": String(header.length) },
    body: Buffer.concat([header, ...inputs.map(({ data }) => data)]),
    signal: AbortSignal.timeout(120_000),
  });
  const body = Buffer.from(await response.arrayBuffer());
  if (!response.ok) {
    const { error } = JSON.parse(body.toString()) as { error: string };
    return { status: response.status, error, outputs: new Map() };
  }
  const headerBytes = Number(response.headers.get("inference-header-content-length"));
  const { outputs } = JSON.parse(body.toString("utf8", 0, headerBytes)) as {
    outputs: { name: string; datatype: string; shape: number[]; parameters: { binary_data_size: number } }[];
  };
  let at = headerBytes;
  const found = outputs.map(({ name, datatype, shape, parameters }) => {
    const data = body.subarray(at, (at += parameters.binary_data_size));
    return [name, { datatype, shape, data }] as const;
  });
  return { status: response.status, error: undefined, outputs: new Map(found) };
}

export function floats(name: string, values: readonly number[], shape: readonly number[] = [values.length]) {
  const data = Buffer.from(new Float32Array(values).buffer);
  return { name, datatype: "FP32", shape, data };
}

/** Resolves with true if requests of a model have shared an execution. */
export async function haveShared({ server }: FrameworkFixture, model: string): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${server.httpPort}/v2/models/${model}/stats`);
  const { model_stats: rows } = (await response.json()) as {
    model_stats: { inference_count: number; execution_count: number }[];
  };
  return rows.some((row) => row.execution_count < row.inference_count);
}

/** Resolves with the pid of a model's first worker. */
export async function workerOf(fixture: FrameworkFixture, model: string): Promise<number> {
  const [first] = await workersOf(fixture, model);
  if (first === undefined) throw new Error(`no worker of '${model}' was found`);
  return first;
}

/** Resolves with the pids of all workers of a model. */
export async function workersOf({ server, repository }: FrameworkFixture, model: string): Promise<number[]> {
  const { stdout } = await promisify(execFile)("ps", ["-e", "-ww", "-o", "pid=,ppid=,args="]);
  const title = `(model of ${join(repository, model, "1")})`;
  const lines = stdout.split("\n").filter((each) => each.includes(title) && each.includes(` ${server.pid} `));
  return lines.map((line) => Number(line.trim().split(/\s+/)[0]));
}

/** Resolves with the private bytes of the model's first worker. */
export async function privateBytesOf(fixture: FrameworkFixture, model: string): Promise<number> {
  const rollup = await readFile(`/proc/${await workerOf(fixture, model)}/smaps_rollup`, "latin1");
  return [...rollup.matchAll(/^Private_\w+:\s+(\d+) kB$/gm)].reduce((sum, [, one]) => sum + Number(one) * 1024, 0);
}

const tolerance = 1e-5;

/** Sends the request of a case, and compares the response with the framework's own result. */
export async function responds(
  { server, directory }: FrameworkFixture,
  { model, inputs, outputs }: Case,
): Promise<void> {
  const read = (file: string) => readFile(join(directory, file));
  const input = await Promise.all(inputs.map(async ({ file, ...rest }) => ({ ...rest, data: await read(file) })));
  const names = outputs.map(({ name }) => name);
  const reply = await infer(server, model, input, names);
  assert.equal(reply.error, undefined, model);
  assert.deepEqual([...reply.outputs.keys()].sort(), names.toSorted(), model);
  for (const { name, datatype, shape, file } of outputs) {
    const found = reply.outputs.get(name)!;
    assert.deepEqual([found.datatype, found.shape], [datatype, shape], `${model} ${name}`);
    const expected = await read(file);
    if (datatype === "FP32") assertClose(found.data, expected, `${model} ${name}`);
    else assert.ok(found.data.equals(expected), `${model} ${name}`);
  }
}

export function numbers(data: Buffer): Float32Array {
  return new Float32Array(new Uint8Array(data).buffer);
}

export function assertClose(found: Buffer, expected: Buffer, what: string): void {
  const [ours, theirs] = [numbers(found), numbers(expected)];
  assert.equal(ours.length, theirs.length, what);
  const largest = theirs.reduce((most, one) => Math.max(most, Math.abs(one)), 0);
  const spread = theirs.reduce((sum, one) => sum + Math.abs(one - theirs[0]!), 0);
  // Constant outputs would make the comparison meaningless.
  assert.ok(theirs.length < 8 || spread > 0.1 * largest, `${what}: the truth is constant`);
  for (let i = 0; i < ours.length; i++)
    assert.ok(
      Math.abs(ours[i]! - theirs[i]!) <= tolerance * Math.max(1, largest),
      `${what} at ${i}: ${ours[i]}, ${theirs[i]}`,
    );
}
