/**
 * An error in the source of a conversion. The message is a sentence for the user. Any other error is a bug or a disk
 * fault.
 */
export class ConversionError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ConversionError";
  }
}
