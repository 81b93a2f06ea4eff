/** Thrown when a file cannot be converted. The message is shown to the owner of the file. */
export class DocumentFault extends Error {}
