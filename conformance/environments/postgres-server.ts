import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { cacheDirectory } from "./cache-directory.ts";
import { freePorts } from "./launch.ts";
import { ensurePackages } from "./packages.ts";

export type PostgresRelease = "oldest" | "newest";

/** A PostgreSQL server for tests, on its own port. Every connection from this machine is the superuser `galatea`. */
export interface PostgresServer extends AsyncDisposable {
  readonly port: number;
  /** The folder of its data, certificates and socket, which its user may read. */
  readonly folder: string;
  /** The URL of a database of this server. */
  url(database: string): string;
  createDatabase(name: string): Promise<void>;
  /** Runs a statement in its own session; in the database `postgres` by default. */
  query(sql: string, database?: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Sends SIGKILL to the server and the processes of its sessions. Resolves when they have ended. */
  kill(): Promise<void>;
  /** Stops the server with SIGINT, which ends sessions at once. */
  stop(): Promise<void>;
  start(...settings: readonly string[]): Promise<void>;
  /** Starts a replica of this server, which restarts for the copy. Dispose of the replica first. */
  replicate(): Promise<PostgresServer>;
}

/** PostgreSQL refuses to run as root, so the server runs as this user, in a folder that this user can access. */
const serverUser = 65_534;

/** Starts a server of a release in a temporary folder. Disposal kills it and removes the folder. */
export async function startPostgres(release: PostgresRelease): Promise<PostgresServer> {
  const set = await ensurePackages(cacheDirectory(process.env), "postgres");
  const folder = mkdtempSync(join(tmpdir(), "galatea-postgres-"));
  const programs = join(folder, "native");
  copyPrograms(join(set, "node_modules", `${release}-${process.arch}`), folder);
  const data = join(folder, "data");
  mkdirSync(data, { mode: 0o700 });
  const isRoot = process.getuid?.() === 0;
  if (isRoot) for (const path of [folder, data]) chownSync(path, serverUser, serverUser);
  const as = isRoot ? { uid: serverUser, gid: serverUser } : {};
  const run = (program: string, args: readonly string[]) =>
    spawn(join(programs, "bin", program), args, {
      ...as,
      cwd: folder,
      env: { LC_ALL: "C" },
      stdio: ["ignore", "pipe", "pipe"],
    });
  await ended(run("initdb", ["-D", data, "-U", "galatea", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"]));
  return await opened({ folder, data, run });
}

interface Files {
  readonly folder: string;
  readonly data: string;
  readonly run: (program: string, args: readonly string[]) => ChildProcess;
}

/** Starts a server over its data, with settings that each of its starts has. */
async function opened(files: Files, own: readonly string[] = []): Promise<PostgresServer> {
  const { folder, data, run } = files;
  const [port = 0] = await freePorts(1);
  const server = new Server(port, files, (settings) => {
    const set = { listen_addresses: "127.0.0.1", port, unix_socket_directories: folder };
    const words = [...Object.entries(set).map(([name, value]) => `${name}=${value}`), ...own, ...settings];
    return run("postgres", ["-D", data, ...words.flatMap((word) => ["-c", word])]);
  });
  try {
    await server.start();
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
  return server;
}

/** Copies the programs to where the server's user may read them, with the links that the package's install script makes. */
function copyPrograms(from: string, folder: string): void {
  cpSync(join(from, "native"), join(folder, "native"), { recursive: true });
  const links = JSON.parse(readFileSync(join(from, "native/pg-symlinks.json"), "utf8")) as readonly {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of links) symlinkSync(join(folder, source), join(folder, target));
}

async function ended(child: ChildProcess): Promise<void> {
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text: Buffer) => (output += text.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`a program of PostgreSQL ended with ${code}:\n${output.slice(-4000)}`);
}

class Server implements PostgresServer {
  readonly port: number;
  readonly #files: Files;
  readonly #launch: (settings: readonly string[]) => ChildProcess;
  #child: ChildProcess | null = null;

  constructor(port: number, files: Files, launch: (settings: readonly string[]) => ChildProcess) {
    this.port = port;
    this.#files = files;
    this.#launch = launch;
  }

  get folder(): string {
    return this.#files.folder;
  }

  url(database: string): string {
    return `postgres://galatea@127.0.0.1:${this.port}/${database}?sslmode=disable`;
  }

  async createDatabase(name: string): Promise<void> {
    await this.query(`CREATE DATABASE "${name}"`);
  }

  async query(sql: string, database = "postgres"): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const client = new Client({ host: "127.0.0.1", port: this.port, user: "galatea", database });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows;
    } finally {
      await client.end();
    }
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async stop(): Promise<void> {
    await this.#end("SIGINT");
  }

  async start(...settings: readonly string[]): Promise<void> {
    const child = this.#launch(settings);
    this.#child = child;
    let output = "";
    child.stderr?.on("data", (text: Buffer) => (output = (output + text.toString()).slice(-100_000)));
    for (;;) {
      if (child.exitCode !== null) throw new Error(`PostgreSQL ended with ${child.exitCode}:\n${output.slice(-4000)}`);
      const isReady = await this.query("SELECT 1").then(
        () => true,
        () => false,
      );
      if (isReady) return;
      await delay(20);
    }
  }

  async replicate(): Promise<PostgresServer> {
    const folder = mkdtempSync(join(tmpdir(), "galatea-postgres-"));
    const data = join(folder, "data");
    await this.stop();
    cpSync(this.#files.data, data, { recursive: true });
    chmodSync(data, 0o700);
    writeFileSync(join(data, "standby.signal"), "");
    if (process.getuid?.() === 0) {
      const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
      for (const name of ["", ...names]) chownSync(join(folder, name), serverUser, serverUser);
    }
    await this.start();
    return await opened({ ...this.#files, folder, data }, [
      `primary_conninfo=host=127.0.0.1 port=${this.port} user=galatea`,
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** The processes of sessions hold the output open: it closes when the last one has ended. */
  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = null;
    // One that has failed to start has closed.
    if (child === null || child.exitCode !== null) return;
    const closed = once(child, "close");
    child.kill(signal);
    await closed;
  }
}
