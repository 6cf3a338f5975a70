import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createCertificate, type Certificate } from "@galatea/base/certificates";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";

const program = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const dayMs = 24 * 3600 * 1000;

/** Returns a self-signed certificate for 127.0.0.1, which is its own authority. */
export const certificateOf = (name: string): Certificate =>
  createCertificate({
    names: [name, "127.0.0.1"],
    notBefore: new Date(Date.now() - dayMs),
    notAfter: new Date(Date.now() + dayMs),
  });

export interface AgentProcessSetup {
  /** The URL of the S3 service, and its keys. */
  readonly objects: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
  /** The certificate of the platform that may use the agent. */
  readonly platform: Certificate;
  readonly flags?: readonly string[];
}

/** `galatea agent` as a process, over a data directory of its own. */
export class RunningAgent implements AsyncDisposable {
  readonly certificate: Certificate;
  readonly child: ChildProcess;
  readonly root: string;
  readonly #printed: { text: string };

  private constructor(root: string, child: ChildProcess, of: { certificate: Certificate; printed: { text: string } }) {
    this.root = root;
    this.child = child;
    this.certificate = of.certificate;
    this.#printed = of.printed;
  }

  static async open({ objects, credentials, platform, flags = [] }: AgentProcessSetup): Promise<RunningAgent> {
    const root = await mkdtemp(join(tmpdir(), "gal-ag-"));
    const certificate = certificateOf("agent.galatea");
    const files = {
      "agent.pem": certificate.certificatePem,
      "key.pem": certificate.keyPem,
      "ca.pem": platform.certificatePem,
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(root, name), text);
    const tls = [`--tls-cert=${root}/agent.pem`, `--tls-key=${root}/key.pem`, `--tls-ca=${root}/ca.pem`];
    const child = runGalatea(root, ["agent", "--listen=127.0.0.1:0", ...tls, `--objects=${objects}`, ...flags], {
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    });
    const printed = { text: "" };
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => (printed.text += text));
    await eventually(() => {
      assert.equal(child.exitCode, null, printed.text);
      return /Galatea agent is ready.*\n/.test(printed.text);
    });
    return new RunningAgent(root, child, { certificate, printed });
  }

  get printed(): string {
    return this.#printed.text;
  }

  get url(): string {
    return /ready at (https:[^\s,]+)/.exec(this.printed)?.[1] ?? "";
  }

  get probePort(): number {
    return Number(/probes at port (\d+)/.exec(this.printed)?.[1]);
  }

  /** Resolves with the exit code after a signal. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const { child } = this;
    if (child.exitCode === null && child.signalCode === null) {
      const closed = new Promise((resolve) => child.once("close", resolve));
      child.kill(signal);
      await closed;
    }
    return child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGTERM");
    await rm(this.root, { recursive: true, force: true });
  }
}

/** Starts a command in a home directory of its own. */
export function runGalatea(
  root: string,
  words: readonly string[],
  variables: Readonly<Record<string, string>>,
): ChildProcess {
  const { GALATEA_DATA: _, ...env } = process.env;
  return spawn(process.execPath, [program, ...words], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...env, XDG_DATA_HOME: root, TMPDIR: root, ...variables },
  });
}
