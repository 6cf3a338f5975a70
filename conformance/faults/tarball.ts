import { gzipSync } from "node:zlib";

export interface TarEntry {
  readonly path: string;
  readonly body?: string | Uint8Array;
  /** "0" file, "1" hard link, "2" symbolic link, "5" directory, "6" pipe. */
  readonly type?: string;
  readonly target?: string;
}

/** Returns a tar stream of exactly these entries. Other tools would reject most of them. */
export function tar(entries: readonly TarEntry[]): Buffer {
  const chunks = entries.flatMap((entry) => {
    const body = Buffer.from(entry.body ?? "");
    return [header(entry, body.length), body, Buffer.alloc(-body.length & 511)];
  });
  return Buffer.concat([...chunks, Buffer.alloc(1024)]);
}

export function tarball(entries: readonly TarEntry[]): Buffer {
  return gzipSync(tar(entries), { level: 1 });
}

/** One header block; `byteLength` is what it claims. */
export function header({ path, type = "0", target = "" }: TarEntry, byteLength: number): Buffer {
  const block = Buffer.alloc(512);
  const octal = (value: number, at: number, digits: number) =>
    block.write(`${value.toString(8).padStart(digits, "0")}\0`, at);
  block.write(path, 0, 100);
  octal(0o644, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(byteLength, 124, 11);
  octal(0, 136, 11);
  block.write("        ", 148);
  block.write(type, 156);
  block.write(target, 157, 100);
  block.write("ustar\x0000", 257);
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}
