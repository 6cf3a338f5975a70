import { assert, ByteBudget, InferenceError, systemClock, type Clock } from "@galatea/base";
import { openSharedMemory, type SharedMemory } from "@galatea/base/system";
import type { Arena } from "./arena.ts";
import { GranuleRuns } from "./arena-runs.ts";
import { ArenaWarmth } from "./arena-warmth.ts";
import { BlockSegment } from "./block-segment.ts";
import type { Block } from "./tensor.ts";

export interface ArenaOptions {
  /**
   * Capacity in bytes, rounded up to granules of 64 KiB. The memory file is sparse: it occupies address space, and memory only where it is
   * used.
   */
  readonly capacityBytes: number;
  /** Free memory that stays resident; default 16 MiB, at most a sixteenth of the capacity. */
  readonly warmBytesMax?: number;
  /** Budget for the blocks of all arenas and for other memory of requests; default: no limit except the capacity. */
  readonly budget?: ByteBudget;
  readonly clock?: Clock;
}

const granuleBytes = 64 * 1024;
/** Blocks of at least this size are runs of granules; smaller ones are slots of a slab. */
const largeBytesMin = 1024 * 1024;
const slotBytesMin = 256;
const slotsPerSlabMin = 8;

/**
 * Maximum total size of cached views. Views of runs that began at different offsets overlap, so the total can exceed the arena. Above the
 * limit, all views are discarded and created again when they are needed.
 */
const spareViewBytesMax = 256 * 1024 * 1024;

let lastArenaId = 0;

/** Slot sizes of the size classes for small blocks: four for each doubling, so that at most a fifth of a slot is wasted. */
const classBytes: readonly number[] = (() => {
  const sizes: number[] = [];
  for (let base = slotBytesMin; base < largeBytesMin; base *= 2)
    for (let quarter = 4; quarter < 8; quarter++) sizes.push((base * quarter) / 4);
  sizes.push(largeBytesMin);
  return sizes;
})();

function classOf(byteLength: number): number {
  if (byteLength <= slotBytesMin) return 0;
  const doubling = 31 - Math.clz32(byteLength - 1);
  const quarter = (byteLength - 1) >> (doubling - 2);
  return (doubling - 8) * 4 + (quarter & 3) + 1;
}

/** A run of granules that is divided into slots of one size; `free` has the indices of free slots. */
interface Slab {
  readonly byteOffset: number;
  readonly slotClass: number;
  readonly slotCount: number;
  readonly free: number[];
  /** Index in the list of slabs with free slots of the same size; -1 when the slab is full. */
  partialIndex: number;
}

/** Opens an arena. Its memory file is closed when the arena is disposed and all its blocks are released. */
export function createArena(options: ArenaOptions): Arena {
  return new MemoryArena(options);
}

class MemoryArena implements Arena {
  readonly id = ++lastArenaId;
  readonly capacityBytes: number;
  readonly #memory: SharedMemory;
  readonly #runs: GranuleRuns;
  /** Views of runs of granules, by offset. They are cached because the same runs are allocated repeatedly. */
  readonly #views = new Map<number, ArrayBuffer>();
  #viewBytes = 0;
  readonly #budget: ByteBudget;
  readonly #idleMemory: Disposable;
  readonly #warmth: ArenaWarmth;
  /** Number of granules that may be resident: allocated ones and dirty free ones. */
  #residentGranules = 0;
  /** Slabs with a free slot, by size class. The fullest one is usually last. */
  readonly #partial: Slab[][] = classBytes.map(() => []);
  #usedBytes = 0;
  #blockCount = 0;
  #disposed = false;

  constructor(options: ArenaOptions) {
    const granuleCount = Math.ceil(options.capacityBytes / granuleBytes);
    assert(granuleCount > 0 && granuleCount < 2 ** 31, "an arena has between 64 KiB and 128 TiB");
    this.capacityBytes = granuleCount * granuleBytes;
    this.#memory = openSharedMemory(`galatea-arena-${this.id}`, this.capacityBytes);
    this.#runs = new GranuleRuns(granuleCount);
    this.#budget = options.budget ?? new ByteBudget(Infinity);
    this.#idleMemory = this.#budget.addIdleMemory({ reclaim: (bytes) => this.#reclaim(bytes) });
    this.#warmth = new ArenaWarmth({
      warmBytesMin: Math.min(options.warmBytesMax ?? 16 * 1024 * 1024, this.capacityBytes / 16),
      clock: options.clock ?? systemClock,
      memory: {
        usedBytes: () => this.#usedBytes,
        freeWarmBytes: () => this.#runs.dirtyGranules * granuleBytes,
        cool: (bytes) => this.#punchFree(Math.ceil(bytes / granuleBytes)),
      },
    });
  }

  get fd(): number {
    return this.#memory.fd;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  allocate(byteLength: number): Block {
    assert(!this.#disposed, "allocation in a disposed arena");
    assert(Number.isSafeInteger(byteLength) && byteLength >= 0, "a block's length is a natural number");
    if (byteLength < largeBytesMin) return this.#allocateSlot(byteLength);
    const granules = Math.ceil(byteLength / granuleBytes);
    this.#checkBudget(granules * granuleBytes);
    const byteOffset = this.#takeGranules(granules, byteLength) * granuleBytes;
    return this.#open(byteOffset, byteLength, granules * granuleBytes, null);
  }

  #allocateSlot(byteLength: number): Block {
    const slotClass = classOf(byteLength);
    const slotBytes = classBytes[slotClass]!;
    this.#checkBudget(slotBytes);
    const partial = this.#partial[slotClass]!;
    const slab = partial.at(-1) ?? this.#openSlab(slotClass, byteLength);
    const slot = slab.free.pop()!;
    if (slab.free.length === 0) this.#leavePartial(slab);
    return this.#open(slab.byteOffset + slot * slotBytes, byteLength, slotBytes, slab);
  }

  #checkBudget(reservedBytes: number): void {
    if (!this.#budget.fits(reservedBytes)) throw this.#budget.insufficientMemoryError(reservedBytes);
  }

  #open(byteOffset: number, byteLength: number, reservedBytes: number, slab: Slab | null): Block {
    this.#usedBytes += reservedBytes;
    this.#warmth.use(this.#usedBytes);
    // The budget counted this memory as idle until now: it was resident and free, or part of the run just allocated. The budget's limit was
    // checked before.
    this.#budget.addIdleBytes(-reservedBytes);
    this.#budget.reserveUnchecked(reservedBytes);
    this.#blockCount++;
    return new ArenaBlock(this, { byteOffset, byteLength, reservedBytes, slab });
  }

  bytesOf({ byteOffset, byteLength, reservedBytes, slab }: Location): Uint8Array {
    if (slab === null) return new Uint8Array(this.#view(byteOffset, reservedBytes), 0, byteLength);
    const view = this.#view(slab.byteOffset, slabBytes(slab.slotClass));
    return new Uint8Array(view, byteOffset - slab.byteOffset, byteLength);
  }

  #view(byteOffset: number, byteLength: number): ArrayBuffer {
    const known = this.#views.get(byteOffset);
    if (known !== undefined && known.byteLength >= byteLength) return known;
    if (this.#viewBytes > spareViewBytesMax + 2 * this.#usedBytes) this.#dropViews();
    const view = this.#memory.view(byteOffset, byteLength);
    this.#views.set(byteOffset, view);
    this.#viewBytes += byteLength - (known?.byteLength ?? 0);
    return view;
  }

  #dropViews(): void {
    this.#views.clear();
    this.#viewBytes = 0;
  }

  /** Frees a block that has no references left. */
  free(location: Location): void {
    this.#usedBytes -= location.reservedBytes;
    this.#budget.release(location.reservedBytes);
    this.#budget.addIdleBytes(location.reservedBytes);
    this.#blockCount--;
    if (location.slab === null) this.#releaseGranules(location.byteOffset, location.reservedBytes);
    else this.#freeSlot(location.slab, location.byteOffset);
    if (this.#disposed && this.#blockCount === 0) this.#close();
  }

  #freeSlot(slab: Slab, byteOffset: number): void {
    const slotBytes = classBytes[slab.slotClass]!;
    slab.free.push((byteOffset - slab.byteOffset) / slotBytes);
    const partial = this.#partial[slab.slotClass]!;
    if (slab.partialIndex === -1) slab.partialIndex = partial.push(slab) - 1;
    // The last slab of a class is kept. Without this, allocating and freeing one block in a loop would create a slab each time.
    if (slab.free.length < slab.slotCount || partial.length === 1) return;
    this.#leavePartial(slab);
    this.#releaseGranules(slab.byteOffset, slabBytes(slab.slotClass));
  }

  #openSlab(slotClass: number, byteLength: number): Slab {
    const bytes = slabBytes(slotClass);
    const byteOffset = this.#takeGranules(bytes / granuleBytes, byteLength) * granuleBytes;
    const slotCount = Math.floor(bytes / classBytes[slotClass]!);
    const free = Array.from({ length: slotCount }, (_, index) => slotCount - 1 - index);
    const slab: Slab = { byteOffset, slotClass, slotCount, free, partialIndex: -1 };
    slab.partialIndex = this.#partial[slotClass]!.push(slab) - 1;
    return slab;
  }

  #leavePartial(slab: Slab): void {
    const partial = this.#partial[slab.slotClass]!;
    const last = partial.pop()!;
    if (last !== slab) {
      partial[slab.partialIndex] = last;
      last.partialIndex = slab.partialIndex;
    }
    slab.partialIndex = -1;
  }

  #takeGranules(granules: number, byteLength: number): number {
    let dirtyBefore = this.#runs.dirtyGranules;
    let start = this.#runs.allocate(granules);
    if (start === -1) {
      // There may be enough free memory, but in adjacent dirty and clean runs, which are not merged, or in empty slabs. Makes all of it
      // clean, so that the runs are merged, and tries the allocation again.
      this.#closeEmptySlabs();
      this.#punchFree(Infinity);
      dirtyBefore = 0;
      start = this.#runs.allocate(granules);
    }
    if (start === -1) {
      throw new InferenceError(
        "UNAVAILABLE",
        `shared memory arena is full: ${byteLength} bytes requested, ${this.#usedBytes} of ${this.capacityBytes} bytes in use`,
        { reason: byteLength > this.capacityBytes ? "memory-exceeded" : "memory-full" },
      );
    }
    this.#addResident(granules - (dirtyBefore - this.#runs.dirtyGranules));
    return start;
  }

  #addResident(granules: number): void {
    this.#residentGranules += granules;
    this.#budget.addIdleBytes(granules * granuleBytes);
  }

  #releaseGranules(byteOffset: number, byteLength: number): void {
    this.#runs.release(byteOffset / granuleBytes, byteLength / granuleBytes);
    this.#warmth.freed();
  }

  #closeEmptySlabs(): void {
    for (const partial of this.#partial) {
      for (const slab of partial.filter((candidate) => candidate.free.length === candidate.slotCount)) {
        this.#leavePartial(slab);
        this.#runs.release(slab.byteOffset / granuleBytes, slabBytes(slab.slotClass) / granuleBytes);
      }
    }
  }

  /** Releases idle memory, because another user of the budget needs it. */
  #reclaim(bytes: number): number {
    this.#closeEmptySlabs();
    return this.#punchFree(Math.ceil(bytes / granuleBytes));
  }

  /** Releases the pages of free granules; returns the number of bytes. */
  #punchFree(granulesMax: number): number {
    const granules = this.#runs.clean(granulesMax, (start, length) =>
      this.#memory.punch(start * granuleBytes, length * granuleBytes),
    );
    this.#addResident(-granules);
    return granules * granuleBytes;
  }

  [Symbol.dispose](): void {
    if (this.#disposed) return;
    this.#disposed = true;
    if (this.#blockCount === 0) this.#close();
  }

  #close(): void {
    this.#dropViews();
    this.#warmth[Symbol.dispose]();
    this.#idleMemory[Symbol.dispose]();
    this.#addResident(-this.#residentGranules);
    this.#memory.close();
  }
}

function slabBytes(slotClass: number): number {
  return Math.ceil((classBytes[slotClass]! * slotsPerSlabMin) / granuleBytes) * granuleBytes;
}

interface Location {
  readonly byteOffset: number;
  readonly byteLength: number;
  readonly reservedBytes: number;
  readonly slab: Slab | null;
}

class ArenaBlock implements Block {
  readonly #arena: MemoryArena;
  readonly #location: Location;
  #references = 1;
  #bytes: Uint8Array | null = null;

  constructor(arena: MemoryArena, location: Location) {
    this.#arena = arena;
    this.#location = location;
  }

  get referenceCount(): number {
    return this.#references;
  }

  get arenaId(): number {
    return this.#arena.id;
  }

  get byteOffset(): number {
    return this.#location.byteOffset;
  }

  get byteLength(): number {
    return this.#location.byteLength;
  }

  /** Returns the view, which is created at the first use: a block that is only passed between workers never needs one. */
  get bytes(): Uint8Array {
    assert(this.#references > 0, "bytes of a block after its release");
    this.#bytes ??= this.#arena.bytesOf(this.#location);
    return this.#bytes;
  }

  retain(): void {
    assert(this.#references > 0, "retain of a released block");
    this.#references++;
  }

  release(): void {
    assert(this.#references > 0, "release of a released block");
    if (--this.#references === 0) this.#arena.free(this.#location);
  }

  segment(byteOffset: number, byteLength: number): Block {
    return new BlockSegment(this, byteOffset, byteLength);
  }
}
