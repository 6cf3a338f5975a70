/** Types of WebAssembly, which TypeScript declares only in its library for browsers. */
export interface WasmMemory {
  /** A view of the shared memory. It does not grow with the memory, so read `buffer` again after `grow`. */
  readonly buffer: SharedArrayBuffer;
  grow(pageCount: number): number;
}

/** Compiled code, which threads share when it is sent to them. */
export interface WasmModule {
  readonly [Symbol.toStringTag]: "WebAssembly.Module";
}

interface WebAssemblyNamespace {
  readonly Memory: new (pages: { initial: number; maximum: number; shared: true }) => WasmMemory;
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => WasmModule;
  readonly Instance: new (module: WasmModule, imports: object) => { readonly exports: unknown };
}

export const webAssembly = (globalThis as unknown as { WebAssembly: WebAssemblyNamespace }).WebAssembly;
