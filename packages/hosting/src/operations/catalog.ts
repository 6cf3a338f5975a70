import { unreachable, type Clock } from "@galatea/base";
import { DocumentConflict, type DocumentChange } from "../records/index.ts";
import {
  hostingArn,
  nameKey,
  noModel,
  parseHostingArn,
  serverlessModelRefusal,
  shadowedModelRefusal,
  type EndpointConfigRecord,
  type ModelRecord,
  type ProductionVariant,
  type VariantPlan,
  type Owner,
} from "../definitions/index.ts";
import type { PlannedConfig } from "../endpoints/index.ts";
import { alreadyExists, invalid, notFound, type HostingNoun } from "../definitions/index.ts";
import type { ModelMemories } from "../capacity/index.ts";
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

/** A record without the fields that hosting sets, and with its initial tags. */
export type NewRecord<Value> = Omit<Value, "arn" | "createdMs"> & { readonly tags: readonly Tag[] };

export interface HostingCatalogOptions {
  readonly store: HostingStore;
  readonly reservations: Reservations;
  readonly memories: ModelMemories;
  readonly clock: Clock;
}

/** Models, endpoint configurations, and the tags of all resources: records that nothing runs for. */
export class HostingCatalog {
  readonly #store: HostingStore;
  readonly #reservations: Reservations;
  readonly #memories: ModelMemories;
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
    if (found.at === "found") throw alreadyExists("model", arn);
    using _reserved = this.#reservations.reserveRecord("models", key);
    const record = { ...model, arn, createdMs: this.#clock.epochMs() };
    await this.#create("model", arn, [models.put(key, record, versionOf(found)), ...this.firstTags(arn, tags)]);
    return record;
  }

  async createConfig({ tags, ...config }: NewRecord<EndpointConfigRecord>): Promise<EndpointConfigRecord> {
    const { configs } = this.#store.kinds;
    const key = nameKey(config.name);
    const arn = hostingArn("endpoint-config", config.name, config.owner);
    const noun = "endpoint configuration";
    const found = await configs.find(key);
    if (found.at === "found") throw alreadyExists(noun, arn);
    using _reserved = this.#reservations.reserveRecord("configs", key);
    const { variants, shadows = [] } = config;
    const isShadowed = shadows.length > 0;
    for (const variant of [...variants, ...shadows]) await this.#modelOf(variant, config.owner, isShadowed);
    const record = { ...config, arn, createdMs: this.#clock.epochMs() };
    await this.#create(noun, arn, [configs.put(key, record, versionOf(found)), ...this.firstTags(arn, tags)]);
    return record;
  }

  async model(name: string, owner: Owner): Promise<ModelRecord> {
    const found = await this.#store.kinds.models.find(nameKey(name));
    if (found.at !== "found") throw notFound("model", hostingArn("model", name, owner));
    return found.value;
  }

  listModels(question: ListQuery, nextTick: () => Promise<void>): Promise<ListingPage<ModelRecord>> {
    return listPage(this.#store.kinds.models, question, nextTick);
  }

  listConfigs(question: ListQuery, nextTick: () => Promise<void>): Promise<ListingPage<EndpointConfigRecord>> {
    return listPage(this.#store.kinds.configs, question, nextTick);
  }

  /** Rejects a model that its variant cannot run. `isShadowed`: its variant is a shadow variant or has one. */
  async #modelOf(
    { ModelName: name, ServerlessConfig: serverless }: ProductionVariant,
    owner: Owner,
    isShadowed: boolean,
  ): Promise<ModelRecord> {
    if (name === "") return noModel(owner);
    const model = await this.model(name, owner);
    const refusal =
      (serverless === undefined ? null : serverlessModelRefusal(model)) ??
      (isShadowed ? shadowedModelRefusal(model) : null);
    if (refusal !== null) throw invalid(refusal);
    return model;
  }

  /** Returns the expected memory of each of a model's containers, in bytes. */
  expectedBytes(model: ModelRecord): Promise<readonly number[]> {
    return this.#memories.expectedBytes(model);
  }

  async config(name: string, owner: Owner): Promise<EndpointConfigRecord> {
    const found = await this.#store.kinds.configs.find(nameKey(name));
    if (found.at !== "found") throw notFound("endpoint configuration", hostingArn("endpoint-config", name, owner));
    return found.value;
  }

  /** Returns copies of a configuration and its models: they may be deleted while an endpoint uses them. */
  async plan(configName: string, owner: Owner): Promise<PlannedConfig> {
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
      if (found.at !== "found") throw notFound("model", hostingArn("model", name, owner));
      const key = nameKey(name);
      await this.#store.write([
        models.delete(key, found.version),
        modelMemories.delete(key, "any"),
        tags.delete(found.value.arn, "any"),
      ]);
    });
  }

  /** Deletes a configuration with its tags. */
  async deleteConfig(name: string, owner: Owner): Promise<void> {
    const { configs, tags } = this.#store.kinds;
    await this.#store.attempt(async () => {
      const found = await configs.find(nameKey(name));
      if (found.at !== "found") throw notFound("endpoint configuration", hostingArn("endpoint-config", name, owner));
      await this.#store.write([configs.delete(nameKey(name), found.version), tags.delete(found.value.arn, "any")]);
    });
  }

  /** Returns the changes that write the tags of a new resource. Throws where there are too many. */
  firstTags(arn: string, tags: readonly Tag[]): readonly DocumentChange[] {
    if (tags.length === 0) return [];
    return [this.#store.kinds.tags.put(arn, merged([], tags), "any")];
  }

  async tags(arn: string): Promise<readonly Tag[]> {
    const tagged = await this.#tagged(arn);
    return (await this.#tagsNow(tagged.arn)).tags;
  }

  /** Adds tags; an existing key gets the new value. Returns all tags. */
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
          ? tags.delete(tagged.arn, before.expects)
          : tags.put(tagged.arn, after, before.expects);
      // Fails if the tagged resource is deleted meanwhile.
      await this.#store.write([changed, tagged.isThere]);
      return after;
    });
  }

  async #tagsNow(arn: string): Promise<{ readonly tags: readonly Tag[]; readonly expects: number | "absent" }> {
    const found = await this.#store.kinds.tags.find(arn);
    return { tags: found.at === "found" ? found.value : [], expects: versionOf(found) };
  }

  /** Returns the ARN of an existing resource, and a change that checks that it still exists. */
  async #tagged(arn: string): Promise<{ readonly arn: string; readonly isThere: DocumentChange }> {
    const parsed = parseHostingArn(arn);
    if (parsed === null) throw invalid(`Invalid ARN: ${arn}`);
    const { models, configs, endpoints, transformJobs, components } = this.#store.kinds;
    const { resource, key } = parsed;
    switch (resource) {
      case "model":
        return taggedRecord(models, key, await models.find(key)) ?? absent(notFound("model", arn));
      case "endpoint-config":
        return taggedRecord(configs, key, await configs.find(key)) ?? absent(notFound("endpoint configuration", arn));
      case "endpoint":
        return taggedRecord(endpoints, key, await endpoints.find(key)) ?? absent(notFound("endpoint", arn));
      case "inference-component":
        return (
          taggedRecord(components, key, await components.find(key)) ?? absent(notFound("inference component", arn))
        );
      case "transform-job":
        return (
          taggedRecord(transformJobs, key, await transformJobs.find(key)) ?? absent(notFound("transform job", arn))
        );
      default:
        return unreachable(resource);
    }
  }

  async #create(noun: HostingNoun, arn: string, changes: readonly DocumentChange[]): Promise<void> {
    try {
      await this.#store.write(changes);
    } catch (error) {
      // Another caller has used the name meanwhile.
      if (error instanceof DocumentConflict) throw alreadyExists(noun, arn);
      throw error;
    }
  }
}

/** Returns the expected version for a change of a record: an unreadable one is overwritten. */
function versionOf(found: RecordState<unknown>): number | "absent" {
  return found.at === "absent" ? "absent" : found.version;
}

function taggedRecord<Value extends { readonly arn: string }>(
  kind: RecordKind<Value>,
  key: string,
  found: RecordState<Value>,
): { readonly arn: string; readonly isThere: DocumentChange } | null {
  return found.at === "found" ? { arn: found.value.arn, isThere: kind.check(key, found.version) } : null;
}

function absent(error: Error): never {
  throw error;
}

function merged(before: readonly Tag[], added: readonly Tag[]): readonly Tag[] {
  const all = new Map(before.map((tag) => [tag.Key, tag]));
  for (const tag of added) all.set(tag.Key, tag);
  if (all.size > tagCountMax) throw invalid(`A resource cannot have more than ${tagCountMax} tags.`);
  return [...all.values()];
}
