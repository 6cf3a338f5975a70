import { chmodSync, chownSync, mkdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { InferenceError, TaskGroup, type Logger } from "@galatea/base";
import { readProcessStart } from "@galatea/base/processes";
import type { ModelSource } from "../backend.ts";
import { Cgroups, type CgroupSet } from "./cgroups.ts";
import {
  confinementRows,
  createConfinementPlan,
  type ConfinementPlan,
  type ConfinementRow,
  type MachineFacts,
  type TenantOptions,
} from "./confinement-plan.ts";
import type { PythonEnvironment } from "./python-environment.ts";
import { UserSlice } from "./user-slice.ts";

export interface TenantsOptions {
  readonly tenants: TenantOptions;
  /** Directory of `galatea_tenant.py`. */
  readonly workerDirectory: string;
  /** The operator's interpreter, which starts the interpreters of environments that tenants ship. */
  readonly python: PythonEnvironment;
  /** Resolves with the properties of this machine that a zygote of `python` has determined; called once. */
  readonly findFacts: () => Promise<MachineFacts>;
  /** Ends the zygotes of a tenant's own environment. Resolves when none of their processes is left. */
  readonly endEnvironment: (key: string) => Promise<void>;
  /** Kills processes that tenants have left running after their end. */
  readonly endRemains: () => Promise<void>;
  /** Called with the isolation measures of this machine, before the first tenant's code runs. */
  readonly onConfinement: (rows: readonly ConfinementRow[]) => void;
  readonly logger: Logger;
}

/** Membership of a worker in its tenant. Must be disposed when the worker has ended. */
export interface TenantLease extends AsyncDisposable {
  /** The confinement of a worker that is forked from the operator's interpreter. */
  readonly plan: ConfinementPlan;
  /**
   * Returns the environment. If the model ships its own interpreter, the environment's command is wrapped so that it runs in the tenant's
   * confinement.
   */
  environment(requested: PythonEnvironment): PythonEnvironment;
}

interface Tenant {
  readonly key: string;
  readonly plan: ConfinementPlan;
  readonly groups: CgroupSet | null;
  readonly scratchDirectory: string | null;
  readonly environments: Set<string>;
  workerCount: number;
}

/** The properties of this machine, which are determined once, and the resources for tenants. */
interface Ground {
  readonly facts: MachineFacts;
  readonly users: UserSlice | null;
  readonly groups: Cgroups | null;
  readonly rows: readonly ConfinementRow[];
}

/**
 * Isolates tenants from each other. A tenant is a namespace, identified by its arena. While a tenant has workers, it has its own user,
 * scratch directory and control groups.
 */
export class Tenants implements Disposable {
  readonly #options: TenantsOptions;
  readonly #living = new Map<string, Tenant>();
  /** Runs the cleanup of ended tenants. The caller that ends a tenant receives the errors of the cleanup. */
  readonly #ending = new TaskGroup(() => {});
  #ground: Promise<Ground> | null = null;
  #users: UserSlice | null = null;
  readonly #groups: { readonly groups: Cgroups | null; readonly missing: string | null };
  /** The control group of all tenants' processes, including their interpreters. */
  readonly #allGroup: CgroupSet | null;
  #scratchCount = 0;

  constructor(options: TenantsOptions) {
    this.#options = options;
    const { directory, allMemoryBytesMax, processesMax } = options.tenants;
    this.#groups = Cgroups.open(`galatea-${basename(directory)}`, { memoryBytesMax: allMemoryBytesMax, processesMax });
    this.#groups.groups?.sweep(isOfDeadServer);
    const isBounded = allMemoryBytesMax !== null;
    const limits = { memoryBytesMax: allMemoryBytesMax, processesMax: null };
    this.#allGroup = isBounded ? (this.#groups.groups?.make(limits) ?? null) : null;
    mkdirSync(this.#root, { recursive: true });
  }

  get #root(): string {
    return join(this.#options.tenants.directory, "root");
  }

  /** The arguments of `tenant.facts` and `tenant.Tenancy`, for zygotes that fork workers of tenants. */
  get tenantArguments(): string {
    const { users } = this.#options.tenants;
    return JSON.stringify({
      root: this.#root,
      users: users === null ? null : [users.first, users.count],
      cgroups: this.#allGroup?.processFiles ?? [],
    });
  }

  /** Returns whether a process with this user belongs to a tenant that has ended. */
  isGone(user: number): boolean {
    return this.#users?.isFree(user) === true;
  }

  /**
   * Adds a worker to a tenant. `key` identifies the tenant; `source` is one of its models. Throws UNAVAILABLE if there are not enough
   * resources.
   */
  async enter(key: string, source: ModelSource, { seesGpus }: { seesGpus: boolean }): Promise<TenantLease> {
    const found = (this.#ground ??= this.#find());
    const ground = await found.catch((error: unknown) => {
      // After a failure, the next tenant determines the properties again.
      if (this.#ground === found) this.#ground = null;
      throw error;
    });
    // There is no `await` from here on, so that two workers of a new tenant do not create it twice.
    const tenant = this.#living.get(key) ?? this.#begin(key, source, ground);
    tenant.workerCount++;
    const plan = { ...tenant.plan, devices: seesGpus ? this.#options.tenants.gpuDevices() : [] };
    return {
      plan,
      environment: (requested) => this.#environment(tenant, plan, requested),
      [Symbol.asyncDispose]: async () => {
        if (--tenant.workerCount > 0) return;
        this.#living.delete(key);
        const ending = this.#end(tenant, ground);
        this.#ending.run(() => ending);
        await ending;
      },
    };
  }

  async #find(): Promise<Ground> {
    const { tenants, logger } = this.#options;
    const facts = await this.#options.findFacts();
    const { users, missing: usersMissing } = this.#openUsers(facts);
    const { groups, missing: cgroupsMissing } = this.#groups;
    const rows = confinementRows(tenants, facts, { usersMissing, cgroupsMissing });
    this.#users = users;
    this.#options.onConfinement(rows);
    const missing = rows.flatMap((row) => (row.missing === null ? [] : [`${row.what} (${row.missing})`]));
    if (missing.length > 0) logger.warning(`tenants are not fully isolated on this machine: ${missing.join("; ")}`);
    return { facts, users, groups, rows };
  }

  #openUsers(facts: MachineFacts): { users: UserSlice | null; missing: string | null } {
    const { users: range, slicesDirectory, dataDirectory } = this.#options.tenants;
    const closed = facts.views
      ? undefined
      : [...facts.environmentPaths, this.#options.workerDirectory].find(
          (path) => closedAncestor(path, dataDirectory) !== null,
        );
    const missing =
      range === null
        ? "--worker-users=none"
        : !facts.isRoot
          ? "the server does not run as root"
          : !facts.usersMapped
            ? `the users ${range.first} and above do not exist here; choose others with --worker-users`
            : closed !== undefined
              ? `other users cannot access ${closedAncestor(closed, dataDirectory)}, which contains ${closed}`
              : null;
    if (range === null || missing !== null) return { users: null, missing };
    const users = UserSlice.open(range, slicesDirectory);
    return { users, missing: users === null ? "other servers use all users of --worker-users" : null };
  }

  #begin(key: string, source: ModelSource, { facts, users, groups }: Ground): Tenant {
    const readPaths = tenantPaths(source);
    const { tenants, workerDirectory } = this.#options;
    const user = users === null ? null : this.#takeUser(users, facts, readPaths);
    let groupSet: CgroupSet | null = null;
    try {
      groupSet = groups === null ? null : makeGroup(groups, tenants, user);
      const scratchDirectory = facts.views ? null : this.#makeScratch(user);
      const plan = createConfinementPlan(tenants, facts, this.#root, {
        user,
        cgroups: groupSet?.processFiles ?? [],
        isMemoryBounded: groups !== null,
        scratchDirectory,
        readPaths: [workerDirectory, ...readPaths],
        modelDirectory: source.modelDirectory,
      });
      this.#openAncestors(plan.groups, [...plan.read, plan.scratch, ...facts.environmentPaths]);
      const tenant = { key, plan, groups: groupSet, scratchDirectory, environments: new Set<string>(), workerCount: 0 };
      this.#living.set(key, tenant);
      return tenant;
    } catch (error) {
      groupSet?.[Symbol.dispose]();
      if (user !== null) users?.free(user);
      throw new InferenceError("UNAVAILABLE", `a tenant cannot be confined: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }

  #takeUser(users: UserSlice, facts: MachineFacts, readPaths: readonly string[]): number {
    const { dataDirectory } = this.#options.tenants;
    const closed = facts.views ? undefined : readPaths.find((path) => closedAncestor(path, dataDirectory) !== null);
    if (closed !== undefined)
      throw new InferenceError(
        "UNAVAILABLE",
        `a tenant's user cannot access ${closedAncestor(closed, dataDirectory)}, which contains its model ${closed}`,
      );
    const user = users.take();
    if (user === null) throw new InferenceError("UNAVAILABLE", "every user of --worker-users is in use by a tenant");
    return user;
  }

  #makeScratch(user: number | null): string {
    const directory = join(this.#options.tenants.directory, String((this.#scratchCount += 1)));
    mkdirSync(directory, { mode: 0o700 });
    chmodSync(directory, 0o700);
    if (user !== null) chownSync(directory, user, user);
    return directory;
  }

  /**
   * Permits the tenant's user to traverse the data directory to the paths of the user's plan, if the tenant has no separate root directory.
   */
  #openAncestors([group]: readonly number[], paths: readonly string[]): void {
    const { dataDirectory } = this.#options.tenants;
    if (dataDirectory === null || group === undefined) return;
    for (const path of paths) openWay(path, { below: dataDirectory, group });
  }

  #environment(tenant: Tenant, own: ConfinementPlan, requested: PythonEnvironment): PythonEnvironment {
    if (requested.directory === null) return requested;
    const { python, workerDirectory } = this.#options;
    const plan: ConfinementPlan = {
      ...own,
      // This worker is not forked by a zygote in the control group of all tenants, so the worker joins that group itself.
      cgroups: tenant.plan.cgroups.length > 0 ? tenant.plan.cgroups : (this.#allGroup?.processFiles ?? []),
      read: [...tenant.plan.read, requested.directory],
    };
    this.#openAncestors(plan.groups, [requested.directory]);
    const key = `${requested.key} of ${tenant.key}${plan.devices.length > 0 ? ` with ${plan.devices.join()}` : ""}`;
    tenant.environments.add(key);
    const launcher = join(workerDirectory, "galatea_tenant.py");
    return { ...requested, key, command: [...python.command, launcher, JSON.stringify(plan), ...requested.command] };
  }

  async #end(tenant: Tenant, { users }: Ground): Promise<void> {
    const { endEnvironment, endRemains } = this.#options;
    const { user } = tenant.plan;
    if (user !== null) users?.release(user);
    // These calls run in parallel, because processes that the tenant's interpreter left running may keep the interpreter's output open.
    await Promise.all([...[...tenant.environments].map((key) => endEnvironment(key)), endRemains()]);
    // The search is repeated, because the end of an interpreter makes its child processes orphans.
    if (tenant.environments.size > 0) await endRemains();
    if (user !== null) users?.free(user);
    tenant.groups?.[Symbol.dispose]();
    if (tenant.scratchDirectory !== null) rmSync(tenant.scratchDirectory, { recursive: true, force: true });
  }

  /** Resolves when the cleanup of all ended tenants is complete. */
  async ended(): Promise<void> {
    await this.#ending.waitForTasks();
  }

  /** Must be called only when no process of a tenant runs any more. */
  [Symbol.dispose](): void {
    this.#allGroup?.[Symbol.dispose]();
    this.#users?.[Symbol.dispose]();
    rmSync(this.#options.tenants.directory, { recursive: true, force: true });
  }
}

/**
 * Creates a tenant's own control group if the tenant needs one. A group is avoided otherwise, because moving a process into a group takes 5
 * to 15 ms: the kernel waits for all processors. Without a group, processes are counted by user, and the control group of the tenants'
 * zygote limits the memory of all tenants.
 */
function makeGroup(groups: Cgroups, { memoryBytesMax, processesMax }: TenantOptions, user: number | null) {
  if (memoryBytesMax === null && user !== null) return null;
  return groups.make({ memoryBytesMax, processesMax: user === null ? processesMax : null });
}

/**
 * Returns the directories of a tenant's own files: the model's directory, and the archive or repository that contains the tenant's other
 * models.
 */
export function tenantPaths({ modelDirectory }: ModelSource): readonly string[] {
  return [dirname(modelDirectory), modelDirectory];
}

/**
 * Returns the innermost directory on `path` that other users cannot enter; null if there is none. Directories inside the data directory do
 * not count, because `openWay` permits traversing them.
 */
export function closedAncestor(path: string, dataDirectory: string | null): string | null {
  for (let at = path; ; at = dirname(at)) {
    const found = statSync(at, { throwIfNoEntry: false });
    const isClosed = found?.isDirectory() === true && (found.mode & 0o001) === 0;
    if (isClosed && (dataDirectory === null || !isAtOrBelow(at, dataDirectory))) return at;
    if (at === dirname(at)) return null;
  }
}

const isAtOrBelow = (path: string, directory: string) => path === directory || path.startsWith(`${directory}/`);

/**
 * Permits the group to traverse the directories from `below` to `path` that other users cannot enter. The group cannot list them. Other
 * users get no access.
 */
function openWay(path: string, { below, group }: { readonly below: string; readonly group: number }): void {
  for (let at = dirname(path); isAtOrBelow(at, below); at = dirname(at)) {
    const found = statSync(at);
    if ((found.mode & 0o001) !== 0 || (found.gid === group && (found.mode & 0o010) !== 0)) continue;
    chownSync(at, -1, group);
    chmodSync(at, (found.mode & 0o700) | 0o010);
  }
}

/** Returns whether a control group belongs to a server that has ended. Its name is `galatea-<pid>-<start time>`. */
function isOfDeadServer(name: string): boolean {
  const [, pid, startTicks] = /^galatea-(\d+)-(\d+)$/.exec(name) ?? [];
  return pid !== undefined && readProcessStart(Number(pid)) !== Number(startTicks);
}
