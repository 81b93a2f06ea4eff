/** Lists the files of a store, for jobs that compare them with the records of their owners. */

/** A stored file. `at` is the time at which it was stored, in Unix milliseconds. */
export interface ListedFile {
  readonly name: string
  readonly at: number
}
/** A store of files that can be listed. */
export interface FileList {
  /**
   * Lists files whose names begin with a prefix, in a fixed order. A file that is stored while the
   * listing is in progress may be missing.
   * @param after `next` of the previous page; undefined for the first page.
   * @param limit maximum number of files per page.
   * @returns `next` is the position after which the list continues; absent at its end.
   * @throws Error when the store does not answer.
   */
  list(
    prefix: string,
    after: string | undefined,
    limit: number,
  ): Promise<{ readonly files: readonly ListedFile[]; readonly next?: string }>
}
