import { DocumentMemory } from "../../records/contracts/index.ts";

/** Documents that remember how they were after each write of a kind: what a next life of the platform may find. */
export class RememberedMemory extends DocumentMemory {
  readonly lives: DocumentMemory[] = [];

  constructor(kind: string) {
    super();
    const { held } = this;
    const set = held.set.bind(held);
    held.set = (id, document) => {
      set(id, document);
      if (document.kind === kind) this.lives.push(copyOf(this));
      return held;
    };
  }
}

function copyOf({ held, version }: DocumentMemory): DocumentMemory {
  const copy = new DocumentMemory();
  for (const [id, document] of held) copy.held.set(id, document);
  copy.version = version;
  return copy;
}
