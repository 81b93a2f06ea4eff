/**
 * Reads the files of a workspace by calling the actions of its environment directly. Each call is a
 * job of the environment, so it may have to wait until the worker has started.
 */
import type { Invoke, InvokeResult } from '../../../protocol/actions/rows.ts'
import type { JsonObject } from '../../../protocol/common.ts'
import { resultSizes } from '../../../protocol/environments/result-sizes.ts'

/**
 * Calls an action.
 * @throws an error with the status 403 if the user may not execute it.
 */
export type InvokeAction = (name: string, call: Invoke) => Promise<InvokeResult>

/** A file of a workspace. `path` is relative to the workspace; `size` is in bytes. */
export interface WorkspaceFile {
  readonly path: string
  readonly size: number
  /** Time of the last change, in RFC 3339 format. */
  readonly modified_at: string
}
export interface WorkspaceList {
  /** The files, newest first. */
  readonly files: readonly WorkspaceFile[]
  /** Whether the workspace has more files or folders than the action returned. */
  readonly truncated: boolean
}

const LIST = 'environment.files.list'
const READ = 'environment.files.read'
/** Seconds that a call waits for its result, including the start of the worker. */
const WAIT_S = 60
/** Maximum number of files and folders in a list. */
const MAX_ENTRIES = 100
/**
 * Maximum size in bytes of a file that can be downloaded. A file is read in parts, one per call.
 */
export const MAX_DOWNLOAD = 5_000_000

/** Lists and reads the files in the workspace of one environment. */
export class WorkspaceFiles {
  readonly #invoke: InvokeAction
  readonly #environment_id: string

  constructor(invoke: InvokeAction, environment_id: string) {
    this.#invoke = invoke
    this.#environment_id = environment_id
  }
  /**
   * Returns whether the user may list and read the files. The permissions are checked with dry
   * runs, which execute nothing.
   */
  async allowed(): Promise<boolean> {
    try {
      await this.#invoke(LIST, { ...this.#call({}), dry_run: true })
      await this.#invoke(READ, { ...this.#call({ path: '.' }), dry_run: true })
      return true
    } catch (error) {
      if ((error as { readonly status?: number }).status === 403) return false
      throw error
    }
  }
  /** Lists the newest files. Folders are omitted. */
  async list(): Promise<WorkspaceList> {
    const { entries, truncated } = (await this.#output(LIST, {
      recursive: true,
      max_entries: MAX_ENTRIES,
    })) as {
      readonly entries?: readonly (WorkspaceFile & { readonly dir: boolean })[]
      readonly truncated?: boolean
    }
    return {
      files: (entries ?? []).filter(({ dir }) => !dir),
      truncated: truncated === true,
    }
  }
  /**
   * Returns the bytes of a file.
   * @throws Error if more bytes remain after the first `MAX_DOWNLOAD`.
   */
  async read(path: string): Promise<Blob> {
    const parts: Uint8Array<ArrayBuffer>[] = []
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      if (offset >= MAX_DOWNLOAD) throw new Error('The file has become too large to download here.')
      const { content, next_offset } = (await this.#output(READ, {
        path,
        encoding: 'base64',
        max_bytes: resultSizes.most,
        offset,
      })) as { readonly content?: string; readonly next_offset?: number }
      parts.push(Uint8Array.from(atob(content ?? ''), (character) => character.charCodeAt(0)))
      // Reading stops if the offset does not increase; otherwise the loop would never end.
      offset = next_offset !== undefined && next_offset > offset ? next_offset : undefined
    }
    return new Blob(parts)
  }

  #call(input: JsonObject): Invoke {
    return { environment_id: this.#environment_id, timeout_seconds: WAIT_S, input }
  }
  /**
   * Returns the output of an action.
   * @throws Error if the call did not complete.
   */
  async #output(name: string, input: JsonObject): Promise<JsonObject> {
    const { status, output = {}, error } = await this.#invoke(name, this.#call(input))
    if (status === 'completed') return output
    throw new Error(
      status === 'active'
        ? `The workspace did not answer within ${WAIT_S} seconds.`
        : `The workspace answered: ${error ?? 'no reason given'}`,
    )
  }
}
