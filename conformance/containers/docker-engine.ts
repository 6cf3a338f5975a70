import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { baseImage, ensureBaseArchive, type BaseName } from "./base-images.ts";

/** Debian's packages that these tests need, and a program of each. */
const packages = { "docker.io": ["dockerd", "docker"], iptables: ["iptables"], mmdebstrap: ["mmdebstrap"] };

/** A Docker engine of a test, with its own data, socket and containers. */
export interface DockerEngine extends AsyncDisposable {
  /** `unix:///...`, as `--container-engine` takes it. */
  readonly address: string;
  /** Runs `docker` with the engine and returns what it prints. Rejects with its errors. */
  docker(...args: readonly string[]): Promise<string>;
  /** Builds the image of a folder below `images`, and returns its name. */
  build(folder: string): Promise<string>;
  /** SIGKILL to the engine; its containers continue until it is started again. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

/**
 * Starts an engine in a temporary folder, with a base image in its store and further flags of dockerd. Needs root: containers need networks, mounts
 * and control groups.
 */
export async function startDocker(base: BaseName = "base", flags: readonly string[] = []): Promise<DockerEngine> {
  checkMachine();
  const archive = await ensureBaseArchive(base);
  const folder = mkdtempSync(join(tmpdir(), "galatea-docker-"));
  const address = `unix://${folder}/docker.sock`;
  const paths = ["data-root", "exec-root", "pidfile"].map((name) => `--${name}=${join(folder, name)}`);
  // Without a default bridge and without forwarding, it changes nothing for other networks of this machine.
  const args = [...paths, `--host=${address}`, "--bridge=none", "--ip-forward=false", "--log-level=warn", ...flags];
  // SIGTERM after the end of this process, also by kill -9: the engine then ends its containers.
  const launch = () => {
    const child = spawn("setpriv", ["--pdeathsig", "TERM", "dockerd", ...args], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    return { child, printed: text(child.stderr), ended: once(child, "exit") };
  };
  let engine = launch();
  const docker = (...words: readonly string[]) => runDocker(address, words);
  const end = async (signal: NodeJS.Signals) => {
    engine.child.kill(signal);
    await engine.ended;
  };
  const stop = async () => {
    await end("SIGTERM");
    // An engine that was killed leaves mounts of its containers.
    const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
    const left = mounts.map((line) => line.split(" ")[1] ?? "").filter((path) => path.startsWith(`${folder}/`));
    for (const path of left.toReversed()) execFileSync("umount", [path]);
    rmSync(folder, { recursive: true, force: true });
  };
  const ready = async () => {
    for (;;) {
      const isUp = await docker("version").then(
        () => true,
        () => false,
      );
      if (isUp) return;
      if (engine.child.exitCode !== null) throw new Error(`dockerd ended: ${await engine.printed}`);
      await delay(20);
    }
  };
  try {
    await ready();
    await docker("import", archive, baseImage(base));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    address,
    docker,
    async build(name) {
      const image = `galatea-tests-${name}:1`;
      await docker("build", "--network=none", "--tag", image, join(import.meta.dirname, "images", name));
      return image;
    },
    async kill() {
      const containerd = readFileSync(join(folder, "exec-root", "containerd", "containerd.pid"), "utf8").trim();
      await end("SIGKILL");
      // The kernel ends the engine's containerd with it; a new engine would wait for one that is about to end.
      while (existsSync(`/proc/${containerd}`)) await delay(20);
    },
    start: async () => {
      engine = launch();
      await ready();
    },
    [Symbol.asyncDispose]: stop,
  };
}

function checkMachine(): void {
  if (process.getuid?.() !== 0) throw new Error("the tests of containers start a Docker engine, which needs root");
  const directories = `${process.env["PATH"] ?? ""}${delimiter}/usr/sbin`.split(delimiter);
  const isFound = (program: string) => directories.some((directory) => existsSync(join(directory, program)));
  const missing = Object.entries(packages).filter(([, programs]) => !programs.every(isFound));
  if (missing.length === 0) return;
  const names = Object.keys(packages).join(" ");
  throw new Error(`the tests of containers need Debian's packages: apt-get install --no-install-recommends ${names}`);
}

async function runDocker(address: string, args: readonly string[]): Promise<string> {
  // The builder within the engine: BuildKit's client is another package.
  const env = { ...process.env, DOCKER_HOST: address, DOCKER_BUILDKIT: "0" };
  const child = spawn("docker", args, { env, stdio: ["ignore", "pipe", "pipe"] });
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  if (child.exitCode !== 0) throw new Error(`docker ${args.join(" ")}: ${errors}`);
  return output.trim();
}
