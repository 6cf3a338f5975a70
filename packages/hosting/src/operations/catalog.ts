import { unreachable, type Clock } from "@galatea/base";
import { DocumentConflict, type DocumentChange } from "../records/index.ts";
import {
  hostingArn,
  nameKey,
  placeholderModel,
  parseHostingArn,
  serverlessModelError,
  shadowModelError,
  type EndpointConfigRecord,
  type ModelRecord,
  type ProductionVariant,
  type VariantPlan,
  type Owner,
} from "../definitions/index.ts";
import type { PlannedConfig } from "../endpoints/index.ts";
import {
  resourceAlreadyExists,
  validationError,
  resourceNotFound,
  type HostingResourceNoun,
} from "../definitions/index.ts";
import type { ModelMemoryEstimates } from "../capacity/index.ts";
import type { Reservations } from "../capacity/index.ts";
import {
  listPage,
  type RecordState,
  type HostingStore,
  type ListingPage,
  type ListQuery,
  type RecordKind,
  type Tag,
} from "../store/index.ts";

const tagCountMax = 50;

/** A record to create: without the fields that the catalog sets (ARN and creation time), and with its initial tags. */
export type NewRecord<Value> = Omit<Value, "arn" | "createdMs"> & { readonly tags: readonly Tag[] };

export interface HostingCatalogOptions {
  readonly store: HostingStore;
  readonly reservations: Reservations;
  readonly memories: ModelMemoryEstimates;
  readonly clock: Clock;
}

/** The records that need no reconciler: models, endpoint configurations, and the tags of all resources. */
export class HostingCatalog {
  readonly #store: HostingStore;
  readonly #reservations: Reservations;
  readonly #memories: ModelMemoryEstimates;
  readonly #clock: Clock;

  constructor({ store, reservations, memories, clock }: HostingCatalogOptions) {
    this.#store = store;
    this.#reservations = reservations;
    this.#memories = memories;
    this.#clock = clock;
  }

  async createModel({ tags, ...model }: NewRecord<ModelRecord>): Promise<ModelRecord> {
    const { models } = this.#store.kinds;
    const key = nameKey(model.name);
    const arn = hostingArn("model", model.name, model.owner);
    const found = await models.find(key);
    if (found.at === "found") throw resourceAlreadyExists("model", arn);
    using _reserved = this.#reservations.reserveRecord("models", key);
    const record = { ...model, arn, createdMs: this.#clock.epochMs() };
    await this.#create("model", arn, [
      models.putChange(key, record, versionOf(found)),
      ...this.initialTagChanges(arn, tags),
    ]);
    return record;
  }

  async createConfig({ tags, ...config }: NewRecord<EndpointConfigRecord>): Promise<EndpointConfigRecord> {
    const { configs } = this.#store.kinds;
    const key = nameKey(config.name);
    const arn = hostingArn("endpoint-config", config.name, config.owner);
    const noun = "endpoint configuration";
    const found = await configs.find(key);
    if (found.at === "found") throw resourceAlreadyExists(noun, arn);
    using _reserved = this.#reservations.reserveRecord("configs", key);
    const { variants, shadows = [] } = config;
    const isShadowed = shadows.length > 0;
    for (const variant of [...variants, ...shadows]) await this.#modelOf(variant, config.owner, isShadowed);
    const record = { ...config, arn, createdMs: this.#clock.epochMs() };
    await this.#create(noun, arn, [
      configs.putChange(key, record, versionOf(found)),
      ...this.initialTagChanges(arn, tags),
    ]);
    return record;
  }

  async model(name: string, owner: Owner): Promise<ModelRecord> {
    const found = await this.#store.kinds.models.find(nameKey(name));
    if (found.at !== "found") throw resourceNotFound("model", hostingArn("model", name, owner));
    return found.value;
  }

  listModels(question: ListQuery, nextTick: () => Promise<void>): Promise<ListingPage<ModelRecord>> {
    return listPage(this.#store.kinds.models, question, nextTick);
  }

  listConfigs(question: ListQuery, nextTick: () => Promise<void>): Promise<ListingPage<EndpointConfigRecord>> {
    return listPage(this.#store.kinds.configs, question, nextTick);
  }

  /**
   * Returns the model of a variant. Rejects if the variant cannot run this model. `isShadowed`: true if the variant is a shadow variant or has
   * one.
   */
  async #modelOf(
    { ModelName: name, ServerlessConfig: serverless }: ProductionVariant,
    owner: Owner,
    isShadowed: boolean,
  ): Promise<ModelRecord> {
    if (name === "") return placeholderModel(owner);
    const model = await this.model(name, owner);
    const refusal =
      (serverless === undefined ? null : serverlessModelError(model)) ?? (isShadowed ? shadowModelError(model) : null);
    if (refusal !== null) throw validationError(refusal);
    return model;
  }

  /** Returns the expected memory of each of a model's containers, in bytes. */
  expectedBytes(model: ModelRecord): Promise<readonly number[]> {
    return this.#memories.expectedBytes(model);
  }

  async config(name: string, owner: Owner): Promise<EndpointConfigRecord> {
    const found = await this.#store.kinds.configs.find(nameKey(name));
    if (found.at !== "found")
      throw resourceNotFound("endpoint configuration", hostingArn("endpoint-config", name, owner));
    return found.value;
  }

  /** Returns a snapshot of a configuration and its models. The snapshot stays valid if they are deleted while an endpoint uses them. */
  async planEndpoint(configName: string, owner: Owner): Promise<PlannedConfig> {
    const { name, variants, shadows = [], dataCapture, asyncInference } = await this.config(configName, owner);
    const plans: VariantPlan[] = [];
    const isShadowed = shadows.length > 0;
    for (const variant of [...variants, ...shadows]) {
      const model = await this.#modelOf(variant, owner, isShadowed);
      const plan = { variant, model, expectedBytes: await this.#memories.expectedBytes(model) };
      plans.push(shadows.includes(variant) ? { ...plan, isShadow: true } : plan);
    }
    return {
      configName: name,
      plans,
      ...(asyncInference === undefined ? {} : { asyncInference }),
      ...(dataCapture === undefined ? {} : { dataCapture }),
    };
  }

  /** Deletes a model with its tags. */
  async deleteModel(name: string, owner: Owner): Promise<void> {
    const { models, modelMemories, tags } = this.#store.kinds;
    await this.#store.attempt(async () => {
      const found = await models.find(nameKey(name));
      if (found.at !== "found") throw resourceNotFound("model", hostingArn("model", name, owner));
      const key = nameKey(name);
      await this.#store.write([
        models.deleteChange(key, found.version),
        modelMemories.deleteChange(key, "any"),
        tags.deleteChange(found.value.arn, "any"),
      ]);
    });
  }

  /** Deletes a configuration with its tags. */
  async deleteConfig(name: string, owner: Owner): Promise<void> {
    const { configs, tags } = this.#store.kinds;
    await this.#store.attempt(async () => {
      const found = await configs.find(nameKey(name));
      if (found.at !== "found")
        throw resourceNotFound("endpoint configuration", hostingArn("endpoint-config", name, owner));
      await this.#store.write([
        configs.deleteChange(nameKey(name), found.version),
        tags.deleteChange(found.value.arn, "any"),
      ]);
    });
  }

  /** Returns the document changes that write the tags of a new resource. Throws if there are too many tags. */
  initialTagChanges(arn: string, tags: readonly Tag[]): readonly DocumentChange[] {
    if (tags.length === 0) return [];
    return [this.#store.kinds.tags.putChange(arn, merged([], tags), "any")];
  }

  async tags(arn: string): Promise<readonly Tag[]> {
    const tagged = await this.#tagged(arn);
    return (await this.#tagsNow(tagged.arn)).tags;
  }

  /** Adds tags to a resource; tags with the same keys are overwritten. Resolves with all tags of the resource. */
  addTags(arn: string, added: readonly Tag[]): Promise<readonly Tag[]> {
    return this.#changeTags(arn, (before) => merged(before, added));
  }

  async removeTags(arn: string, keys: ReadonlySet<string>): Promise<void> {
    await this.#changeTags(arn, (before) => before.filter(({ Key }) => !keys.has(Key)));
  }

  async #changeTags(arn: string, change: (before: readonly Tag[]) => readonly Tag[]): Promise<readonly Tag[]> {
    const { tags } = this.#store.kinds;
    return await this.#store.attempt(async () => {
      const tagged = await this.#tagged(arn);
      const before = await this.#tagsNow(tagged.arn);
      const after = change(before.tags);
      const isGone = after.length === 0;
      if (isGone && before.expects === "absent") return after;
      const changed =
        isGone && before.expects !== "absent"
          ? tags.deleteChange(tagged.arn, before.expects)
          : tags.putChange(tagged.arn, after, before.expects);
      // `isThere` makes the write fail if the resource was deleted after it was read.
      await this.#store.write([changed, tagged.isThere]);
      return after;
    });
  }

  async #tagsNow(arn: string): Promise<{ readonly tags: readonly Tag[]; readonly expects: number | "absent" }> {
    const found = await this.#store.kinds.tags.find(arn);
    return { tags: found.at === "found" ? found.value : [], expects: versionOf(found) };
  }

  /** Returns the ARN of an existing resource, and a document change that makes a write fail if the resource was deleted. */
  async #tagged(arn: string): Promise<{ readonly arn: string; readonly isThere: DocumentChange }> {
    const parsed = parseHostingArn(arn);
    if (parsed === null) throw validationError(`Invalid ARN: ${arn}`);
    const { models, configs, endpoints, transformJobs, components } = this.#store.kinds;
    const { resource, key } = parsed;
    switch (resource) {
      case "model":
        return taggedRecord(models, key, await models.find(key)) ?? absent(resourceNotFound("model", arn));
      case "endpoint-config":
        return (
          taggedRecord(configs, key, await configs.find(key)) ?? absent(resourceNotFound("endpoint configuration", arn))
        );
      case "endpoint":
        return taggedRecord(endpoints, key, await endpoints.find(key)) ?? absent(resourceNotFound("endpoint", arn));
      case "inference-component":
        return (
          taggedRecord(components, key, await components.find(key)) ??
          absent(resourceNotFound("inference component", arn))
        );
      case "transform-job":
        return (
          taggedRecord(transformJobs, key, await transformJobs.find(key)) ??
          absent(resourceNotFound("transform job", arn))
        );
      default:
        return unreachable(resource);
    }
  }

  async #create(noun: HostingResourceNoun, arn: string, changes: readonly DocumentChange[]): Promise<void> {
    try {
      await this.#store.write(changes);
    } catch (error) {
      // A concurrent caller has created a resource with this name.
      if (error instanceof DocumentConflict) throw resourceAlreadyExists(noun, arn);
      throw error;
    }
  }
}

/** Returns the version that a write must expect. An unreadable record also has a version, so that it is overwritten. */
function versionOf(found: RecordState<unknown>): number | "absent" {
  return found.at === "absent" ? "absent" : found.version;
}

function taggedRecord<Value extends { readonly arn: string }>(
  kind: RecordKind<Value>,
  key: string,
  found: RecordState<Value>,
): { readonly arn: string; readonly isThere: DocumentChange } | null {
  return found.at === "found" ? { arn: found.value.arn, isThere: kind.versionCheck(key, found.version) } : null;
}

function absent(error: Error): never {
  throw error;
}

function merged(before: readonly Tag[], added: readonly Tag[]): readonly Tag[] {
  const all = new Map(before.map((tag) => [tag.Key, tag]));
  for (const tag of added) all.set(tag.Key, tag);
  if (all.size > tagCountMax) throw validationError(`A resource cannot have more than ${tagCountMax} tags.`);
  return [...all.values()];
}
