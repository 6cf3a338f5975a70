/** What is used of WebAssembly, which TypeScript knows as a part of browsers only. */
export interface WasmMemory {
  /** Shared; as long as the memory was when it was asked for. */
  readonly buffer: SharedArrayBuffer;
  grow(pageCount: number): number;
}

/** Compiled code; threads that are sent it share it. */
export interface WasmModule {
  readonly [Symbol.toStringTag]: "WebAssembly.Module";
}

interface WebAssemblyDoor {
  readonly Memory: new (pages: { initial: number; maximum: number; shared: true }) => WasmMemory;
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => WasmModule;
  readonly Instance: new (module: WasmModule, imports: object) => { readonly exports: unknown };
}

export const webAssembly = (globalThis as unknown as { WebAssembly: WebAssemblyDoor }).WebAssembly;
