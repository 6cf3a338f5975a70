/** Why something cannot be converted, as a sentence for the person who asked. Anything else that is thrown is a fault of ours or the disk's. */
export class ConversionError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ConversionError";
  }
}
