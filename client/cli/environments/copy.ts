/**
 * `baton env cp`: copies a file to or from an environment, in chunks, through the file actions. The
 * file appears at its destination only when it is complete.
 */
import { randomUUID } from 'node:crypto'
import {
  closeSync,
  existsSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import type { Command } from 'commander'
import type { InvokeResult } from '../../../protocol/actions/rows.ts'
import { api } from '../../../protocol/api.ts'
import { resultSizes } from '../../../protocol/environments/result-sizes.ts'
import type { Transport } from '../../transport.ts'
import { connected, longClientFor } from '../connection/connection.ts'
import { DeferredSignal, deleteOnSignal } from '../files/part-file.ts'
import { Mistake } from '../mistake.ts'
import type { Shell } from '../shell.ts'
import { environmentId } from './find.ts'

/** Maximum number of bytes that one call writes. */
const MAX_WRITE_BYTES = 262_144
/** Seconds to wait for one call. An environment may have to be started first. */
const TIMEOUT_S = 120

/** A file in an environment or on this machine. */
export type CopyEnd = { readonly env: string; readonly path: string } | { readonly file: string }

/**
 * Parses one argument. `ENV:PATH` refers to a file in an environment, any other text to a local
 * file.
 */
export function copyEnd(text: string): CopyEnd {
  const [, env, path] = /^([A-Za-z0-9][\w.-]*):(.*)$/s.exec(text) ?? []
  return env === undefined || path === undefined ? { file: text } : { env, path }
}

/** Adds `baton env cp` to the command `env`. */
export function addCopy(parent: Command, shell: Shell): void {
  const command = connected(
    parent
      .command('cp')
      .description('Copy a file to or from an environment')
      .argument('<from>', 'a file, or ENV:PATH')
      .argument('<to>', 'a file, or ENV:PATH; a folder keeps the name of the file'),
  ).addHelpText(
    'after',
    '\nExamples:\n  $ baton env cp report.csv desk:data/report.csv\n' +
      '  $ baton env cp desk:out/result.json .\n' +
      'Paths in an environment are relative to its workspace. Write ./name for a file of this ' +
      'machine whose name contains a colon.\n',
  )
  command.action(
    shell.guarded(async (from: string, to: string) => {
      const [source, target] = [copyEnd(from), copyEnd(to)]
      const { transport } = longClientFor(command, shell)
      if ('file' in source && 'env' in target)
        await upload(await remote(transport, target.env), source.file, target.path, shell)
      else if ('env' in source && 'file' in target)
        await download(await remote(transport, source.env), source.path, target.file, shell)
      else
        throw new Mistake(
          'Exactly one of the two paths must be in an environment, such as desk:data.csv.',
        )
    }),
  )
}

type Act = (
  action_name: string,
  input: Readonly<Record<string, unknown>>,
) => Promise<Readonly<Record<string, unknown>>>
/**
 * Returns a function that executes actions in an environment. The function throws a `Mistake` with
 * the error of a failed action.
 */
async function remote(transport: Transport, env: string): Promise<Act> {
  const environment_id = await environmentId(transport, env)
  return async (action_name, input) => {
    const result = (await transport.call(api['action.invoke'], {
      action_name,
      environment_id,
      input,
      timeout_seconds: TIMEOUT_S,
    })) as InvokeResult
    if (result.status === 'completed') return result.output ?? {}
    throw new Mistake(
      result.status === 'active'
        ? `The environment did not answer within ${TIMEOUT_S} s.`
        : `The environment refused the request: ${result.error ?? 'for an unknown reason'}`,
    )
  }
}

async function upload(act: Act, file: string, to: string, shell: Shell): Promise<void> {
  const stat = statSync(file, { throwIfNoEntry: false })
  if (!stat?.isFile()) throw new Mistake(`${file} is not a file.`)
  const { size } = stat
  const path = to === '' || to.endsWith('/') ? `${to}${basename(file)}` : to
  const mode = (stat.mode & 0o777).toString(8).padStart(3, '0')
  const isWhole = size <= MAX_WRITE_BYTES
  // Several chunks are written to a temporary file first, so the destination is never incomplete.
  // A single chunk needs no temporary file, because it replaces the destination in one step.
  const part = isWhole ? path : `${path}.${randomUUID().slice(0, 8)}.part`
  const from = openSync(file, 'r')
  // The temporary file can be deleted only after the chunk that is being written.
  const signal = isWhole ? undefined : new DeferredSignal()
  const bar = shell.progress?.('bytes')
  try {
    const buffer = Buffer.alloc(MAX_WRITE_BYTES)
    let at = 0
    do {
      const count = readSync(from, buffer, 0, MAX_WRITE_BYTES, at)
      if (count === 0 && at < size) throw new Mistake(`${file} became shorter while it was read.`)
      await act('environment.files.write', {
        path: part,
        encoding: 'base64',
        content: buffer.toString('base64', 0, count),
        ...(at === 0 ? { mode } : { append: true }),
      })
      at += count
      bar?.update(size > 0 ? at / size : 1, at)
      signal?.check()
    } while (at < size)
    if (!isWhole) await rename(act, part, path, at)
  } catch (error) {
    if (!isWhole) await act('environment.files.delete', { path: part }).catch(() => {})
    throw error
  } finally {
    bar?.stop()
    closeSync(from)
    signal?.end()
  }
  shell.note(`Wrote ${size} bytes to ${path}.`)
}
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
/**
 * Renames the temporary file if it has the expected size. The check detects a chunk that was
 * appended twice.
 */
async function rename(act: Act, part: string, path: string, size: number): Promise<void> {
  const { exit_code, stderr } = await act('environment.bash', {
    command:
      `test "$(wc -c < ${quoted(part)})" -eq ${size} && ` +
      `mv -fT -- ${quoted(`./${part}`)} ${quoted(`./${path}`)}`,
  })
  if (exit_code !== 0)
    throw new Mistake(
      `${path} was not replaced: ${String(stderr ?? '').trim() || 'the copy is incomplete'}`,
    )
}

async function download(act: Act, path: string, to: string, shell: Shell): Promise<void> {
  const isFolder = to.endsWith('/') || statSync(to, { throwIfNoEntry: false })?.isDirectory()
  const file = isFolder ? join(to, basename(path)) : to
  // The copy replaces its target, which must not happen to a device or a pipe.
  if (statSync(file, { throwIfNoEntry: false })?.isFile() === false)
    throw new Mistake(`${file} is not a file.`)
  const part = `${file}.${randomUUID().slice(0, 8)}.part`
  const out = openSync(part, 'wx')
  const keep = deleteOnSignal(part)
  const bar = shell.progress?.('bytes')
  let at = 0
  try {
    for (let next: unknown = 0; typeof next === 'number'; ) {
      const read = await act('environment.files.read', {
        path,
        encoding: 'base64',
        max_bytes: resultSizes.most,
        offset: at,
      })
      const bytes = Buffer.from(String(read['content'] ?? ''), 'base64')
      writeFileSync(out, bytes)
      at += bytes.length
      next = read['next_offset']
      if (typeof next === 'number' && next !== at)
        throw new Mistake(`${path} changed while it was read.`)
      bar?.update(next === undefined ? 1 : 0.5, at)
    }
    renameSync(part, file)
  } finally {
    bar?.stop()
    closeSync(out)
    if (existsSync(part)) rmSync(part)
    keep()
  }
  shell.note(`Wrote ${at} bytes to ${file}.`)
}
