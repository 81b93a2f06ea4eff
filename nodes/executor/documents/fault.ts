/** Why a file cannot be converted, as a sentence that is shown to the owner of the file. */
export class DocumentFault extends Error {}
