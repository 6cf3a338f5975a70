/** Types of WebAssembly, which TypeScript has only for browsers. */
export interface WasmMemory {
  /** Shared; has the length that the memory had when it was accessed. */
  readonly buffer: SharedArrayBuffer;
  grow(pageCount: number): number;
}

/** Compiled code; threads that receive it share it. */
export interface WasmModule {
  readonly [Symbol.toStringTag]: "WebAssembly.Module";
}

interface WebAssemblyNamespace {
  readonly Memory: new (pages: { initial: number; maximum: number; shared: true }) => WasmMemory;
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => WasmModule;
  readonly Instance: new (module: WasmModule, imports: object) => { readonly exports: unknown };
}

export const webAssembly = (globalThis as unknown as { WebAssembly: WebAssemblyNamespace }).WebAssembly;
