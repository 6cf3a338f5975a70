import { delay, ChangeNotifier, TaskGroup, type Clock, type Logger } from "@galatea/base";
import { ChangesForgotten, type DocumentChange, type DocumentPosition, type Documents } from "../records/index.ts";
import {
  noFootprint,
  plannedFootprint,
  type EndpointRecord,
  type EndpointState,
  type Footprint,
} from "../endpoints/index.ts";
import { componentFootprint, type ComponentState } from "../components/index.ts";
import { isUnderWay, jobFootprint, type TransformState } from "../transforms/index.ts";
import type { ModelRecord } from "../definitions/index.ts";
import { modelDataUrlOf } from "../instances/index.ts";
import type { HostingKinds } from "./hosting-kinds.ts";
import { ModelDataLocations } from "./model-data-locations.ts";
import { OutputFolders, type OutputOwners, type OutputFolder } from "./output-folders.ts";
import { configOutputs, endpointOutputs, transformOutputs } from "./recorded-outputs.ts";

/** The facts of a record that are kept in memory. */
interface RecordFacts {
  readonly version: number;
  /** URLs of the models' data. */
  readonly modelDataUrls: readonly string[];
  /** Locations of its requests' outputs. */
  readonly outputs: readonly OutputFolder[];
  /** Null for other kinds. */
  readonly endpoint: { readonly at: EndpointState["at"]; readonly footprint: Footprint } | null;
  /** Null for other kinds. */
  readonly transform: { readonly at: TransformState["at"]; readonly footprint: Footprint } | null;
  /** Null for other kinds. */
  readonly component: { readonly at: ComponentState["at"]; readonly footprint: Footprint } | null;
}

interface RecordVersion {
  readonly kind: string;
  readonly key: string;
  readonly version: number;
  /** Null for a deleted record. */
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
 * The facts of all records that hosting reads synchronously: counts, states and footprints of endpoints, locations of
 * models. Its own writes are visible at once, those of other processes when the documents' change feed delivers them.
 * The account's quotas bound it.
 */
export class HostingView implements AsyncDisposable {
  readonly #options: HostingViewOptions;
  readonly #following: TaskGroup;
  readonly #stateChanged = new ChangeNotifier();
  readonly #kinds: readonly string[];
  #facts: KnownRecords;
  /** Keys that this process deleted, with the version: a late notification must not restore them. */
  readonly #deleted = new Map<string, number>();

  private constructor(options: HostingViewOptions) {
    this.#options = options;
    const { models, configs, endpoints, transformJobs, components } = options.kinds;
    this.#kinds = [models, configs, endpoints, transformJobs, components].map(({ kind }) => kind);
    this.#facts = new KnownRecords(this.#kinds);
    this.#following = new TaskGroup((error) => {
      options.logger.error("the change feed of the records has stopped", { error: String(error) });
    });
  }

  static async open(options: HostingViewOptions): Promise<HostingView> {
    const view = new HostingView(options);
    const version = await view.#load();
    view.#following.run((closing) => view.#follow(version, closing));
    return view;
  }

  count({ kind }: { readonly kind: string }): number {
    return this.#facts.of(kind).size;
  }

  has({ kind }: { readonly kind: string }, key: string): boolean {
    return this.#facts.of(kind).has(key);
  }

  /** Returns the footprint of an endpoint, including the target of its update; empty for an unknown one. */
  endpointFootprint(key: string): Footprint {
    return this.#endpoints.get(key)?.endpoint?.footprint ?? noFootprint;
  }

  /** The sum over all endpoints, transform jobs and inference components. */
  get footprint(): Footprint {
    return this.#facts.footprint;
  }

  /** Returns the footprint of a transform job in progress; empty for any other. */
  transformFootprint(key: string): Footprint {
    return this.#transforms.get(key)?.transform?.footprint ?? noFootprint;
  }

  /** Returns the footprint of an inference component's present and desired copies; its instances are its endpoint's. */
  componentFootprint(key: string): Footprint {
    return this.#components.get(key)?.component?.footprint ?? noFootprint;
  }

  /** Returns null for an unknown component. */
  componentState(key: string): ComponentState["at"] | null {
    return this.#components.get(key)?.component?.at ?? null;
  }

  /** Returns null for an unknown job. */
  transformState(key: string): TransformState["at"] | null {
    return this.#transforms.get(key)?.transform?.at ?? null;
  }

  /** Returns null for an unknown endpoint. */
  endpointState(key: string): EndpointState["at"] | null {
    return this.#endpoints.get(key)?.endpoint?.at ?? null;
  }

  endpointStates(): Iterable<EndpointState["at"]> {
    return this.#endpoints.values().flatMap(({ endpoint }) => (endpoint === null ? [] : [endpoint.at]));
  }

  /** Returns whether an object is data of a model, including deleted ones that an endpoint still runs. */
  isModelData(object: { readonly bucket: string; readonly key: string }): boolean {
    return this.#facts.places.cover(object);
  }

  /** Returns the innermost output folder of an object; null for an object that is no output. */
  outputPlace(object: { readonly bucket: string; readonly key: string }): OutputOwners | null {
    return this.#facts.outputs.find(object);
  }

  /** Resolves with the next change of an endpoint, a transform job or an inference component. */
  stateChanged(): Promise<void> {
    return this.#stateChanged.nextChange();
  }

  /** Records a committed write of this process, before followers are notified. */
  wrote(changes: readonly DocumentChange[], version: number): void {
    for (const change of changes) {
      if (change.do === "check") continue;
      const { kind, key } = change;
      if (change.do === "delete") this.#deleted.set(`${kind} ${key}`, version);
      this.#take({ kind, key, version, body: change.do === "put" ? change.body : null });
    }
    this.#tell(changes);
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
          for (const { document, ...place } of batch.changes) this.#take({ ...place, body: document?.body ?? null });
          for (const [name, deleted] of this.#deleted) if (deleted <= since) this.#deleted.delete(name);
          this.#tell(batch.changes);
        }
      } catch (error) {
        closing.throwIfAborted();
        if (error instanceof ChangesForgotten) {
          since = await this.#load();
          this.#stateChanged.notify();
          continue;
        }
        logger.error("the change feed of the records failed; it is read again", { error: String(error) });
        await delay(clock, heardAgainMs, closing);
      }
    }
  }

  /**
   * Reads every record. Returns the version that is complete in the view; writes of this process meanwhile are newer,
   * and stay.
   */
  async #load(): Promise<number> {
    const { documents } = this.#options;
    const version = await documents.version();
    const facts = new KnownRecords(this.#kinds);
    for (const kind of this.#kinds) {
      for (let after: DocumentPosition | null = null; ;) {
        const page = await documents.list({ kind, order: null, isDescending: false, after, limit: readAtOnceMax });
        for (const document of page.documents) this.#take(document, facts);
        if (page.next === null) break;
        after = page.next;
      }
      for (const [key, before] of this.#facts.of(kind)) if (before.version > version) facts.set(kind, key, before);
    }
    this.#facts = facts;
    return version;
  }

  #take(record: RecordVersion, facts = this.#facts): void {
    const { kind, key, version, body } = record;
    if (!this.#kinds.includes(kind)) return;
    const isOlder = (facts.of(kind).get(key)?.version ?? 0) > version;
    if (isOlder || (this.#deleted.get(`${kind} ${key}`) ?? 0) > version) return;
    facts.set(kind, key, body === null ? null : this.#factsOf({ kind, key, version, body }));
  }

  /** Returns null for a record that cannot be read. */
  #factsOf(record: RecordVersion & { readonly body: string }): RecordFacts | null {
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
      return config === null ? null : { ...none, outputs: configOutputs(config) };
    }
    if (kind === models.kind) {
      const model = models.read(record);
      return model === null ? null : { ...none, modelDataUrls: dataUrls([model]) };
    }
    if (kind === transformJobs.kind) {
      const job = transformJobs.read(record);
      if (job === null) return null;
      const { at } = job.state;
      const outputs = transformOutputs(job);
      if (!isUnderWay({ at })) return { ...none, outputs, transform: { at, footprint: noFootprint } };
      const transform = { at, footprint: jobFootprint(job) };
      return { ...none, outputs, modelDataUrls: dataUrls([job.model]), transform };
    }
    const read = endpoints.read(record);
    if (read === null) return null;
    const endpoint = { at: read.state.at, footprint: plannedFootprint(read) };
    return { ...none, outputs: endpointOutputs(read), modelDataUrls: dataUrls(modelsOf(read)), endpoint };
  }

  #tell(changes: readonly { readonly kind: string }[]): void {
    const { endpoints, transformJobs, components } = this.#options.kinds;
    const moving = [endpoints.kind, transformJobs.kind, components.kind];
    if (changes.some(({ kind }) => moving.includes(kind))) this.#stateChanged.notify();
  }

  get #components(): ReadonlyMap<string, RecordFacts> {
    return this.#facts.of(this.#options.kinds.components.kind);
  }

  get #transforms(): ReadonlyMap<string, RecordFacts> {
    return this.#facts.of(this.#options.kinds.transformJobs.kind);
  }

  get #endpoints(): ReadonlyMap<string, RecordFacts> {
    return this.#facts.of(this.#options.kinds.endpoints.kind);
  }
}

/** The facts of all records by kind, and the locations of all model data and outputs. */
class KnownRecords {
  readonly places = new ModelDataLocations();
  readonly outputs = new OutputFolders();
  /** Kept as a sum, because each request to a multi-model container reads it when it ends. */
  readonly footprint = { instanceCount: 0, containerCount: 0, modelBytes: 0, countsByBytes: new Map<number, number>() };
  readonly #byKind: ReadonlyMap<string, Map<string, RecordFacts>>;

  constructor(kinds: readonly string[]) {
    this.#byKind = new Map(kinds.map((kind) => [kind, new Map<string, RecordFacts>()]));
  }

  of(kind: string): ReadonlyMap<string, RecordFacts> {
    return this.#byKind.get(kind) ?? new Map<string, RecordFacts>();
  }

  /** Sets or, for null, removes a record's facts. */
  set(kind: string, key: string, facts: RecordFacts | null): void {
    const records = this.#byKind.get(kind);
    if (records === undefined) return;
    for (const url of facts?.modelDataUrls ?? []) this.places.add(url);
    for (const url of records.get(key)?.modelDataUrls ?? []) this.places.remove(url);
    for (const place of facts?.outputs ?? []) this.outputs.add(place);
    for (const place of records.get(key)?.outputs ?? []) this.outputs.remove(place);
    this.#count(facts, 1);
    this.#count(records.get(key) ?? null, -1);
    if (facts === null) records.delete(key);
    else records.set(key, facts);
  }

  #count(facts: RecordFacts | null, sign: 1 | -1): void {
    const { footprint } = facts?.endpoint ?? facts?.transform ?? facts?.component ?? { footprint: noFootprint };
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
  return models.flatMap(({ containers }) => containers.flatMap((container) => modelDataUrlOf(container) ?? []));
}
