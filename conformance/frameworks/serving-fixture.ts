import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureFramework } from "../environments/index.ts";
import { filesBelow } from "./script-server.ts";

/** A request of the REST API, and TensorFlow's own result in the process that saved the archive. */
export interface ServingCase {
  readonly archive: string;
  readonly body: string;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly expected: unknown;
}

/** Archives of SavedModels. */
export class ServingArchives implements AsyncDisposable {
  /** The directory with one directory for each archive. */
  readonly directory: string;
  readonly cases: readonly ServingCase[];

  private constructor(directory: string, cases: readonly ServingCase[]) {
    this.cases = cases;
    this.directory = directory;
  }

  static async make(): Promise<ServingArchives> {
    const { python } = await ensureFramework("tensorflow");
    const directory = await mkdtemp(join(tmpdir(), "galatea-serving-"));
    const models = fileURLToPath(new URL("tensorflow_serving_models.py", import.meta.url));
    await promisify(execFile)(python, [models, directory]);
    return new ServingArchives(
      directory,
      JSON.parse(await readFile(join(directory, "cases.json"), "utf8")) as ServingCase[],
    );
  }

  /** Returns the files of an archive, or of a directory below it. */
  files(archive: string): Promise<Record<string, Buffer>> {
    return filesBelow(join(this.directory, archive));
  }

  /** Returns the files of an archive below another directory, for archives with several models. */
  async filesUnder(location: string, archive: string): Promise<Record<string, Buffer>> {
    const files = await this.files(archive);
    return Object.fromEntries(Object.entries(files).map(([path, bytes]) => [`${location}/${path}`, bytes]));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return rm(this.directory, { recursive: true });
  }
}
