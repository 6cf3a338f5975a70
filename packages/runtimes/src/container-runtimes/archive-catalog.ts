import { InferenceError } from "@galatea/base";
import type { Catalog, CatalogModel, LoadOverride } from "@galatea/server/engine";
import { completeConfig, parseConfigOverride } from "@galatea/server/modelconfig";
import type { ArchivedModel, OpenedContainer, PackageKeeper } from "./container-kind.ts";

export interface ArchiveCatalogOptions {
  readonly container: OpenedContainer;
  readonly installer: PackageKeeper;
  /** Directory of the unpacked archive. */
  readonly directory: string;
  /** Name under which the archive's own model, its first one, is served. */
  readonly servedName: string;
}

/** A catalog of the models that a container kind finds in an unpacked archive, which does not have the layout of a model repository. */
export class ArchiveCatalog implements Catalog {
  readonly #options: ArchiveCatalogOptions;
  /** Leases of package directories that models import, by directory; released when the catalog is disposed. */
  readonly #packages = new Map<string, Disposable>();

  constructor(options: ArchiveCatalogOptions) {
    this.#options = options;
  }

  async names(): Promise<readonly { readonly name: string; readonly duplicate: boolean }[]> {
    const names = (await this.#models()).map(({ name }) => name);
    return names.sort().map((name) => ({ name, duplicate: false }));
  }

  async find(name: string, override: LoadOverride | null): Promise<CatalogModel> {
    if (override !== null)
      throw new InferenceError(
        "UNSUPPORTED",
        `model '${name}' is configured by its container, and takes no configuration or files of a load`,
      );
    const model = (await this.#models()).find((each) => each.name === name);
    if (model === undefined) throw new InferenceError("NOT_FOUND", `model '${name}' is not in the archive`);
    const message = parseConfigOverride(JSON.stringify({ ...model.config, name }));
    const config = completeConfig(message, { directoryName: null, servedName: name, versionEntries: [], gpuCount: 0 });
    return {
      servedName: name,
      modelDirectory: this.#options.directory,
      config,
      versions: [{ version: 1, directory: model.directory }],
      misnamedVersions: [],
    };
  }

  async #models(): Promise<readonly ArchivedModel[]> {
    const { container, installer, directory, servedName } = this.#options;
    const [own, ...others] = await container.modelsIn(directory, async (framework, packages) => {
      const held = await installer(framework, packages);
      if (this.#packages.has(held.directory)) held[Symbol.dispose]();
      else this.#packages.set(held.directory, held);
      return held.directory;
    });
    return [{ ...own, name: servedName }, ...others];
  }

  [Symbol.asyncDispose](): Promise<void> {
    for (const held of this.#packages.values()) held[Symbol.dispose]();
    this.#packages.clear();
    return Promise.resolve();
  }
}
