import {
  ApiException,
  createConfiguration,
  KubeConfig,
  KubernetesObjectApi,
  PatchStrategy,
  ServerConfiguration,
  Watch,
  type CoreV1Event,
  type KubernetesListObject,
  type KubernetesObject,
} from "@kubernetes/client-node";
import { openDeadline, type Clock } from "@galatea/base";
import type { Pod, PodWarning } from "./pod.ts";

/** Timeout of one call in milliseconds. The client library has no timeout of its own. */
const callMsMax = 10_000;
/** Seconds after which the API ends a watch. The reader then lists all pods again. */
const watchSeconds = 300;
const fieldManager = "galatea";

/** An error response of Kubernetes' API. `status`: the HTTP status. */
export class ClusterApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "ClusterApiError";
    this.status = status;
  }
}

export interface ListedPods {
  readonly pods: readonly Pod[];
  /** The resource version of the list. A watch that starts at this version misses no change. */
  readonly version: string;
}

export interface PodChange {
  readonly kind: "ADDED" | "MODIFIED" | "DELETED";
  readonly pod: Pod;
}

export interface PodWatchOptions {
  readonly selector: string;
  readonly version: string;
  readonly onChange: (change: PodChange) => void;
  readonly signal: AbortSignal;
}

/** The kinds of objects that the host reads and writes. */
export type ObjectKind = keyof typeof apiVersions;

const apiVersions = {
  Pod: "v1",
  PodDisruptionBudget: "policy/v1",
  Secret: "v1",
  Service: "v1",
  StatefulSet: "apps/v1",
} as const;

/**
 * Objects of one namespace of a cluster. Every method rejects with ClusterApiError for an error response, or with the error of the connection.
 */
export interface ClusterApi {
  readonly namespace: string;
  /** Creates an object, or changes the fields of an existing one (server-side apply). */
  apply(manifest: object): Promise<void>;
  /** Resolves with null for an object that does not exist. */
  read(kind: ObjectKind, name: string): Promise<unknown>;
  /** Resolves with the names of the objects that a label selector matches. */
  names(kind: ObjectKind, selector: string): Promise<readonly string[]>;
  /** Deletes an object, if it exists. Resolves before the processes of a pod have ended. */
  delete(kind: ObjectKind, name: string): Promise<void>;
  listPods(selector: string): Promise<ListedPods>;
  /** Resolves with the events of type Warning of a pod, in the order of their last occurrence. */
  warnings(podName: string): Promise<readonly PodWarning[]>;
  /** Resolves when the API ends the watch or sends nothing for 30 s. */
  watchPods(options: PodWatchOptions): Promise<void>;
}

/** Connects to the cluster of KUBECONFIG or of this pod's service account. Throws if neither exists. */
export function connectCluster(clock: Clock): ClusterApi {
  const config = new KubeConfig();
  config.loadFromDefault();
  const cluster = config.getCurrentCluster();
  const context = config.getContextObject(config.getCurrentContext());
  if (cluster === null)
    throw new Error("no Kubernetes cluster: run in a pod with a service account, or set KUBECONFIG");
  return new ConnectedCluster(config, cluster.server, { namespace: context?.namespace ?? "default", clock });
}

class ConnectedCluster implements ClusterApi {
  readonly namespace: string;
  readonly #config: KubeConfig;
  readonly #objects: KubernetesObjectApi;

  constructor(config: KubeConfig, server: string, { namespace, clock }: { namespace: string; clock: Clock }) {
    this.#config = config;
    this.namespace = namespace;
    this.#objects = new KubernetesObjectApi(
      createConfiguration({
        baseServer: new ServerConfiguration(server, {}),
        authMethods: { default: config },
        promiseMiddleware: [
          {
            pre: (context) => {
              const late = () => new Error(`the Kubernetes API has not responded within ${callMsMax / 1000} s`);
              context.setSignal(openDeadline({ clock, afterMs: callMsMax, signal: null, createError: late }).signal);
              return Promise.resolve(context);
            },
            post: (context) => Promise.resolve(context),
          },
        ],
      }),
    );
  }

  async apply(manifest: object): Promise<void> {
    const strategy = PatchStrategy.ServerSideApply;
    await called(this.#objects.patch(manifest as KubernetesObject, undefined, undefined, fieldManager, true, strategy));
  }

  async read(kind: ObjectKind, name: string): Promise<unknown> {
    try {
      return await called(this.#objects.read(this.#header(kind, name)));
    } catch (error) {
      if (error instanceof ClusterApiError && error.status === 404) return null;
      throw error;
    }
  }

  async names(kind: ObjectKind, selector: string): Promise<readonly string[]> {
    return (await this.#list(kind, { labels: selector })).items.flatMap(({ metadata }) => metadata?.name ?? []);
  }

  async delete(kind: ObjectKind, name: string): Promise<void> {
    try {
      await called(this.#objects.delete(this.#header(kind, name)));
    } catch (error) {
      if (!(error instanceof ClusterApiError) || error.status !== 404) throw error;
    }
  }

  async listPods(selector: string): Promise<ListedPods> {
    const { items, metadata } = await this.#list("Pod", { labels: selector });
    return { pods: items as unknown as readonly Pod[], version: metadata?.resourceVersion ?? "0" };
  }

  async warnings(podName: string): Promise<readonly PodWarning[]> {
    const fields = `involvedObject.kind=Pod,involvedObject.name=${podName},type=Warning`;
    const { items } = await this.#list("Event", { fields });
    return (items as CoreV1Event[])
      .toSorted((one, other) => lastOccurrenceMs(one) - lastOccurrenceMs(other))
      .map(({ reason = "", message = "" }) => ({ reason, message }));
  }

  async watchPods({ selector, version, onChange, signal }: PodWatchOptions): Promise<void> {
    const path = `/api/v1/namespaces/${this.namespace}/pods`;
    const query = { labelSelector: selector, resourceVersion: version, timeoutSeconds: watchSeconds };
    const ended = Promise.withResolvers<void>();
    const done = (error: unknown) => (error === null ? ended.resolve() : ended.reject(error));
    let failure: ClusterApiError | null = null;
    const controller = await new Watch(this.#config).watch(
      path,
      query,
      (kind, pod) => {
        if (kind === "ADDED" || kind === "MODIFIED" || kind === "DELETED") onChange({ kind, pod: pod as Pod });
        // The API reports, for example, that the version is too old. The caller then lists all pods again.
        else if (kind === "ERROR") failure = new ClusterApiError(Number(pod.code), String(pod.message));
      },
      done,
    );
    const abort = () => controller.abort();
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    try {
      await ended.promise;
    } finally {
      signal.removeEventListener("abort", abort);
    }
    signal.throwIfAborted();
    if (failure !== null) throw failure;
  }

  #list(
    kind: ObjectKind | "Event",
    { fields, labels }: { readonly fields?: string; readonly labels?: string },
  ): Promise<KubernetesListObject<KubernetesObject>> {
    const none = undefined;
    const version = kind === "Event" ? "v1" : apiVersions[kind];
    return called(this.#objects.list(version, kind, this.namespace, none, none, none, fields, labels));
  }

  #header(kind: ObjectKind, name: string) {
    return { apiVersion: apiVersions[kind], kind, metadata: { name, namespace: this.namespace } };
  }
}

/** The scheduler writes `eventTime` and, for repeated events, `series`; all other components write `lastTimestamp`. */
const lastOccurrenceMs = ({ series, lastTimestamp, eventTime }: CoreV1Event): number =>
  (lastTimestamp ?? series?.lastObservedTime ?? eventTime)?.getTime() ?? 0;

/**
 * Resolves with the result of a call, or rejects with Kubernetes' own message. The client library hides that message in the text of the whole
 * response.
 */
async function called<Value>(call: Promise<Value>): Promise<Value> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof ApiException)) throw error;
    throw new ClusterApiError(error.code, messageOf(error.body) ?? error.message);
  }
}

function messageOf(body: unknown): string | null {
  try {
    const { message } = (typeof body === "string" ? JSON.parse(body) : body) as { readonly message?: string };
    return message ?? null;
  } catch {
    return null;
  }
}
