import { delay, ChangeNotifier, TaskGroup, type Clock, type Logger } from "@galatea/base";
import { ChangesForgotten, type DocumentChange, type DocumentPosition, type Documents } from "../records/index.ts";
import {
  emptyFootprint,
  peakFootprint,
  type EndpointRecord,
  type EndpointState,
  type Footprint,
} from "../endpoints/index.ts";
import { componentFootprint, type ComponentState } from "../components/index.ts";
import { isTransformInProgress, transformFootprint, type TransformState } from "../transforms/index.ts";
import type { ModelRecord } from "../definitions/index.ts";
import { modelDataUrl } from "../instances/index.ts";
import type { HostingKinds } from "./hosting-kinds.ts";
import { ModelDataLocations } from "./model-data-locations.ts";
import { OutputFolders, type OutputOwners, type OutputFolder } from "./output-folders.ts";
import { configOutputFolders, endpointOutputFolders, transformOutputFolders } from "./recorded-outputs.ts";

/** The fields of a record that are kept in memory. */
interface RecordSummary {
  readonly version: number;
  /** S3 URLs of the data of the record's models. */
  readonly modelDataUrls: readonly string[];
  /** Folders to which outputs of the record's requests are written. */
  readonly outputs: readonly OutputFolder[];
  /** Null if the record is not an endpoint. */
  readonly endpoint: { readonly at: EndpointState["at"]; readonly footprint: Footprint } | null;
  /** Null if the record is not a transform job. */
  readonly transform: { readonly at: TransformState["at"]; readonly footprint: Footprint } | null;
  /** Null if the record is not an inference component. */
  readonly component: { readonly at: ComponentState["at"]; readonly footprint: Footprint } | null;
}

interface RecordVersion {
  readonly kind: string;
  readonly key: string;
  readonly version: number;
  /** JSON of the record; null for a deleted record. */
  readonly body: string | null;
}

export interface HostingViewOptions {
  readonly documents: Documents;
  readonly kinds: HostingKinds;
  readonly clock: Clock;
  readonly logger: Logger;
}

const heardAgainMs = 1000;
const readAtOnceMax = 200;

/**
 * An in-memory summary of all records, for synchronous reads: counts, states and footprints of endpoints, and locations of model data. Writes
 * of this process are visible immediately, writes of other processes when the documents' change feed delivers them. The account's quotas
 * limit the size of the summary.
 */
export class HostingView implements AsyncDisposable {
  readonly #options: HostingViewOptions;
  readonly #following: TaskGroup;
  readonly #stateChanged = new ChangeNotifier();
  readonly #kinds: readonly string[];
  #records: KnownRecords;
  /** Keys that this process has deleted, with the version of the deletion. A delayed notification must not restore them. */
  readonly #deleted = new Map<string, number>();

  private constructor(options: HostingViewOptions) {
    this.#options = options;
    const { models, configs, endpoints, transformJobs, components } = options.kinds;
    this.#kinds = [models, configs, endpoints, transformJobs, components].map(({ kind }) => kind);
    this.#records = new KnownRecords(this.#kinds);
    this.#following = new TaskGroup((error) => {
      options.logger.error("bug: the change feed of the records has stopped; changes by other processes are missed", {
        error: String(error),
      });
    });
  }

  static async open(options: HostingViewOptions): Promise<HostingView> {
    const view = new HostingView(options);
    const version = await view.#load();
    view.#following.run((closing) => view.#follow(version, closing));
    return view;
  }

  count({ kind }: { readonly kind: string }): number {
    return this.#records.of(kind).size;
  }

  has({ kind }: { readonly kind: string }, key: string): boolean {
    return this.#records.of(kind).has(key);
  }

  /** Returns the footprint of an endpoint, including the target of its update; empty for an unknown one. */
  endpointFootprint(key: string): Footprint {
    return this.#endpoints.get(key)?.endpoint?.footprint ?? emptyFootprint;
  }

  /** Sum of the footprints of all endpoints, transform jobs and inference components. */
  get footprint(): Footprint {
    return this.#records.footprint;
  }

  /** Returns the footprint of a transform job in progress; empty for any other. */
  transformFootprint(key: string): Footprint {
    return this.#transforms.get(key)?.transform?.footprint ?? emptyFootprint;
  }

  /**
   * Returns the footprint of an inference component's existing and desired copies. The instances on which the copies run count for the
   * endpoint.
   */
  componentFootprint(key: string): Footprint {
    return this.#components.get(key)?.component?.footprint ?? emptyFootprint;
  }

  /** Returns the state of an inference component; null for an unknown name. */
  componentState(key: string): ComponentState["at"] | null {
    return this.#components.get(key)?.component?.at ?? null;
  }

  /** Returns the state of a transform job; null for an unknown name. */
  transformState(key: string): TransformState["at"] | null {
    return this.#transforms.get(key)?.transform?.at ?? null;
  }

  /** Returns the state of an endpoint; null for an unknown name. */
  endpointState(key: string): EndpointState["at"] | null {
    return this.#endpoints.get(key)?.endpoint?.at ?? null;
  }

  endpointStates(): Iterable<EndpointState["at"]> {
    return this.#endpoints.values().flatMap(({ endpoint }) => (endpoint === null ? [] : [endpoint.at]));
  }

  /** Returns whether an S3 object is data of a model, or of a deleted model that an endpoint still runs. */
  isModelData(object: { readonly bucket: string; readonly key: string }): boolean {
    return this.#records.modelData.covers(object);
  }

  /** Returns the innermost output folder that contains an S3 object, with its owners; null for an object that is no output. */
  outputOwners(object: { readonly bucket: string; readonly key: string }): OutputOwners | null {
    return this.#records.outputs.find(object);
  }

  /** Resolves at the next change of an endpoint, a transform job or an inference component. */
  stateChanged(): Promise<void> {
    return this.#stateChanged.nextChange();
  }

  /** Applies a committed write of this process to the view, before callers are notified of it. */
  applyWrite(changes: readonly DocumentChange[], version: number): void {
    for (const change of changes) {
      if (change.do === "check") continue;
      const { kind, key } = change;
      if (change.do === "delete") this.#deleted.set(`${kind} ${key}`, version);
      this.#apply({ kind, key, version, body: change.do === "put" ? change.body : null });
    }
    this.#notify(changes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#following[Symbol.asyncDispose]();
  }

  async #follow(version: number, closing: AbortSignal): Promise<void> {
    const { documents, clock, logger } = this.#options;
    for (let since = version; ;) {
      try {
        for await (const batch of documents.changes(since, closing)) {
          since = batch.version;
          for (const { document, ...location } of batch.changes)
            this.#apply({ ...location, body: document?.body ?? null });
          for (const [name, deleted] of this.#deleted) if (deleted <= since) this.#deleted.delete(name);
          this.#notify(batch.changes);
        }
      } catch (error) {
        closing.throwIfAborted();
        if (error instanceof ChangesForgotten) {
          since = await this.#load();
          this.#stateChanged.notify();
          continue;
        }
        logger.error("reading the change feed of the records failed; all records are read again", {
          error: String(error),
        });
        await delay(clock, heardAgainMs, closing);
      }
    }
  }

  /**
   * Reads all records into the view. Resolves with the version up to which the view is complete. Records that this
   * process has written during the read are newer and are kept.
   */
  async #load(): Promise<number> {
    const { documents } = this.#options;
    const version = await documents.version();
    const facts = new KnownRecords(this.#kinds);
    for (const kind of this.#kinds) {
      for (let after: DocumentPosition | null = null; ;) {
        const page = await documents.list({ kind, order: null, isDescending: false, after, limit: readAtOnceMax });
        for (const document of page.documents) this.#apply(document, facts);
        if (page.next === null) break;
        after = page.next;
      }
      for (const [key, before] of this.#records.of(kind)) if (before.version > version) facts.set(kind, key, before);
    }
    this.#records = facts;
    return version;
  }

  #apply(record: RecordVersion, facts = this.#records): void {
    const { kind, key, version, body } = record;
    if (!this.#kinds.includes(kind)) return;
    const isOlder = (facts.of(kind).get(key)?.version ?? 0) > version;
    if (isOlder || (this.#deleted.get(`${kind} ${key}`) ?? 0) > version) return;
    facts.set(kind, key, body === null ? null : this.#summaryOf({ kind, key, version, body }));
  }

  /** Returns the summary of a record; null if the record is unreadable. */
  #summaryOf(record: RecordVersion & { readonly body: string }): RecordSummary | null {
    const { models, configs, endpoints, transformJobs, components } = this.#options.kinds;
    const { kind, version } = record;
    const none = { version, modelDataUrls: [], outputs: [], endpoint: null, transform: null, component: null };
    if (kind === components.kind) {
      const read = components.read(record);
      if (read === null) return null;
      const footprint = componentFootprint(read);
      const modelDataUrls = dataUrls(read.specs.map(({ model }) => model));
      return { ...none, modelDataUrls, component: { at: read.state.at, footprint } };
    }
    if (kind === configs.kind) {
      const config = configs.read(record);
      return config === null ? null : { ...none, outputs: configOutputFolders(config) };
    }
    if (kind === models.kind) {
      const model = models.read(record);
      return model === null ? null : { ...none, modelDataUrls: dataUrls([model]) };
    }
    if (kind === transformJobs.kind) {
      const job = transformJobs.read(record);
      if (job === null) return null;
      const { at } = job.state;
      const outputs = transformOutputFolders(job);
      if (!isTransformInProgress({ at })) return { ...none, outputs, transform: { at, footprint: emptyFootprint } };
      const transform = { at, footprint: transformFootprint(job) };
      return { ...none, outputs, modelDataUrls: dataUrls([job.model]), transform };
    }
    const read = endpoints.read(record);
    if (read === null) return null;
    const endpoint = { at: read.state.at, footprint: peakFootprint(read) };
    return { ...none, outputs: endpointOutputFolders(read), modelDataUrls: dataUrls(modelsOf(read)), endpoint };
  }

  #notify(changes: readonly { readonly kind: string }[]): void {
    const { endpoints, transformJobs, components } = this.#options.kinds;
    const moving = [endpoints.kind, transformJobs.kind, components.kind];
    if (changes.some(({ kind }) => moving.includes(kind))) this.#stateChanged.notify();
  }

  get #components(): ReadonlyMap<string, RecordSummary> {
    return this.#records.of(this.#options.kinds.components.kind);
  }

  get #transforms(): ReadonlyMap<string, RecordSummary> {
    return this.#records.of(this.#options.kinds.transformJobs.kind);
  }

  get #endpoints(): ReadonlyMap<string, RecordSummary> {
    return this.#records.of(this.#options.kinds.endpoints.kind);
  }
}

/** The summaries of all records by kind, and the locations of all model data and outputs. */
class KnownRecords {
  readonly modelData = new ModelDataLocations();
  readonly outputs = new OutputFolders();
  /** Cached sum over all records, because each request to a multi-model container reads it. */
  readonly footprint = { instanceCount: 0, containerCount: 0, modelBytes: 0, countsByBytes: new Map<number, number>() };
  readonly #byKind: ReadonlyMap<string, Map<string, RecordSummary>>;

  constructor(kinds: readonly string[]) {
    this.#byKind = new Map(kinds.map((kind) => [kind, new Map<string, RecordSummary>()]));
  }

  of(kind: string): ReadonlyMap<string, RecordSummary> {
    return this.#byKind.get(kind) ?? new Map<string, RecordSummary>();
  }

  /** Sets the summary of a record; null removes it. */
  set(kind: string, key: string, facts: RecordSummary | null): void {
    const records = this.#byKind.get(kind);
    if (records === undefined) return;
    for (const url of facts?.modelDataUrls ?? []) this.modelData.add(url);
    for (const url of records.get(key)?.modelDataUrls ?? []) this.modelData.remove(url);
    for (const location of facts?.outputs ?? []) this.outputs.add(location);
    for (const location of records.get(key)?.outputs ?? []) this.outputs.remove(location);
    this.#count(facts, 1);
    this.#count(records.get(key) ?? null, -1);
    if (facts === null) records.delete(key);
    else records.set(key, facts);
  }

  #count(facts: RecordSummary | null, sign: 1 | -1): void {
    const { footprint } = facts?.endpoint ?? facts?.transform ?? facts?.component ?? { footprint: emptyFootprint };
    const { countsByBytes } = this.footprint;
    this.footprint.instanceCount += sign * footprint.instanceCount;
    this.footprint.containerCount += sign * footprint.containerCount;
    this.footprint.modelBytes += sign * footprint.modelBytes;
    for (const [bytes, count] of footprint.countsByBytes ?? []) {
      const sum = (countsByBytes.get(bytes) ?? 0) + sign * count;
      if (sum === 0) countsByBytes.delete(bytes);
      else countsByBytes.set(bytes, sum);
    }
  }
}

const modelsOf = ({ generations }: EndpointRecord) =>
  generations.flatMap(({ variants }) => variants.map(({ plan }) => plan.model));

function dataUrls(models: readonly ModelRecord[]): readonly string[] {
  return models.flatMap(({ containers }) => containers.flatMap((container) => modelDataUrl(container) ?? []));
}
