/**
 * Reads and writes files of an environment through its file actions, in chunks. A written file
 * appears at its path only when it is complete.
 */

import { resultSizes } from '../../../../protocol/environments/result-sizes.ts'
import { ApiError, call, randomKey } from '../../../api/client.ts'
import type { FileStart } from '../../../preview/preview.tsx'
import { environmentsText as text } from '../text.ts'

/** Identifies an environment in a project. */
export interface Workspace {
  readonly project: string
  readonly id: string
}
/** A file or folder. `path` is relative to the workspace. `size` is in bytes. */
export interface Entry {
  readonly path: string
  readonly dir: boolean
  readonly size: number
  readonly modified_at: string
}

/** Timeout of an action. It is long, because the environment may have to be started first. */
const TIMEOUT_SECONDS = 120
/** Maximum number of bytes that one action writes. A larger file is written in chunks. */
const MAX_WRITE_BYTES = 262_144

/**
 * Executes an action and returns its output.
 * @throws ApiError if the action is refused, fails or times out.
 */
async function act(
  { project, id }: Workspace,
  action_name: string,
  input: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  const { status, output, error } = await call(
    'action.invoke',
    { project, action_name, environment_id: id, input, timeout_seconds: TIMEOUT_SECONDS },
    signal ? { signal } : {},
  )
  if (status === 'completed') return output ?? {}
  throw status === 'active'
    ? new ApiError(504, 'environment_worker_unavailable', text.timeout)
    : new ApiError(422, 'action_failed', text.refused(error ?? text.unknown))
}

/** The entries of a folder: folders first, each kind sorted by name. */
export interface Folder {
  readonly entries: readonly Entry[]
  readonly note?: string
}
/** Lists a folder; '' is the root of the workspace. */
export async function listFolder(of: Workspace, path: string): Promise<Folder> {
  const { entries = [], note } = (await act(of, 'environment.files.list', {
    ...(path !== '' && { path }),
    max_entries: 2000,
  })) as { entries?: readonly Entry[]; note?: string }
  const sorted = [...entries].sort((a, b) =>
    a.dir === b.dir ? a.path.localeCompare(b.path) : a.dir ? -1 : 1,
  )
  return { entries: sorted, ...(note !== undefined && { note }) }
}

/** Reads at most `maxBytes` of a file. `advanced` receives the number of bytes read so far. */
export async function readFile(
  of: Workspace,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
  advanced: (bytes: number) => void = () => {},
): Promise<FileStart> {
  const parts: Uint8Array[] = []
  let at = 0
  for (;;) {
    const input = { path, encoding: 'base64', max_bytes: resultSizes.most, offset: at }
    const read = await act(of, 'environment.files.read', input, signal)
    const part = Uint8Array.from(atob(String(read['content'] ?? '')), (sign) => sign.charCodeAt(0))
    parts.push(part)
    at += part.length
    advanced(at)
    const next = read['next_offset']
    if (typeof next !== 'number' || at >= maxBytes) {
      const bytes = new Uint8Array(await new Blob(parts as Uint8Array<ArrayBuffer>[]).arrayBuffer())
      return {
        bytes: bytes.subarray(0, maxBytes),
        complete: typeof next !== 'number' && at <= maxBytes,
      }
    }
    if (next !== at) throw new ApiError(409, 'conflict', text.changedWhileRead)
  }
}

function base64Of(bytes: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < bytes.length; at += 32_768)
    binary += String.fromCharCode(...bytes.subarray(at, at + 32_768))
  return btoa(binary)
}
const quoted = (value: string): string => `'${value.replaceAll("'", `'\\''`)}'`

/** Writes a file. A large one is written next to its path and renamed when it is complete. */
export async function writeFile(
  of: Workspace,
  path: string,
  file: Blob,
  advanced: (bytes: number) => void,
): Promise<void> {
  const isWhole = file.size <= MAX_WRITE_BYTES
  const part = isWhole ? path : `${path}.${randomKey().slice(0, 8)}.part`
  try {
    let at = 0
    do {
      const bytes = new Uint8Array(await file.slice(at, at + MAX_WRITE_BYTES).arrayBuffer())
      await act(of, 'environment.files.write', {
        path: part,
        encoding: 'base64',
        content: base64Of(bytes),
        ...(at > 0 && { append: true }),
      })
      at += bytes.length
      advanced(at)
    } while (at < file.size)
    if (isWhole) return
    // A retry may have appended a chunk twice, so the size is checked.
    const { exit_code } = await act(of, 'environment.bash', {
      command:
        `test "$(wc -c < ${quoted(`./${part}`)})" -eq ${file.size} && ` +
        `mv -fT -- ${quoted(`./${part}`)} ${quoted(`./${path}`)}`,
    })
    if (exit_code !== 0) throw new ApiError(409, 'conflict', text.incomplete)
  } catch (error) {
    if (!isWhole) await act(of, 'environment.files.delete', { path: part }).catch(() => {})
    throw error
  }
}

/** Deletes a file, or a folder with its content. */
export async function deletePath(of: Workspace, { path, dir }: Entry): Promise<void> {
  await act(of, 'environment.files.delete', { path, ...(dir && { recursive: true }) })
}
