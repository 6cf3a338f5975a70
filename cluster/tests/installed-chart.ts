import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { PlatformClient } from "./platform-client.ts";

export const root = join(import.meta.dirname, "../..");
const chart = join(root, "charts/galatea");
const run = promisify(execFile);
/** Time limit for an installation or a replaced pod to become ready. */
const readyTimeout = "120s";

/** Runs kubectl in the laboratory, and returns its output. */
export async function kubectl(...args: readonly string[]): Promise<string> {
  return (await run("kubectl", args)).stdout;
}

export async function helm(...args: readonly string[]): Promise<string> {
  return (await run("helm", args)).stdout;
}

/** Creates or changes the objects of a manifest. */
export async function apply(manifest: object): Promise<void> {
  const applying = run("kubectl", ["apply", "--filename=-"]);
  applying.child.stdin?.end(JSON.stringify(manifest));
  await applying;
}

/** The chart's release `galatea` in its own namespace, which disposal removes. */
export class InstalledChart implements AsyncDisposable {
  readonly namespace: string;

  private constructor(namespace: string) {
    this.namespace = namespace;
  }

  /** Runs `helm install` with values as of `--set`, and waits until the pod is ready. */
  static async install(namespace: string, values: readonly string[]): Promise<InstalledChart> {
    const installed = new InstalledChart(namespace);
    try {
      await installed.#helm("install", values);
    } catch (error) {
      await installed[Symbol.asyncDispose]();
      throw error;
    }
    return installed;
  }

  /** Runs `helm upgrade` and waits until the new pod is ready. */
  async upgrade(values: readonly string[]): Promise<void> {
    await this.#helm("upgrade", values);
  }

  async #helm(action: "install" | "upgrade", values: readonly string[]): Promise<void> {
    const flags = [
      "--namespace",
      this.namespace,
      ...(action === "install" ? ["--create-namespace"] : []),
      "--wait",
      "--timeout",
      readyTimeout,
    ];
    try {
      await helm(action, "galatea", chart, ...flags, ...values.flatMap((each) => ["--set", each]));
    } catch (error) {
      throw new Error(`helm ${action} failed:\n${await this.#describe()}`, { cause: error });
    }
  }

  async kubectl(...args: readonly string[]): Promise<string> {
    return await kubectl("--namespace", this.namespace, ...args);
  }

  /** Waits until the pod of the StatefulSet's current revision is ready. */
  async rolledOut(): Promise<void> {
    await this.kubectl("rollout", "status", "statefulset/galatea", `--timeout=${readyTimeout}`);
  }

  /** Returns a client that calls the platform through its Service, with the key in its Secret. */
  async client(attemptsMax?: number): Promise<PlatformClient> {
    const address = await this.kubectl("get", "service", "galatea", "--output=jsonpath={.spec.clusterIP}");
    const { data } = JSON.parse(await this.kubectl("get", "secret", "galatea-keys", "--output=json")) as {
      readonly data: { readonly username: string; readonly password: string };
    };
    const decoded = (text: string) => Buffer.from(text, "base64").toString();
    const credentials = { accessKeyId: decoded(data.username), secretAccessKey: decoded(data.password) };
    return new PlatformClient(`http://${address}:8770`, credentials, attemptsMax);
  }

  /** Returns the state and log of the pod, for error messages. */
  async #describe(): Promise<string> {
    const texts = [
      ["describe", "pods"],
      ["logs", "galatea-0"],
      ["get", "events"],
    ].map((args) => this.kubectl(...args).catch((error: unknown) => String(error)));
    return (await Promise.all(texts)).join("\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await helm("uninstall", "galatea", "--namespace", this.namespace, "--ignore-not-found");
    // The platform may take 60 s to stop, and the agents of its instances drain until it has.
    await kubectl("delete", "namespace", this.namespace, "--wait", "--timeout=180s");
  }
}

/** Returns the objects that the chart renders with these values of `--set`. Rejects with helm's message if the schema rejects a value. */
export async function rendered(values: readonly string[]): Promise<string> {
  const flags = ["--kube-version", "1.36.0", "--namespace", "rendered"];
  return await helm("template", "galatea", chart, ...flags, ...values.flatMap((each) => ["--set", each]));
}
