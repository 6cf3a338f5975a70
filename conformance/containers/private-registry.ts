import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { freePorts } from "../environments/index.ts";
import { until } from "../faults/until.ts";

/** The registry's only user, as `docker login` writes it to config.json. */
export const registryAuth = Buffer.from("team:a:secret").toString("base64");
/** bcrypt of the password, as `htpasswd -B` writes it. */
const passwords = "team:$2b$05$LuaSMrvE.aEK3A9k5WRPjeVAxqjjqhZx9CQlT8hJxZoJ1bQm.EKY2\n";

/** A registry (Debian's docker-registry) that accepts one user. */
export interface PrivateRegistry extends AsyncDisposable {
  /** `127.0.0.1:PORT`, which engines call without TLS. */
  readonly host: string;
}

export async function startRegistry(): Promise<PrivateRegistry> {
  if (!existsSync("/usr/bin/docker-registry"))
    throw new Error("this test needs Debian's package docker-registry: apt-get install docker-registry");
  const folder = await mkdtemp(join(tmpdir(), "galatea-registry-"));
  const [port = 0] = await freePorts(1);
  const host = `127.0.0.1:${port}`;
  await writeFile(join(folder, "passwords"), passwords);
  const settings = {
    version: 0.1,
    storage: { filesystem: { rootdirectory: join(folder, "images") } },
    http: { addr: host },
    auth: { htpasswd: { realm: "tests", path: join(folder, "passwords") } },
  };
  // JSON is YAML.
  await writeFile(join(folder, "settings.yml"), JSON.stringify(settings));
  const child = spawn("docker-registry", ["serve", join(folder, "settings.yml")], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const printed = text(child.stderr);
  const ended = once(child, "exit");
  await until("the registry responds", async () => {
    if (child.exitCode !== null) throw new Error(`docker-registry ended: ${await printed}`);
    return await fetch(`http://${host}/v2/`).then(
      ({ status }) => status === 401,
      () => false,
    );
  });
  return {
    host,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
